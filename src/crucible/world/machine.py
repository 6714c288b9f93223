"""Everything in a world that somebody pays for or asked for."""

from dataclasses import dataclass, field
from enum import StrEnum

from crucible.world.facts import Market


class State(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "shutting-down"
    ENDED = "terminated"


class End(StrEnum):
    """Who ended a machine."""

    OWNER = "owner"  # asked for
    SELLER = "seller"  # spot: taken away
    GUEST = "guest"  # switched itself off


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One purchase. With a `token`, the same `fingerprint` gives the same machines again and another is refused."""

    account: str
    region: str
    zone: str | None  # None: any zone that has room
    type: str
    market: Market
    least: int
    most: int
    token: str | None = None
    fingerprint: str = ""
    max_price: int | None = None  # spot, micro-dollars per hour; None: up to the on-demand price
    disk_gib: int = 8
    has_address: bool = True  # a public one
    tags: dict[str, str] = field(default_factory=dict)
    disk_tags: dict[str, str] = field(default_factory=dict)
    user_data: bytes = b""
    reservation: str | None = None  # capacity held before
    ends_on_shutdown: bool = True
    visible_after_s: float = 0.0  # until it appears in listings


@dataclass(kw_only=True)
class Machine:
    """What a seller shows of it. That it will be taken is not in here before its owner is told."""

    id: str
    launch_id: str  # machines of one purchase share it
    index: int  # within the purchase
    account: str
    region: str
    zone: str
    type: str
    market: Market
    launched_at: int
    boots_at: float
    visible_at: float
    tags: dict[str, str]
    user_data: bytes
    private_address: str
    public_address: str | None
    disk_id: str
    request_id: str | None = None  # of the spot market
    max_price: int | None = None  # what was agreed to there, micro-dollars per hour
    token: str | None = None
    reservation: str | None = None
    ends_on_shutdown: bool = True
    state: State = State.PENDING
    rebalance_at: float | None = None  # told that it may be taken
    notice_at: float | None = None  # told that it will be taken …
    taken_at: float | None = None  # … then
    stops_at: float | None = None
    ended_at: int | None = None
    end: End | None = None


@dataclass(kw_only=True)
class Disk:
    id: str
    account: str
    region: str
    zone: str
    gib: int
    created_at: int
    tags: dict[str, str]
    machine: str | None  # attached to
    goes_with_machine: bool = True  # False: it survives its machine and is charged on
    deleted_at: int | None = None


@dataclass(kw_only=True)
class Reservation:
    """Capacity that is paid for, used or not: what it holds is not charged a second time."""

    id: str
    account: str
    region: str
    zone: str
    type: str
    count: int
    created_at: int
    tags: dict[str, str] = field(default_factory=dict)
    ended_at: int | None = None


class RefusedBy(StrEnum):
    CAPACITY = "capacity"
    QUOTA = "quota"
    PRICE = "price"  # the spot price is above the limit
    TOKEN = "token"  # noqa: S105 (a kind of refusal, not a secret): the same token with another purchase
    IN_USE = "in-use"  # a disk of a machine that has not ended
    UNKNOWN = "unknown"  # there is no such thing


class Refused(Exception):
    def __init__(self, by: RefusedBy, message: str) -> None:
        super().__init__(message)
        self.by = by
        self.message = message


# --- what happened, for whoever keeps the processes and for people ------------------------------------------


class What(StrEnum):
    LAUNCHED = "launched"
    BOOTED = "booted"  # its processes are to be started
    WARNED = "warned"  # a rebalance recommendation
    NOTICED = "noticed"  # it will be taken
    STOPPING = "stopping"
    ENDED = "ended"  # its processes must be gone
    SHUT_DOWN = "shut-down"  # the guest switched itself off, the machine stays and costs on
    DISK_DELETED = "disk-deleted"
    RESERVED = "reserved"
    RESERVATION_ENDED = "reservation-ended"
    PRICE_CHANGED = "price-changed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Happening:
    at: float
    what: What
    subject: str  # id of a machine, a disk, "type@zone"
    note: str = ""
    number: int = 0  # counts from 1: whoever reads on asks for what came after it
