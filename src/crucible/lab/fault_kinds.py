"""What can be made to go wrong in the Lab, and where each kind is asked for. A table; it decides nothing."""

from dataclasses import dataclass
from enum import StrEnum


class Moment(StrEnum):
    """When a front end or the runtime asks whether something goes wrong."""

    BEFORE = "before"  # a request is understood, nothing is done yet
    AFTER = "after"  # it is done, its answer is not sent yet
    BOOT = "boot"  # a machine's processes are about to start


class FaultKind(StrEnum):
    """`KINDS` says of each what it does, when, and what it takes."""

    ERROR_BEFORE_EFFECT = "error-before-effect"
    LOST_REPLY = "lost-reply"
    SERVER_ERROR = "server-error"
    SERVER_ERROR_AFTER = "server-error-after"
    THROTTLE = "throttle"
    SLOW = "slow"
    NO_CAPACITY = "no-capacity"
    QUOTA = "quota"
    AUTH_EXPIRED = "auth-expired"
    LATE_VISIBILITY = "late-visibility"
    LYING_TERMINATE = "lying-terminate"
    DUPLICATE_DELIVERY = "duplicate-delivery"
    EMPTY_LISTING = "empty-listing"
    ADDRESS_REUSE = "address-reuse"
    ORPHAN_DISK = "orphan-disk"
    USER_DATA_FAILS = "user-data-fails"
    SUDDEN_DEATH = "sudden-death"
    NOTICE = "notice"
    CLOCK_SKEW = "clock-skew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """The parameter `seconds` of a kind: drawn evenly between two figures."""

    default: tuple[float, float]
    least: float
    most: float
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    does: str  # one line, for people
    moment: Moment
    operations: tuple[str, ...] = ("*",)  # where it has a meaning: asked elsewhere, it never strikes
    seconds: Seconds | None = None
    statuses: tuple[int, ...] = ()  # the answers it may give; the first is the usual one


_HOUR = 3600.0
_DAY = 24 * _HOUR

# Requests that buy something of which a seller can have too little.
BUYING = ("RunInstances", "CreateCapacityReservation")
ENDING = ("TerminateInstances",)
LISTING = ("DescribeInstances", "DescribeInstanceStatus", "DescribeVolumes")

KINDS: dict[FaultKind, Kind] = {
    FaultKind.ERROR_BEFORE_EFFECT: Kind(
        does="the connection is cut and nothing was done",
        moment=Moment.BEFORE,
    ),
    FaultKind.LOST_REPLY: Kind(
        does="it is done, then the connection is cut before the answer",
        moment=Moment.AFTER,
    ),
    FaultKind.SERVER_ERROR: Kind(
        does="an internal error; nothing was done",
        moment=Moment.BEFORE,
        statuses=(500, 503),
    ),
    FaultKind.SERVER_ERROR_AFTER: Kind(
        does="an internal error although it was done",
        moment=Moment.AFTER,
        statuses=(500, 503),
    ),
    FaultKind.THROTTLE: Kind(
        does="refused: too many requests",
        moment=Moment.BEFORE,
    ),
    FaultKind.SLOW: Kind(
        does="the answer comes so many real seconds late",
        moment=Moment.BEFORE,
        seconds=Seconds(default=(1.0, 5.0), least=0.0, most=600.0),
    ),
    FaultKind.NO_CAPACITY: Kind(
        does="refused: the seller has none left",
        moment=Moment.BEFORE,
        operations=BUYING,
    ),
    FaultKind.QUOTA: Kind(
        does="refused: the account's limit is reached",
        moment=Moment.BEFORE,
        operations=BUYING,
    ),
    FaultKind.AUTH_EXPIRED: Kind(
        does="refused: the credentials have expired",
        moment=Moment.BEFORE,
    ),
    FaultKind.LATE_VISIBILITY: Kind(
        does="new machines appear in listings so many seconds late",
        moment=Moment.BEFORE,
        operations=("RunInstances",),
        seconds=Seconds(default=(0.0, 60.0), least=0.0, most=_HOUR),
    ),
    FaultKind.LYING_TERMINATE: Kind(
        does="the order to end a machine is accepted and not carried out",
        moment=Moment.BEFORE,
        operations=ENDING,
    ),
    FaultKind.DUPLICATE_DELIVERY: Kind(
        does="the request is carried out twice, the second answer is sent",
        moment=Moment.BEFORE,
    ),
    FaultKind.EMPTY_LISTING: Kind(
        does="one thing that is there is missing from the answer",
        moment=Moment.AFTER,
        operations=LISTING,
    ),
    FaultKind.ADDRESS_REUSE: Kind(
        does="a new machine gets the address of the one that ended last",
        moment=Moment.BEFORE,
        operations=("RunInstances",),
    ),
    FaultKind.ORPHAN_DISK: Kind(
        does="the disk survives its machine and goes on costing",
        moment=Moment.BOOT,
    ),
    FaultKind.USER_DATA_FAILS: Kind(
        does="the machine runs, its user-data does not: it fails at once",
        moment=Moment.BOOT,
    ),
    FaultKind.SUDDEN_DEATH: Kind(
        does="the machine dies without any notice, so many seconds after its boot",
        moment=Moment.BOOT,
        seconds=Seconds(default=(0.0, 300.0), least=0.0, most=30 * _DAY),
    ),
    FaultKind.NOTICE: Kind(
        does="before it is taken the machine is told only so many seconds ahead",
        moment=Moment.BOOT,
        seconds=Seconds(default=(30.0, 30.0), least=0.0, most=_HOUR),
    ),
    FaultKind.CLOCK_SKEW: Kind(
        does="every time that the machine is told is wrong by so many seconds",
        moment=Moment.BOOT,
        seconds=Seconds(default=(-_HOUR, _HOUR), least=-365 * _DAY, most=365 * _DAY, is_whole=True),
    ),
}
