"""Money that is owed. Usage is what a seller charges for, second by second; postings move it between accounts and add
up to nothing. Integer micro-dollars everywhere; nothing here is ever changed once it is closed."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crucible.model.ids import JobId, LeaseId, MachineId, OrderId
from crucible.model.units import MicroUsd

# How postings are named that follow from no stretch: data was moved.
TRANSFER = "transfer/"


class ChargeKind(StrEnum):
    COMPUTE = "compute"
    STORAGE = "storage"
    ADDRESS = "address"
    TRANSFER = "transfer"


@dataclass(frozen=True, slots=True)
class Rate:
    """What `per_s` seconds cost; an hour for machines, a month for disks, so that both stay whole numbers."""

    kind: ChargeKind
    amount: MicroUsd
    per_s: int


@dataclass(frozen=True, slots=True)
class PriceSince:
    """What a machine costs per hour from this whole second on."""

    at: datetime
    price_per_hour: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a seller rounds. `free_if_taken_within_s`: a spot machine that the seller takes so early is not charged."""

    unit_s: int = 1
    minimum_s: int = 0
    free_if_taken_within_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One stretch of one machine at one rate. (provider, machine, kind, from) is its key; `to_at` is open while it
    runs, and once it is set the row never changes."""

    provider: str
    region: str
    machine_id: MachineId
    order_id: OrderId
    job_id: JobId
    lease_id: LeaseId | None  # None: bought by us, held by no lease
    rate: Rate
    from_at: datetime
    to_at: datetime | None = None
    amount: MicroUsd | None = None  # of the whole stretch, once it is closed
    is_estimate: bool = False  # the seller did not say when it ended


@dataclass(frozen=True, slots=True)
class Entry:
    """Positive: the account has received value (a job has used it). Negative: it has given it (a provider)."""

    account: str  # "job:<id>", "provider:<name>"
    amount: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Entries that add up to nothing. `id` says what it is for, so that writing it twice is writing it once."""

    id: str
    at: datetime
    memo: str
    job_id: JobId
    kind: ChargeKind
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """An offer, or everything that it stands for, is not asked for again before `until`. "" means any."""

    provider: str
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    market: str = ""  # "spot", "on_demand"
    until: datetime
    reason: str
