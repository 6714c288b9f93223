"""What the plan of a workflow says. Values only."""

from dataclasses import dataclass

from crucible.core.proposal import Candidate
from crucible.model.spec import Strategy
from crucible.model.units import NOTHING, MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What a step would run on. Hours are from now on, as expected if nothing fails."""

    name: str
    candidate: Candidate | None  # by itself, without what other steps hand it; None: it has ended already
    home: str  # "provider/region" of what it leaves
    begins_h: float
    fetch_h: float  # of its hours: until what it reads has arrived
    ends_h: float
    fetch_cost: MicroUsd  # of its machines meanwhile
    cost: MicroUsd | None  # of its machines, with that; None where nobody knows its hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """A tree on its way into another region, once for all that read it there."""

    step: str  # that left it
    source: str  # "provider/region"
    target: str
    size_gib: float
    hours: float
    cost: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """Which limit nothing keeps, and by how much."""

    field: str  # of the spec
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlan:
    strategy: Strategy
    steps: tuple[Placed, ...]  # in their order; none if nothing keeps the limits
    carried: tuple[Carried, ...] = ()
    cost: MicroUsd | None = None  # expected: machines and lanes; None where some hours are unknown
    moved: MicroUsd = NOTHING  # of it: lanes
    fetched: MicroUsd = NOTHING  # of it: machines that wait for data
    makespan_h: float | None = None
    bound: float = 0.0  # at most so far from the optimum, as a share of what the strategy makes least
    blocked: Blocked | None = None
    notes: tuple[str, ...] = ()
