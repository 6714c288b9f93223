"""What the outside may watch us by: metrics for Prometheus, traces for OpenTelemetry."""
