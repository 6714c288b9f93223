"""Predictions of `core.risk` against recorded spot machines: hazard and gaps of a trace's first half predict how jobs
fare in its second half, where they are replayed tick by tick. In hindsight, with what the second half itself says, only
the model is wrong; the rest is that markets change. Figures without a bound. Needs spot_traces in CRUCIBLE_DATA and
says so if it is not there."""

import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.core.risk import Exposure, course, finish_by

HOUR = 3600.0
WORK_H = (1.0, 4.0, 12.0, 24.0)
CHECKPOINT_H = 60 / HOUR
BOOT_H = 300 / HOUR
STARTS = 60  # of the same job, spread over the second half
SLACK = 1.5  # the limit of which the odds are asked, in multiples of the work
ROUNDS = 10  # of a recording, after which a job counts as one that never ends


@dataclass(frozen=True)
class Recording:
    """Ticks in which a gang could be held."""

    name: str
    machines: int
    tick_h: float
    held: Sequence[bool]

    def half(self, which: int) -> "Recording":
        middle = len(self.held) // 2
        return Recording(self.name, self.machines, self.tick_h, self.held[middle:] if which else self.held[:middle])

    @property
    def losses(self) -> int:
        return sum(before and not after for before, after in zip(self.held, self.held[1:], strict=False))

    @property
    def held_h(self) -> float:
        return sum(self.held) * self.tick_h

    @property
    def gap_h(self) -> float:
        """The mean time until there is a gang again."""
        return (len(self.held) * self.tick_h - self.held_h) / max(self.losses, 1)


@dataclass(frozen=True)
class Outcome:
    wall_h: float
    billed_h: float
    is_done: bool


@dataclass(frozen=True)
class Comparison:
    wall: float  # predicted / seen - 1
    billed: float
    odds: float  # predicted - seen
    undone: int  # replays that never ended; the other figures leave them out


def measure() -> Iterator[Figure]:
    folder = data_folder() / "spot_traces"
    if not folder.is_dir():
        print(f"traces: not run, there is no {folder}; name the folder of the data with CRUCIBLE_DATA", file=sys.stderr)
        return
    recordings = [recording(path) for path in sorted(folder.glob("*/*/*/*.json"))]
    usable = [r for r in recordings if is_usable(r)]
    context = {"traces": len(usable), "too_thin": len(recordings) - len(usable)}
    for kind, basis in (("forecast", 0), ("hindsight", 1)):
        before = timing.own()
        found = [comparison for r in usable for comparison in compare(r.half(basis), r.half(1))]
        yield from figures(kind, found, timing.own() - before, context)


def figures(
    kind: str, found: Sequence[Comparison], spent: timing.Spent, context: dict[str, object]
) -> Iterator[Figure]:
    for what, errors in (
        ("billed", [100 * c.billed for c in found]),
        ("wall", [100 * c.wall for c in found]),
        ("odds", [100 * c.odds for c in found]),
    ):
        sizes = [abs(error) for error in errors]
        spread = {"p90": statistics.quantiles(sizes, n=10)[8], "bias": statistics.median(errors)}
        yield Figure(
            name=f"traces.{kind}_{what}_error_pct",
            value=statistics.median(sizes),
            unit="%, median of |predicted - seen|",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={**context, "comparisons": len(found), "replays_undone": sum(c.undone for c in found), **spread},
        )


def data_folder() -> Path:
    named = os.environ.get("CRUCIBLE_DATA")
    return Path(named) if named else Path(__file__).parents[2] / "shared" / "data"


def recording(path: Path) -> Recording:
    told = json.loads(path.read_text(encoding="utf-8"))
    counts = [int(count) for count in told["data"]]
    machines = max(*counts, 1)
    name = f"{path.parent.name}/{path.stem}"
    return Recording(name, machines, told["metadata"]["gap_seconds"] / HOUR, [count >= machines for count in counts])


def is_usable(whole: Recording) -> bool:
    """A half in which a gang was never lost, or hardly ever held, tells nothing of the other."""
    return all(half.losses >= 1 and half.held_h >= 6 for half in (whole.half(0), whole.half(1)))


def compare(past: Recording, future: Recording) -> Iterator[Comparison]:
    exposure = predicted(past)
    expected = course(exposure)
    in_time = finish_by(exposure, expected, SLACK * exposure.work_h)
    for row, work_h in enumerate(WORK_H):
        seen = list(replays(future, work_h, float(expected.interval_h[row])))
        done = [o for o in seen if o.is_done]
        if not done:
            continue
        yield Comparison(
            wall=expected.wall_h[row] / statistics.fmean(o.wall_h for o in done) - 1,
            billed=expected.billed_h[row] / statistics.fmean(o.billed_h for o in done) - 1,
            odds=in_time[row] - statistics.fmean(o.is_done and o.wall_h <= SLACK * work_h for o in seen),
            undone=len(seen) - len(done),
        )


def predicted(past: Recording) -> Exposure:
    def column(value: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.full(len(WORK_H), value)

    return Exposure(
        work_h=np.array(WORK_H),
        hazard=column(past.losses / past.held_h),
        checkpoint_h=column(CHECKPOINT_H),
        restart_h=column(past.gap_h + BOOT_H),
        billed_restart_h=column(BOOT_H),
        interval_h=column(np.nan),
    )


def replays(future: Recording, work_h: float, interval_h: float) -> Iterator[Outcome]:
    """The same job from many moments at which a gang could be held. The recording goes round: one that ended would
    leave out the long runs."""
    possible = [tick for tick, is_held in enumerate(future.held) if is_held]
    for tick in possible[:: max(1, len(possible) // STARTS)]:
        yield replay(future, tick, work_h, interval_h)


def replay(future: Recording, tick: int, work_h: float, interval_h: float) -> Outcome:
    """`tick` counts on past the end. Work and checkpoints take whole ticks only by chance, so time is kept apart."""
    saved = billed = 0.0
    boot_h, first = 0.0, tick
    while True:
        end = tick
        while future.held[end % len(future.held)] and (end - tick) * future.tick_h < boot_h + 3 * work_h:
            end += 1
        life_h = (end - tick) * future.tick_h
        used_h, saved = worked(life_h, boot_h, work_h, interval_h, saved)
        billed += used_h
        if saved >= work_h or tick - first > ROUNDS * len(future.held):
            return Outcome((tick - first) * future.tick_h + used_h, billed, saved >= work_h)
        while not future.held[end % len(future.held)]:
            end += 1
        tick, boot_h = end, BOOT_H


def worked(life_h: float, boot_h: float, work_h: float, interval_h: float, saved: float) -> tuple[float, float]:
    """How much of a life was used, and how much work is safe after it."""
    now = boot_h
    while True:
        is_last = work_h - saved <= interval_h * (1 + 1e-9)
        now += work_h - saved if is_last else interval_h + CHECKPOINT_H
        if now > life_h:
            return life_h, saved
        if is_last:
            return now, work_h
        saved += interval_h
