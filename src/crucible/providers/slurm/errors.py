"""Slurm's words as our errors. They are told to a person as they are; which of ours they become depends on a few that
have been the same for twenty years. A job that may have been accepted is never called refused."""

from collections.abc import Iterator
from contextlib import contextmanager

from crucible.model.errors import (
    CredentialsRejected,
    HostKeyRefused,
    LoginRefused,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    QuotaReached,
    RateLimited,
    Scope,
    Unreachable,
)

PROVIDER = "slurm"
MAX_MESSAGE = 400
RETRY_AFTER_S = 5.0

FORBIDDEN = (
    "access/permission denied",
    "access denied",
    "invalid user id",
    "user's group not permitted",
    "protocol authentication error",
    "authentication failure",
    "munge",
    "invalid account",
    "not permitted to use",
)
LIMITED = (
    "job violates accounting/qos policy",
    "submission limit",
    "submit limit",
    "maxsubmit",
    "qosmax",
    "assocgrp",
    "assocmax",
    "exceeds limit",
)
BUSY = ("temporarily unable to accept job", "too many requests", "resource temporarily unavailable")
AWAY = ("unable to contact slurm controller", "connection refused", "zero bytes were transmitted", "no route to host")
LOST = ("socket timed out", "unexpected message received", "connection reset", "communication connection failure")


def worded(said: str, cluster: str) -> str:
    line = " ".join(said.replace("sbatch: error:", "").split())
    return f"Slurm {cluster}: {line if len(line) <= MAX_MESSAGE else line[:MAX_MESSAGE] + '…'}"


def meant(said: str, cluster: str, *, is_purchase: bool) -> ProviderError:
    """What a command that failed, or an answer that says no, tells."""
    low, message = said.lower(), worded(said or "no reason is given", cluster)
    if any(word in low for word in LOST):
        kind = OutcomeUnknown if is_purchase else ProviderError
        return kind(message, provider=PROVIDER, region=cluster)
    if any(word in low for word in AWAY):
        return ProviderError(f"{message}; it is tried again", provider=PROVIDER, region=cluster)
    if any(word in low for word in BUSY):
        return RateLimited(message, retry_after_s=RETRY_AFTER_S, provider=PROVIDER, region=cluster)
    if any(word in low for word in FORBIDDEN):
        return CredentialsRejected(message, provider=PROVIDER, region=cluster)
    if any(word in low for word in LIMITED):
        return QuotaReached(message, scope=Scope.ACCOUNT, provider=PROVIDER, region=cluster)
    kind = OrderRejected if is_purchase else ProviderError
    return kind(message, provider=PROVIDER, region=cluster)


@contextmanager
def translated(cluster: str, *, is_purchase: bool = False) -> Iterator[None]:
    """What happened on the way to the cluster. `is_purchase`: what was asked may have been done."""
    try:
        yield
    except (LoginRefused, HostKeyRefused) as error:
        raise CredentialsRejected(worded(error.message, cluster), provider=PROVIDER, region=cluster) from error
    except Unreachable as error:
        kind = OutcomeUnknown if is_purchase else ProviderError
        raise kind(worded(error.message, cluster), provider=PROVIDER, region=cluster) from error
