"""Exit codes: part of the interface, so that scripts can tell what to do next. The same for commands and for programs
that use the library."""

from crucible.client.errors import AmbiguousJob, JobCancelled, JobFailed, JobNotOver, ServerTimeout
from crucible.model import errors

OK = 0
ERROR = 1
USAGE = 2  # the command line or a file must change
NO_OFFER = 3
AUTH = 4
NOT_FOUND = 5
BUDGET = 6
PROVIDER = 7
TIMEOUT = 8
JOB_FAILED = 100
JOB_CANCELLED = 103
INTERRUPTED = 130

_OF_JOB = {"completed": OK, "failed": JOB_FAILED, "cancelled": JOB_CANCELLED}

# First match wins: narrower classes stand first.
_OF_ERROR: tuple[tuple[type[errors.PlatformError], int], ...] = (
    (errors.Unauthenticated, AUTH),
    (errors.Forbidden, AUTH),
    (errors.NotFound, NOT_FOUND),
    (errors.InfeasibleJob, NO_OFFER),
    (errors.BudgetExhausted, BUDGET),
    (errors.Conflict, ERROR),
    (AmbiguousJob, USAGE),
    (errors.InvalidRequest, USAGE),
    (errors.NoCapacity, NO_OFFER),
    (errors.ProviderError, PROVIDER),
    (ServerTimeout, TIMEOUT),
    (JobNotOver, TIMEOUT),
    (JobCancelled, JOB_CANCELLED),
    (JobFailed, JOB_FAILED),
)


def of_job(status: str) -> int:
    """The exit code of a command that waited for a job which ended as `status`."""
    return _OF_JOB.get(status, ERROR)


def of_error(error: errors.PlatformError) -> int:
    """The exit code of a program that ends because of `error`."""
    if isinstance(error, errors.InfeasibleJob) and "budget" in str(error.details.get("field", "")):
        return BUDGET
    return next((code for kind, code in _OF_ERROR if isinstance(error, kind)), ERROR)
