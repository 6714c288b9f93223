"""What faults do to a request of storage: refused, cut or late. Which of them strike is decided elsewhere."""

from typing import Protocol

from crucible.lab.faults import Context, Fault, FaultKind, Faults, Moment
from crucible.lab.gcs.errors import GcsError, unauthenticated


class Clock(Protocol):
    def now(self) -> float: ...


class Lab(Protocol):
    """What the front end needs of a Lab."""

    @property
    def clock(self) -> Clock: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def url(self) -> str: ...


class Cut(Exception):
    """The connection is closed without an answer."""


def before(lab: Lab, operation: str) -> Fault | None:
    """The fault that strikes, if it lets the request be carried out at all; otherwise raises Cut or GcsError."""
    if lab.faults.is_quiet(Moment.BEFORE):
        return None
    fault = lab.faults.decide(operation, Moment.BEFORE, Context(now=lab.clock.now()))
    match fault.kind if fault else None:
        case FaultKind.ERROR_BEFORE_EFFECT:
            raise Cut
        case FaultKind.SERVER_ERROR if fault:
            raise _failed(fault.status)
        case FaultKind.THROTTLE:
            raise GcsError("SlowDown", "Please reduce your request rate.", 429)
        case FaultKind.AUTH_EXPIRED:
            raise unauthenticated("The credentials have expired.")
    return fault


def after(lab: Lab, operation: str) -> None:
    """Raises Cut or GcsError although the request was carried out."""
    if lab.faults.is_quiet(Moment.AFTER):
        return
    fault = lab.faults.decide(operation, Moment.AFTER, Context(now=lab.clock.now()))
    match fault.kind if fault else None:
        case FaultKind.LOST_REPLY:
            raise Cut
        case FaultKind.SERVER_ERROR_AFTER if fault:
            raise _failed(fault.status)


def _failed(status: int) -> GcsError:
    if status == 503:
        return GcsError("ServiceUnavailable", "The service is overloaded. Please try again.", 503)
    return GcsError("InternalError", "We encountered an internal error. Please try again.", 500)
