"""What a plan says: the choice, what else was good, and why everything else lost. Values only."""

from dataclasses import dataclass
from enum import IntEnum

from crucible.core.offers import Listing
from crucible.model.spec import Strategy
from crucible.model.units import MicroUsd


class Rule(IntEnum):
    """Why an offer cannot be the choice. The first that applies, in this order, is the one that is told."""

    NONE = 0
    PROVIDER = 1
    BACKEND = 2
    GPU_TYPE = 3
    GPU_MEMORY = 4
    GPUS_PER_NODE = 5
    NO_GPUS_WANTED = 6
    CPU_MEMORY = 7
    CPUS = 8
    STORAGE = 9
    FABRIC = 10
    NODE_LIMIT = 11
    SPOT = 12
    LOCALITY = 13
    CROSS_CLOUD = 14
    PRICE_UNKNOWN = 15
    PRICE_STALE = 16
    RISK_UNKNOWN = 17
    SPEED_UNKNOWN = 18
    PRICE_LIMIT = 19
    QUOTA = 20
    SOLD_OUT = 21
    DEADLINE = 22
    BUDGET = 23
    RELIABILITY = 24

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def field(self) -> str:
        """Of the spec: what one would change."""
        return FIELDS[self]


FIELDS = {
    Rule.NONE: "",
    Rule.PROVIDER: "constraints.providers",
    Rule.BACKEND: "execution.backend",
    Rule.GPU_TYPE: "resources.gpu_type",
    Rule.GPU_MEMORY: "resources.gpu_memory",
    Rule.GPUS_PER_NODE: "resources.max_gpus_per_node",
    Rule.NO_GPUS_WANTED: "resources.gpus",
    Rule.CPU_MEMORY: "resources.cpu_memory",
    Rule.CPUS: "resources.cpus",
    Rule.STORAGE: "resources.storage",
    Rule.FABRIC: "resources.gpus",
    Rule.NODE_LIMIT: "resources.gpus",
    Rule.SPOT: "constraints.allow_spot",
    Rule.LOCALITY: "data.locality",
    Rule.CROSS_CLOUD: "data.replication_policy",
    Rule.PRICE_UNKNOWN: "constraints.max_price_age",
    Rule.PRICE_STALE: "constraints.max_price_age",
    Rule.RISK_UNKNOWN: "constraints.min_reliability",
    Rule.SPEED_UNKNOWN: "resources.estimated_on",
    Rule.PRICE_LIMIT: "constraints.max_price_per_hour",
    Rule.QUOTA: "resources.gpus",
    Rule.SOLD_OUT: "resources.gpus",
    Rule.DEADLINE: "constraints.deadline",
    Rule.BUDGET: "constraints.budget",
    Rule.RELIABILITY: "constraints.min_reliability",
}


@dataclass(frozen=True, slots=True)
class Part:
    """So many machines of one offer."""

    listing: Listing
    count: int
    tasks: int = 1  # that they run in all
    waves: int = 1  # tasks that a seat runs, one after another
    hours: float | None = None  # of many tasks: expected until the last of them here has ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way to run the job. Hours and money are None where the spec does not say how long the work takes."""

    parts: tuple[Part, ...]
    is_enabled: bool
    price_per_hour: MicroUsd  # all machines
    start_s: float  # until the machines are there
    staging_h: float  # until the data is there
    work_h: float | None  # without any interruption
    expected_h: float | None  # start, data, work, and what interruptions cost
    p50_h: float | None
    p90_h: float | None
    cost: MicroUsd | None  # expected, data included
    cost_p50: MicroUsd | None
    cost_p90: MicroUsd | None
    egress: MicroUsd
    interruptions: float | None  # expected
    interval_s: float | None  # between checkpoints
    reliability: float  # probability to finish within deadline and budget; 1 where there is neither and no risk
    confidence: str  # of the hours: high, medium, low
    usd_per_step: float | None
    usd_per_token: float | None
    on_demand_cost: MicroUsd | None  # the same machines without spot, if they are sold so
    score: float  # of the strategy; the least wins
    why: str

    @property
    def first(self) -> Listing:
        return self.parts[0].listing

    @property
    def nodes(self) -> int:
        return sum(part.count for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Everything that one rule turned down, with the cheapest of them as an example."""

    rule: Rule
    count: int
    example: Listing
    reason: str  # about the example


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    strategy: Strategy
    tasks: int
    chosen: Candidate | None
    alternatives: tuple[Candidate, ...]  # none of them is beaten in cost, time and risk at once
    others: tuple[Candidate, ...]  # the best of each provider that is not among them
    runnable: Candidate | None  # the best of what is enabled: what submit would buy
    refusals: tuple[Refusal, ...]
    considered: int
    feasible: int
    bound: float  # at most so far from the optimum, as a share of what the strategy makes least
    notes: tuple[str, ...]  # what a person should know: an estimate that is missing, a price that is old
