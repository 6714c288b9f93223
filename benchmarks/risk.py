"""How far expected bills and odds are from a simulation that knows none of the formulas, and what they cost per row."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.core.risk import Exposure, billed_within, course, finish_by

SEED = 3
SETTINGS = 200
STANDARD_ERROR = 0.003  # of a simulated mean; the worst of 200 is three times as far off
ODDS_SETTINGS = 40
RUNS = 20_000
ROWS = 4_096
REPEATS = 30


def measure() -> Iterator[Figure]:
    sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]
    yield from cost_error()
    yield from odds_error()
    yield from speed()


def cost_error() -> Iterator[Figure]:
    from sim_cost.comparison import cases, cost_errors

    before = timing.own()
    errors = cost_errors(cases(SEED, SETTINGS), SEED, STANDARD_ERROR)
    spent = timing.own() - before
    yield Figure(
        name="risk.worst_cost_error_pct",
        value=100 * max(map(abs, errors)),
        unit="%",
        bound=2.0,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"settings": SETTINGS, "mean": 100 * sum(map(abs, errors)) / SETTINGS},
    )


def odds_error() -> Iterator[Figure]:
    from sim_cost.comparison import HOUR, Case, cases, exposure_of, played
    from sim_cost.event_simulation import run

    def worst(case: Case) -> float:
        setting = played(case, float(course(exposure_of([case])).interval_h[0]))
        random = Random(SEED)
        runs = [run(setting, random) for _ in range(RUNS)]
        exposure = exposure_of([case] * 19)
        walls, lives = sorted(r.wall_s / HOUR for r in runs), sorted(r.alive_s / HOUR for r in runs)
        errors = []
        for hours, odds in ((walls, finish_by), (lives, billed_within)):
            limits = np.array([hours[RUNS * part // 20] for part in range(1, 20)]) + 1e-9
            seen = np.searchsorted(hours, limits, side="right") / RUNS
            errors.append(float(np.abs(odds(exposure, course(exposure), limits) - seen).max()))
        return max(errors)

    before = timing.own()
    errors = [worst(case) for case in cases(SEED, ODDS_SETTINGS, longest_h=50.0)]
    spent = timing.own() - before
    yield Figure(
        name="risk.worst_odds_error",
        value=max(errors),
        unit="probability",
        bound=0.02,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"settings": ODDS_SETTINGS, "runs": RUNS, "mean": sum(errors) / ODDS_SETTINGS},
    )


def speed() -> Iterator[Figure]:
    exposure = random_exposure()
    expected = course(exposure)
    limits = 1.05 * expected.wall_h
    for name, bound, call in (
        ("risk.course_ns_per_row", 150.0, lambda: course(exposure)),
        ("risk.finish_by_ns_per_row", 1500.0, lambda: finish_by(exposure, expected, limits)),
    ):
        spent = best(call)
        yield Figure(
            name=name,
            value=spent.cpu_s / ROWS * 1e9,
            unit="ns",
            bound=bound,
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"rows": ROWS},
        )


def random_exposure() -> Exposure:
    """All of it spot: rows without risk cost next to nothing."""
    random = np.random.default_rng(SEED)
    restart_h = random.uniform(2, 15, ROWS) / 60
    return Exposure(
        work_h=0.5 * 400 ** random.random(ROWS),
        hazard=10 ** random.uniform(-3, 0, ROWS),
        checkpoint_h=10 * 30 ** random.random(ROWS) / 3600,
        restart_h=restart_h,
        billed_restart_h=restart_h * random.random(ROWS),
        interval_h=np.full(ROWS, np.nan),
    )


def best(call: Callable[[], object]) -> timing.Spent:
    """Of many: what else the machine does only ever adds."""

    def once() -> timing.Spent:
        before = timing.own()
        call()
        return timing.own() - before

    return min((once() for _ in range(REPEATS)), key=lambda spent: spent.cpu_s)
