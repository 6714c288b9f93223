"""What offers are to many equal tasks. A lot is the machines of one offer that run some tasks side by side, on their
seats, and one after another, in waves: set up once, paid for by the wave. Money is affine in the waves, so a program
over whole numbers of machines and waves is exact."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from crucible.core import candidates, cost, risk
from crucible.core.candidates import Ways
from crucible.core.offers import Bools, Floats, Ints, OfferTable
from crucible.core.plan import Study
from crucible.core.seats import seats
from crucible.core.unfold import kind_of
from crucible.model.spec import JobSpec, Replication
from crucible.model.task import TaskKind
from crucible.model.units import MICRO

UNLIMITED = 10**9
# Of hours that divide evenly, the last bit is not a wave.
TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Lots:
    """One entry per offer. Micro-dollars and hours are expected ones."""

    ways: Ways  # one task on it, without data
    seats: Ints  # tasks at a time on one gang
    setup: Floats  # dollars until the first task of a gang runs, data included
    data: Floats  # dollars of the data that all tasks of a gang read
    wave: Floats  # dollars of a gang while a task runs on each seat
    task: Floats  # dollars of the data that each task reads for itself
    setup_h: Floats  # from now until the first task runs
    paid_h: Floats  # of those: in which machines are paid for
    wave_h: Floats
    rounding: Floats  # dollars by which the bill of a single wave is rounded up
    waves: Ints  # at most so many on one gang
    reliability: Floats  # odds that so many are done in time
    source: Ints  # where gangs come from: the offer, or a number below zero for those that are held
    least: Ints  # gangs that are held and stay
    most: Ints  # gangs that can be had
    is_shared: bool  # the next task of a machine finds it set up; else each has machines of its own

    def __len__(self) -> int:
        return len(self.seats)

    def take(self, kept: Ints | Bools) -> "Lots":
        columns = {name: getattr(self, name)[kept] for name in COLUMNS}
        return Lots(ways=self.ways.take(kept), is_shared=self.is_shared, **columns)


COLUMNS = tuple(field.name for field in fields(Lots) if field.name not in ("ways", "is_shared"))


def joined(several: Sequence[Lots]) -> Lots:
    columns = {name: np.concatenate([getattr(lots, name) for lots in several]) for name in COLUMNS}
    ways = candidates.joined([lots.ways for lots in several])
    return Lots(ways=ways, is_shared=several[0].is_shared, **columns)


def lots_of(found: Study, rows: Ints) -> Lots:
    """Of offers that fit one task. Waves are yet to be limited."""
    spec, table = found.question.spec, found.table
    data, place = found.basis.data, table.place[rows]
    is_kept = is_data_kept(spec)
    bare = replace(
        found.basis,
        data=replace(data, usd=np.zeros_like(data.usd), during_h=0 * data.during_h if is_kept else data.during_h),
    )
    ways = candidates.ways_of(spec, table, bare, rows)
    moved = np.rint(data.usd * MICRO)[place]
    paid_h = ways.start_h + (data.during_h[place] if is_kept else 0.0)
    price = ways.price.astype(np.float64)
    lots = Lots(
        ways=ways,
        seats=seats_of(spec, table, ways),
        setup=price * paid_h + (moved if is_kept else 0.0),
        data=moved if is_kept else np.zeros(len(rows)),
        wave=price * finite(ways.course.billed_h),
        task=np.zeros(len(rows)) if is_kept else moved,
        setup_h=ways.staging_h + paid_h,
        paid_h=paid_h,
        wave_h=ways.course.wall_h,
        rounding=np.zeros(len(rows)),
        waves=np.full(len(rows), UNLIMITED),
        reliability=np.ones(len(rows)),
        source=rows,
        least=np.zeros(len(rows), dtype=np.int64),
        most=machines_to_be_had(table, ways),
        is_shared=kind_of(spec) is TaskKind.SEATED,
    )
    exact = bill_of_one(table, lots, np.ones(len(rows), dtype=np.int64))
    lots = replace(lots, rounding=exact + lots.data - lots.setup - lots.wave)
    return lots if lots.is_shared else alone(lots)


def is_data_kept(spec: JobSpec) -> bool:
    """Whether the next task on a machine finds the data that the first one read. Shards read a part of their own."""
    return spec.shards is None and spec.data.replication_policy is not Replication.NONE


def finite(hours: Floats) -> Floats:
    return np.minimum(hours, cost.LONGEST_H)


def alone(lots: Lots) -> Lots:
    """Each task has a gang of its own, which is set up for it."""
    return replace(
        lots,
        seats=np.minimum(lots.seats, 1),
        setup=np.zeros(len(lots)),
        data=np.zeros(len(lots)),
        wave=lots.setup - lots.data + lots.wave,
        task=lots.task + lots.data,
        setup_h=lots.ways.staging_h,
        paid_h=np.zeros(len(lots)),
        wave_h=lots.paid_h + lots.wave_h,
    )


def seats_of(spec: JobSpec, table: OfferTable, ways: Ways) -> Ints:
    """A gang of several machines runs one task; where tasks share machines there is none of that."""
    shapes, need = table.shapes, spec.resources
    used, of_row = np.unique(table.shape[ways.row], return_inverse=True)
    room = np.array(
        [seats(need, int(shapes.gpus[i]), float(shapes.cpus[i]), float(shapes.memory_gib[i])) for i in used.tolist()],
        dtype=np.int64,
    )[of_row.reshape(-1)]
    in_gangs = 0 if kind_of(spec) is TaskKind.SEATED else 1
    return np.where(ways.nodes == 1, np.maximum(room, 1), in_gangs)


def machines_to_be_had(table: OfferTable, ways: Ways) -> Ints:
    """Gangs of own machines that nobody else has. A computer of one's own that nobody counts is one machine: asked for
    twice, it would have the same CPUs."""
    most = np.full(len(ways), UNLIMITED, dtype=np.int64)
    for index in np.flatnonzero(np.isin(ways.row, list(table.live))).tolist():
        offer = table.live[int(ways.row[index])]
        free = offer.free_machines
        if free is None and offer.stock is None and offer.target.provider in cost.OWN:
            free = 1
        if free is not None:
            most[index] = free // int(ways.nodes[index])
    return most


def bill(table: OfferTable, lots: Lots, waves: Ints) -> Floats:
    """Dollars of one gang for so many waves, as its seller rounds them, without data."""
    if not lots.is_shared:
        return np.rint(waves * (lots.wave + lots.rounding))
    return bill_of_one(table, lots, waves)


def bill_of_one(table: OfferTable, lots: Lots, waves: Ints) -> Floats:
    """The waves of machines that are set up once."""
    ways, seller = lots.ways, table.seller[lots.ways.row]
    billed = cost.expected_billed_hours(
        lots.paid_h + finite(ways.course.billed_h) * waves,
        1 + finite(ways.course.interruptions) * waves,
        table.sellers.unit_s[seller],
        table.sellers.minimum_s[seller],
    )
    return cost.machine_cost(ways.price, np.ones(len(ways), dtype=np.int64), billed).astype(np.float64)


# --- waves ------------------------------------------------------------------------------------------------


def until(lots: Lots, left_h: float) -> Lots:
    """With the waves that are expected to be done in time."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.floor((left_h - lots.setup_h) / lots.wave_h + TINY)
    waves = np.clip(np.nan_to_num(fitting, posinf=UNLIMITED), 0, UNLIMITED).astype(np.int64)
    return replace(lots, waves=np.minimum(lots.waves, waves))


def likely(lots: Lots, left_h: float, least_odds: float) -> Lots:
    """With the most waves that are done in time with such odds: what can be taken away may have fewer."""
    risky = np.flatnonzero((lots.ways.hazard > 0) & (lots.waves > 0))
    if not len(risky):
        return lots
    some = lots.take(risky)
    low, high = np.zeros(len(risky), dtype=np.int64), some.waves.copy()
    while np.any(low < high):
        middle = (low + high + 1) // 2
        is_good = odds_of(some, middle, left_h) >= least_odds
        low, high = np.where(is_good, middle, low), np.where(is_good, high, middle - 1)
    waves, reliability = lots.waves.copy(), lots.reliability.copy()
    waves[risky] = low
    reliability[risky] = odds_of(some, low, left_h)
    return replace(lots, waves=waves, reliability=reliability)


def odds_of(lots: Lots, waves: Ints, left_h: float) -> Floats:
    """That so many waves are done in time; certain for none."""
    ways = serial(lots.ways, np.maximum(waves, 1))
    before = lots.setup_h if lots.is_shared else lots.setup_h + waves * (lots.wave_h - lots.ways.course.wall_h)
    return np.where(waves > 0, risk.finish_by(ways.exposure, ways.course, left_h - before), 1.0)


def serial(ways: Ways, waves: Ints) -> Ways:
    """So many tasks one after another. The end of each keeps what it made: it needs no checkpoint."""
    one, times = ways.course, waves.astype(np.float64)
    saves = one.interval_h < ways.work_h
    return replace(
        ways,
        work_h=ways.work_h * times,
        interval_h=one.interval_h,
        checkpoint_h=np.where(saves, ways.checkpoint_h, 0.0),
        course=risk.Course(
            interval_h=one.interval_h,
            wall_h=one.wall_h * times,
            billed_h=one.billed_h * times,
            interruptions=one.interruptions * times,
        ),
    )
