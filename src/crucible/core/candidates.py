"""What each way to run a job costs, takes and risks, as columns. A way is so many machines of one offer; a mixed way
has some of them on demand, so that fewer can be taken away."""

from dataclasses import dataclass, fields, replace
from datetime import datetime

import numpy as np

from crucible.core import cost, risk
from crucible.core.offers import UNKNOWN, Bools, Floats, Ints, OfferTable
from crucible.core.rules import OWN, Ruling, home_of
from crucible.model.offer import Market
from crucible.model.spec import JobSpec
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
        columns = {f.name: getattr(self, f.name)[chosen] for f in fields(self) if f.name != "course"}
        course = risk.Course(**{f.name: getattr(self.course, f.name)[chosen] for f in fields(risk.Course)})
        return Ways(course=course, **columns)


def joined(first: Ways, second: Ways) -> Ways:
    def both(a: object, b: object, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.concatenate([getattr(a, name), getattr(b, name)])

    columns = {f.name: both(first, second, f.name) for f in fields(Ways) if f.name != "course"}
    course = risk.Course(**{f.name: both(first.course, second.course, f.name) for f in fields(risk.Course)})
    return Ways(course=course, **columns)  # type: ignore[arg-type]


def ways_of(spec: JobSpec, table: OfferTable, ruling: Ruling, rows: Ints, hours: Floats) -> Ways:
    """One way per offer of `rows`; `hours` of work per shape, NaN where nobody says."""
    shape, place = table.shape[rows], table.place[rows]
    seller = table.shapes.seller[shape]
    data = staged(spec, table, ruling)
    nodes = ruling.gang.nodes[shape]
    start_h = table.sellers.start_s[seller] / SECONDS
    work_h = hours[shape] + data.during_h[place]
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
            staging_h=data.before_h[place],
            egress=np.rint(data.usd[place] * MICRO).astype(np.int64),
            hazard=table.hazard[rows] * nodes,
            work_h=np.where(np.isnan(work_h), NOMINAL_H, work_h),
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
    return cost.staging(cost.Moves(usd=np.nan_to_num(moved.usd), hours=moved.hours), spec.data.replication_policy)


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
    seller = table.shapes.seller[table.shape[ways.row]]
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


def mixed(table: OfferTable, spot: Ways) -> Ways:
    """Every way to put some machines of these gangs on demand, where the same type is sold so in the same zone."""
    chosen, firm_rows, firm = [], [], []
    for index in range(len(spot)):
        sibling = on_demand_sibling(table, int(spot.row[index]))
        if sibling == UNKNOWN:
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


def on_demand_sibling(table: OfferTable, row: int) -> int:
    """The same type in the same zone on demand; ids are sorted, so it stands close by."""
    for other in range(max(0, row - 2), min(len(table), row + 3)):
        is_same = table.shape[other] == table.shape[row] and table.place[other] == table.place[row]
        is_sold = table.market[other] == Market.ON_DEMAND and table.price[other] != UNKNOWN
        if is_same and is_sold and table.zone[other] == table.zone[row]:
            return other
    return UNKNOWN


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


def odds(spec: JobSpec, ways: Ways, now: datetime) -> Odds:
    limits, sure = spec.constraints, np.ones(len(ways))
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


def undisturbed_h(ways: Ways) -> Floats:
    """From now to the end if nothing happens."""
    return ways.start_h + ways.staging_h + ways.work_h


def is_own(table: OfferTable, ways: Ways) -> Bools:
    own = np.array([name in OWN for name in table.sellers.name], dtype=bool)
    return own[table.shapes.seller[table.shape[ways.row]]]


def is_near(spec: JobSpec, table: OfferTable, ways: Ways) -> Bools:
    home = home_of(spec)
    if home is None:
        return np.ones(len(ways), dtype=bool)
    code = table.seller_code(home.provider)
    places = table.places
    near: Bools = np.array([home.region in (None, region) for region in places.region], dtype=bool)
    near &= places.seller == code
    return near[table.place[ways.row]]


def is_preferred(spec: JobSpec, table: OfferTable, ways: Ways) -> Bools:
    wanted = spec.constraints.preferred_regions
    preferred = np.array([region in wanted for region in table.places.region], dtype=bool)
    return preferred[table.place[ways.row]]
