"""Channels that notices go to: each an adapter behind `ports.notifier`."""
