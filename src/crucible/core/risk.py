"""What interruptions do to work that saves itself now and then: how long it takes, how long it is paid for, and how
likely it ends in time. Columns in, columns out, one row per candidate, hours everywhere. No prices: see `core.cost`.

The model. A gang works in pieces; each but the last ends with a checkpoint that stops the work. Interruptions come at
a constant rate while machines are paid for: during work, during a checkpoint, and while a new gang boots and loads.
Each sends the job back to its last checkpoint: it waits for machines, unpaid and so with nothing to lose, boots,
loads, and does the piece again. docs/cost-model.md derives the formulas."""

from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from crucible.core.lateness import NEVER, STEEPEST, Losses, Pieces, in_time, losses
from crucible.core.offers import Floats

SHORTEST_H = 1 / 3600  # nobody saves more often than every second; keeps pieces countable where a checkpoint is free
# A quantile is looked for among GRID limits, then among as many between the two around it, and so on.
GRID = 16
NARROWINGS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposure:
    work_h: Floats
    hazard: Floats  # interruptions of the whole gang per hour; NaN: unknown, and so is every answer
    checkpoint_h: Floats  # one checkpoint stops the work for so long
    restart_h: Floats  # from an interruption until work goes on: machines, boot, load
    billed_restart_h: Floats  # the last part of it, in which machines are paid for
    interval_h: Floats  # between checkpoints; NaN: choose the best


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Expected, from the first moment of work to the end; inf where the work never gets done."""

    interval_h: Floats  # of work between checkpoints; all of the work where there is none
    wall_h: Floats
    billed_h: Floats  # of each machine
    interruptions: Floats


def optimal_interval(checkpoint_h: Floats, hazard: Floats) -> Floats:
    """Daly's, of higher order; inf where nothing can happen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_life = 1 / hazard
        root = np.sqrt(checkpoint_h * hazard / 2)
        interval = 2 * mean_life * root * (1 + root / 3 + root * root / 9) - checkpoint_h
    interval = np.where(root < 1, interval, mean_life)  # lives shorter than two checkpoints; unknown stays unknown
    return np.where(hazard == 0, np.inf, np.maximum(interval, SHORTEST_H))


def course(exposure: Exposure) -> Course:
    """Exact for a constant hazard."""
    hazard, interval = exposure.hazard, _interval(exposure)
    pieces = _pieces(exposure, interval)
    lost = pieces.count * np.expm1(_steep(hazard * pieces.length)) + np.expm1(_steep(hazard * pieces.last))
    lost *= np.exp(_steep(hazard * exposure.billed_restart_h))
    billed = np.divide(lost, hazard, out=pieces.total.copy(), where=hazard != 0)
    wall = billed + lost * (exposure.restart_h - exposure.billed_restart_h)
    if np.any(lost > NEVER):
        billed, wall, lost = (np.where(lost > NEVER, np.inf, column) for column in (billed, wall, lost))
    return Course(interval_h=interval, wall_h=wall, billed_h=billed, interruptions=lost)


def finish_by(exposure: Exposure, course: Course, limit_h: Floats) -> Floats:
    """The probability that the work is done `limit_h` after its first moment."""
    return _odds(exposure, course, exposure.restart_h - exposure.billed_restart_h).within(limit_h)


def billed_within(exposure: Exposure, course: Course, limit_h: Floats) -> Floats:
    """The probability that no machine is paid for longer than `limit_h`."""
    return _odds(exposure, course, np.zeros_like(exposure.work_h)).within(limit_h)


def wall_quantile(exposure: Exposure, course: Course, q: float | Floats, narrowings: int = NARROWINGS) -> Floats:
    """The least hours within which the work is done with probability `q`, 0 < q < 1: one for all, or one per row. A
    hundred times the price of `finish_by`: for a few candidates, not for all. Each narrowing makes it fifteen times as
    exact."""
    return _quantile(exposure, course, exposure.restart_h - exposure.billed_restart_h, q, narrowings)


def billed_quantile(exposure: Exposure, course: Course, q: float | Floats) -> Floats:
    return _quantile(exposure, course, np.zeros_like(exposure.work_h), q, NARROWINGS)


# --- pieces of work -----------------------------------------------------------------------------------


def _interval(exposure: Exposure) -> Floats:
    """The user's, or the best: pieces of one length, about as many as Daly's interval makes. With x = work / interval,
    n pieces cost about x²/n + n - 1 checkpoints, so n + 1 are better than n once x² passes n (n + 1). As the last needs
    no checkpoint, one piece less may be better still."""
    work = exposure.work_h
    ratio = work / optimal_interval(exposure.checkpoint_h, exposure.hazard)
    many = np.maximum(np.ceil(np.sqrt(ratio * ratio + 0.25) - 0.5), 1)
    fewer = np.maximum(many - 1, 1)
    is_fewer = _interruptions(exposure, fewer, work / fewer) <= _interruptions(exposure, many, work / many)
    best = work / np.where(is_fewer, fewer, many)
    return np.minimum(np.where(np.isnan(exposure.interval_h), best, exposure.interval_h), work)


def _interruptions(exposure: Exposure, count: Floats, length: Floats) -> Floats:
    """Of `count` equal pieces while they work, expected."""
    hazard = exposure.hazard
    return (count - 1) * np.expm1(_steep(hazard * (length + exposure.checkpoint_h))) + np.expm1(_steep(hazard * length))


def _pieces(exposure: Exposure, interval: Floats) -> Pieces:
    work, checkpoint = exposure.work_h, exposure.checkpoint_h
    ratio = np.divide(work, interval, out=np.ones_like(work), where=interval != 0)
    count = np.ceil(ratio * (1 - 1e-12)) - 1  # five fifths of the work are five pieces, whatever the last bit says
    return Pieces(count, interval + checkpoint, work - count * interval, work + count * checkpoint)


def _steep(exponent: Floats) -> Floats:
    return np.minimum(exponent, STEEPEST)


# --- distribution -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Odds:
    """What a limit is asked of. Rows that nothing can happen to are not among `rows`."""

    total: Floats
    rows: npt.NDArray[np.intp]
    pieces: Pieces
    hazard: Floats
    restart: Floats
    lost: Losses

    def within(self, limit_h: Floats) -> Floats:
        late = limit_h - self.total
        result = (late >= 0).astype(np.float64)
        if len(self.rows):
            result[self.rows] = in_time(self.pieces, self.hazard, self.lost, self.restart, late[self.rows])
        return result


def _odds(exposure: Exposure, course: Course, wait_h: Floats) -> _Odds:
    pieces = _pieces(exposure, course.interval_h)
    rows = np.flatnonzero(exposure.hazard != 0)
    part = Pieces(*(getattr(pieces, field.name)[rows] for field in fields(Pieces)))
    hazard, boot, wait = (column[rows] for column in (exposure.hazard, exposure.billed_restart_h, wait_h))
    return _Odds(pieces.total, rows, part, hazard, boot + wait, losses(part, hazard, boot, wait))


def _quantile(exposure: Exposure, course: Course, wait_h: Floats, q: float | Floats, narrowings: int) -> Floats:
    """On a grid that is narrowed: many limits cost little more than one."""
    if not np.all((np.asarray(q) > 0) & (np.asarray(q) < 1)):
        raise ValueError(f"a quantile is between 0 and 1, not {q}")
    odds = _odds(_repeated(exposure), _repeated(course), np.repeat(wait_h, GRID))
    low = total = odds.total[::GRID]
    ends = np.isfinite(course.wall_h)
    # By Markov's inequality it cannot be further out.
    high = low + np.where(ends, np.maximum(course.wall_h - low, 0), 0) / (1 - q)
    wanted, row = np.broadcast_to(q, low.shape)[:, np.newaxis], np.arange(len(low))
    for _ in range(narrowings):
        limits = low[:, np.newaxis] + (high - low)[:, np.newaxis] * (np.arange(GRID) / (GRID - 1))
        enough = odds.within(limits.ravel()).reshape(limits.shape) >= wanted
        enough[:, -1] = True
        first = np.argmax(enough, axis=1)
        low, high = limits[row, np.maximum(first - 1, 0)], limits[row, first]
    return np.where(ends, np.maximum(high, total), course.wall_h)


T = TypeVar("T", Exposure, Course)


def _repeated(columns: T) -> T:
    return type(columns)(**{field.name: np.repeat(getattr(columns, field.name), GRID) for field in fields(columns)})
