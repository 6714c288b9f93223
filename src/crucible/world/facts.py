"""What a world is made of. Values only; `world.World` gives them a life."""

from dataclasses import dataclass, field
from enum import StrEnum


class Market(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    name: str
    vcpus: int
    memory_mib: int
    gpus: int = 0
    gpu: str | None = None
    gpu_memory_mib: int = 0
    quota: str = "standard"  # the pool that its vCPUs count against: "p", "g", "standard"
    has_fast_fabric: bool = False
    network: str = "Up to 10 Gigabit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    name: str  # "us-east-1a"
    id: str  # "use1-az1"
    region: str


@dataclass(frozen=True, slots=True)
class PricePoint:
    """From this whole second on. A point that repeats the price before it says nothing and is dropped."""

    at: int
    microusd_per_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sale:
    """One type in one zone."""

    zone: str
    type: str
    on_demand: int  # micro-dollars per hour
    spot: tuple[PricePoint, ...] = ()  # in order; empty: not sold as spot
    on_demand_capacity: int = 1_000_000  # machines
    spot_capacity: int = 1_000_000
    hazard_per_hour: float = 0.0  # of one spot machine
    taken_at: tuple[int, ...] = ()  # a trace: at these moments every spot machine of this sale is taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a seller bills. All of it is per second, from the launch to the end, both whole seconds."""

    minimum_s: int = 60
    free_if_taken_within_s: int = 3600  # a spot machine that the seller takes so early is not charged for
    disk_microusd_per_gib_month: int = 80_000
    month_s: int = 730 * 3600
    address_microusd_per_hour: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: str
    quotas: dict[tuple[str, str, Market], int] = field(default_factory=dict)  # (region, pool, market) -> vCPUs
    default_quota: int = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    types: tuple[MachineType, ...]
    zones: tuple[Zone, ...]
    sales: tuple[Sale, ...]
    accounts: tuple[Account, ...]
    terms: Terms = field(default_factory=Terms)
    boot_s: tuple[float, float] = (20.0, 60.0)  # from the launch to a running machine: evenly between
    stop_s: tuple[float, float] = (2.0, 8.0)  # from the order to end it to its end
    notice_s: float = 120.0  # before a spot machine is taken
    rebalance_s: float = 300.0  # before that, a hint that it may be
    remember_s: float = 3600.0  # how long an ended machine is still listed
    # Private addresses are real on the computer that plays the machines: all of 127/8 is its own.
    private_network: str = "127.64.0.0/10"
    public_network: str = "198.18.0.0/15"  # set aside for benchmarks: nobody's in the real world
