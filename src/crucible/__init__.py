"""Crucible: one place to run GPU work anywhere."""

__version__ = "0.1.0"
