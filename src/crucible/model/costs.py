"""What reports of costs are made of: by what they are told apart, and the sums. Money is whole micro-dollars; nothing
here is ever rounded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum

from crucible.model.account import Sight
from crucible.model.ids import JobId, UserId
from crucible.model.ledger import Usage
from crucible.model.units import NOTHING, MicroUsd

# What nobody said: no team, no project, no GPU.
NO_NAME = "-"


class Dimension(StrEnum):
    """What costs can be told apart by."""

    TEAM = "team"
    PROJECT = "project"
    USER = "user"
    PROVIDER = "provider"
    REGION = "region"
    GPU = "gpu"
    INSTANCE_TYPE = "instance_type"
    MARKET = "market"
    KIND = "kind"
    JOB = "job"
    DAY = "day"
    HOUR = "hour"

    @property
    def is_time(self) -> bool:
        return self in (Dimension.DAY, Dimension.HOUR)

    @property
    def names_people(self) -> bool:
        """Rows of it show what one person spent."""
        return self in (Dimension.USER, Dimension.JOB)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostKey:
    """For whom and for what: the same for every second of a stretch."""

    team: str
    project: str
    user: UserId
    provider: str
    region: str
    instance_type: str
    gpu: str
    market: str  # "spot", "on_demand"
    kind: str  # a ChargeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What adds up. `useful` is part of `cost`, the rest of it was idle. `saved` is against the price on demand;
    `unpriced` is the part of `cost` of which nobody knew that price. A job counts once: where its first machine is."""

    cost: MicroUsd = NOTHING
    useful: MicroUsd = NOTHING
    saved: MicroUsd = NOTHING
    unpriced: MicroUsd = NOTHING
    gpu_s: int = 0
    jobs: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(
            cost=MicroUsd(self.cost + other.cost),
            useful=MicroUsd(self.useful + other.useful),
            saved=MicroUsd(self.saved + other.saved),
            unpriced=MicroUsd(self.unpriced + other.unpriced),
            gpu_s=self.gpu_s + other.gpu_s,
            jobs=self.jobs + other.jobs,
        )

    @property
    def idle(self) -> MicroUsd:
        return MicroUsd(self.cost - self.useful)


SUM_NAMES = tuple(one.name for one in fields(Sums))
ZERO = Sums()


def total(many: Iterable[Sums]) -> Sums:
    """As `sum`, without a value for each step."""
    figures = [0] * len(SUM_NAMES)
    for one in many:
        for place, name in enumerate(SUM_NAMES):
            figures[place] += getattr(one, name)
    return sums_of(figures)


def sums_of(figures: Iterable[int]) -> Sums:
    cost, useful, saved, unpriced, gpu_s, jobs = map(int, figures)
    return Sums(
        cost=MicroUsd(cost),
        useful=MicroUsd(useful),
        saved=MicroUsd(saved),
        unpriced=MicroUsd(unpriced),
        gpu_s=gpu_s,
        jobs=jobs,
    )


@dataclass(frozen=True, slots=True)
class Ran:
    """A rank on a machine. No end: it runs. No devices: it used the machine as a whole."""

    start: datetime
    end: datetime | None
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A stretch with all that a report needs to know of it."""

    usage: Usage
    key: CostKey
    gpus: int  # of the machine
    on_demand_per_hour: MicroUsd | None  # when it was bought; None: nobody knew
    is_first: bool  # the job's first stretch
    ran: tuple[Ran, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A posting without a stretch: data that was moved."""

    at: datetime
    job_id: JobId
    key: CostKey
    cost: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPart:
    """What one job cost in one hour, of one kind."""

    hour: datetime
    job_id: JobId
    key: CostKey
    sums: Sums


# --- questions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Window:
    """Time in which the clocks of a zone are so far ahead of UTC, or behind it."""

    from_at: datetime
    to_at: datetime
    offset_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuery:
    """Windows follow one another, each bounded by whole hours. `scope` None: everybody's."""

    by: tuple[Dimension, ...]
    windows: tuple[Window, ...]
    where: Mapping[Dimension, str] = field(default_factory=dict)
    scope: Sight | None = None


def day_name(local: datetime) -> str:
    """`local` is a moment by the clocks of its zone."""
    return local.strftime("%Y-%m-%d")


def hour_name(hour: datetime) -> str:
    return hour.strftime("%Y-%m-%dT%H:00Z")


CostRow = tuple[tuple[str, ...], Sums]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFacts:
    """What is known of one moment: sums of what is closed, and what is not in them yet."""

    rows: tuple[CostRow, ...]
    charged: tuple[Charged, ...]
    moved: tuple[Moved, ...]
