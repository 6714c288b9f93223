"""Logs and metrics on files: append-only text segments, one folder per task."""
