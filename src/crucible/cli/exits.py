"""Exit codes of commands: those of the library."""

from crucible.client.exits import (
    AUTH,
    BUDGET,
    ERROR,
    INTERRUPTED,
    JOB_CANCELLED,
    JOB_FAILED,
    NO_OFFER,
    NOT_FOUND,
    OK,
    PROVIDER,
    TIMEOUT,
    USAGE,
    of_error,
    of_job,
)

__all__ = [
    "AUTH",
    "BUDGET",
    "ERROR",
    "INTERRUPTED",
    "JOB_CANCELLED",
    "JOB_FAILED",
    "NOT_FOUND",
    "NO_OFFER",
    "OK",
    "PROVIDER",
    "TIMEOUT",
    "USAGE",
    "of_error",
    "of_job",
]
