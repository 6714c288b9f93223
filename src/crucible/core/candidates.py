"""What each way to run a job costs, takes and risks, as columns. A way is so many machines of one offer; a mixed way
has some of them on demand, so that fewer can be taken away."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np

from crucible.core import cost, risk
from crucible.core.offers import UNKNOWN, Bools, Codes, Floats, Ints, OfferTable, on_demand_sibling
from crucible.core.rules import Ruling, home_of
from crucible.model.spec import Constraints, JobSpec
from crucible.model.units import MICRO

# A checkpoint holds weights and optimizer state and is written at a disk's speed; without a known size, half a minute.
CHECKPOINT_S = 30.0
CHECKPOINT_BYTES_PER_PARAMETER = 14.0
CHECKPOINT_BYTES_PER_S = 1e9
LEAST_CHECKPOINT_S = 5.0
# After an interruption: set-up and loading, on top of what it takes to get machines.
RELOAD_S = 60.0
# Stands in for the hours of work that nobody stated: ways are compared by what an hour costs.
NOMINAL_H = 1.0
SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    row: Ints  # the offer; of a mixed way the one that can be taken away
    firm_row: Ints  # the offer of its other machines; UNKNOWN if there are none
    nodes: Ints
    firm: Ints  # machines of `firm_row`
    price: Ints  # of all machines for an hour
    start_h: Floats
    staging_h: Floats
    egress: Ints
    hazard: Floats  # of the gang
    work_h: Floats
    checkpoint_h: Floats
    restart_h: Floats
    interval_h: Floats  # asked for; NaN: the best
    course: risk.Course
    wall_h: Floats  # expected, from now on
    cost: Ints  # expected

    def __len__(self) -> int:
        return len(self.row)

    @property
    def exposure(self) -> risk.Exposure:
        return risk.Exposure(
            work_h=self.work_h,
            hazard=self.hazard,
            checkpoint_h=self.checkpoint_h,
            restart_h=self.restart_h,
            billed_restart_h=self.restart_h,
            interval_h=self.interval_h,
        )

    def take(self, chosen: Ints | Bools) -> "Ways":
        columns = {name: getattr(self, name)[chosen] for name in COLUMNS}
        course = risk.Course(**{name: getattr(self.course, name)[chosen] for name in COURSE})
        return Ways(course=course, **columns)


COLUMNS = tuple(field.name for field in fields(Ways) if field.name != "course")
COURSE = tuple(field.name for field in fields(risk.Course))


def joined(several: Sequence[Ways]) -> Ways:
    columns = {name: np.concatenate([getattr(ways, name) for ways in several]) for name in COLUMNS}
    course = {name: np.concatenate([getattr(ways.course, name) for ways in several]) for name in COURSE}
    return Ways(course=risk.Course(**course), **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rough:
    """What offers come to if nothing happens: cheap to say of all of them, and no interruption betters it."""

    row: Ints
    wall_h: Floats
    cost: Floats  # micro-dollars
    spare_h: Floats  # that the budget pays for beyond that; inf without one

    def take(self, chosen: Ints | Bools) -> "Rough":
        return Rough(
            row=self.row[chosen],
            wall_h=self.wall_h[chosen],
            cost=self.cost[chosen],
            spare_h=self.spare_h[chosen],
        )


@dataclass(frozen=True, slots=True)
class Basis:
    """What the columns of ways are made of: per shape, per place and per seller."""

    nodes: Ints
    work_h: Floats  # NOMINAL_H where nobody says
    data: cost.Staging
    start_h: Floats


def basis_of(spec: JobSpec, table: OfferTable, ruling: Ruling, hours: Floats) -> Basis:
    work_h = np.where(np.isnan(hours), NOMINAL_H, hours)
    return Basis(ruling.gang.nodes, work_h, staged(spec, table, ruling), table.sellers.start_s / SECONDS)


def rough(table: OfferTable, basis: Basis, rows: Ints, budget: int | None) -> Rough:
    shape, place = table.shape[rows], table.place[rows]
    price = (table.price[rows] * basis.nodes[shape]).astype(np.float64)
    egress = gathered(basis.data.usd, place) * MICRO
    # The seller follows from the shape: one look for both.
    paid_h = (basis.work_h + basis.start_h[table.shapes.seller])[shape] + gathered(basis.data.during_h, place)
    spare_h = np.full(len(rows), np.inf)
    if budget is not None:
        left = budget - egress
        spare_h[left < 0] = -np.inf
        np.divide(left, price, out=spare_h, where=(price > 0) & (left >= 0))
        spare_h -= paid_h
    return Rough(
        row=rows,
        wall_h=paid_h + gathered(basis.data.before_h, place),
        cost=price * paid_h + egress,
        spare_h=spare_h,
    )


def gathered(column: Floats, index: Codes) -> Floats:
    """`column[index]`, quickly where nothing is in it: most jobs move no data."""
    return column[index] if column.any() else np.zeros(len(index))


def ways_of(spec: JobSpec, table: OfferTable, basis: Basis, rows: Ints) -> Ways:
    """One way per offer of `rows`."""
    shape, place = table.shape[rows], table.place[rows]
    nodes, start_h = basis.nodes[shape], basis.start_h[table.seller[rows]]
    interval = spec.checkpoint.interval
    return priced(
        table,
        Ways(
            row=rows,
            firm_row=np.full(len(rows), UNKNOWN),
            nodes=nodes,
            firm=np.zeros(len(rows), dtype=np.int64),
            price=table.price[rows] * nodes,
            start_h=start_h,
            staging_h=basis.data.before_h[place],
            egress=np.rint(basis.data.usd[place] * MICRO).astype(np.int64),
            hazard=table.hazard[rows] * nodes,
            work_h=basis.work_h[shape] + basis.data.during_h[place],
            checkpoint_h=np.full(len(rows), checkpoint_s(spec) / SECONDS),
            restart_h=start_h + RELOAD_S / SECONDS,
            interval_h=np.full(len(rows), np.nan if interval is None else interval.total_seconds() / SECONDS),
            course=NO_COURSE,
            wall_h=NO_COURSE.wall_h,
            cost=np.zeros(0, dtype=np.int64),
        ),
    )


def staged(spec: JobSpec, table: OfferTable, ruling: Ruling) -> cost.Staging:
    """Nothing where there is no data, or nobody says how much."""
    nothing = np.zeros(len(table.places.region))
    moved = ruling.moves or cost.Moves(usd=nothing, hours=nothing)
    made = cost.staging(cost.Moves(usd=np.nan_to_num(moved.usd), hours=moved.hours), spec.data.replication_policy)
    return cost.with_brought(made, table, spec.data.brought)


_NONE = np.zeros(0)
NO_COURSE = risk.Course(interval_h=_NONE, wall_h=_NONE, billed_h=_NONE, interruptions=_NONE)


def checkpoint_s(spec: JobSpec) -> float:
    parameters = spec.workload.parameters
    if parameters is None:
        return CHECKPOINT_S
    return max(LEAST_CHECKPOINT_S, parameters * CHECKPOINT_BYTES_PER_PARAMETER / CHECKPOINT_BYTES_PER_S)


def priced(table: OfferTable, ways: Ways) -> Ways:
    """With how they are expected to go, and what that costs."""
    course = risk.course(ways.exposure)
    seller = table.seller[ways.row]
    billed = cost.expected_billed_hours(
        ways.start_h + course.billed_h,
        1 + course.interruptions,
        table.sellers.unit_s[seller],
        table.sellers.minimum_s[seller],
    )
    return replace(
        ways,
        course=course,
        wall_h=ways.start_h + ways.staging_h + course.wall_h,
        cost=cost.machine_cost(ways.price, np.ones(len(ways), dtype=np.int64), billed) + ways.egress,
    )


def mixed(table: OfferTable, spot: Ways, is_usable: Callable[[int], bool]) -> Ways:
    """Every way to put some machines of these gangs on demand, where the same type is sold so in the same zone.
    `is_usable`: which offers may be part of it."""
    chosen, firm_rows, firm = [], [], []
    for index in range(len(spot)):
        sibling = on_demand_sibling(table, int(spot.row[index]))
        if sibling == UNKNOWN or not is_usable(sibling):
            continue
        for count in range(1, int(spot.nodes[index])):
            chosen.append(index)
            firm_rows.append(sibling)
            firm.append(count)
    ways = spot.take(np.array(chosen, dtype=np.int64))
    share, steady = np.array(firm, dtype=np.int64), np.array(firm_rows, dtype=np.int64)
    taken = ways.nodes - share
    return priced(
        table,
        replace(
            ways,
            firm_row=steady,
            firm=share,
            price=table.price[ways.row] * taken + table.price[steady] * share,
            hazard=table.hazard[ways.row] * taken,
        ),
    )


# --- limits ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely each way keeps within its limits; 1 where there is none."""

    in_time: Floats
    in_budget: Floats

    @property
    def reliability(self) -> Floats:
        """What is late is also dear: both follow from the same interruptions, so the less likely is the probability
        of both."""
        return np.minimum(self.in_time, self.in_budget)


def odds(limits: Constraints, ways: Ways, now: datetime) -> Odds:
    sure = np.ones(len(ways))
    in_time = in_budget = sure
    if limits.deadline is not None:
        left = (limits.deadline - now).total_seconds() / SECONDS - ways.start_h - ways.staging_h
        in_time = risk.finish_by(ways.exposure, ways.course, left)
    if limits.budget is not None:
        in_budget = risk.billed_within(ways.exposure, ways.course, affordable_h(ways, limits.budget))
    return Odds(in_time, in_budget)


def affordable_h(ways: Ways, budget: int) -> Floats:
    """How long the machines may work before the money is gone; what costs nothing may work for ever."""
    left = (budget - ways.egress).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        hours = np.where(ways.price > 0, left / ways.price, np.where(left >= 0, np.inf, -np.inf))
    return hours - ways.start_h


# --- what strategies ask about, per seller and per place ----------------------------------------------------


def own_sellers(table: OfferTable) -> Bools:
    return np.array([name in cost.OWN for name in table.sellers.name], dtype=bool)


def near_places(spec: JobSpec, table: OfferTable) -> Bools:
    """Where the data is; everywhere if there is none."""
    home, places = home_of(spec), table.places
    if home is None:
        return np.ones(len(places.region), dtype=bool)
    near: Bools = np.array([home.region in (None, region) for region in places.region], dtype=bool)
    near &= places.seller == table.seller_code(home.provider)
    return near


def preferred_places(spec: JobSpec, table: OfferTable) -> Bools:
    wanted = spec.constraints.preferred_regions
    if not wanted:
        return np.zeros(len(table.places.region), dtype=bool)
    return np.array([region in wanted for region in table.places.region], dtype=bool)
