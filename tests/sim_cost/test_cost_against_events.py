"""Expectations and odds against a simulation that knows none of the formulas."""

import statistics
from random import Random

import numpy as np
import pytest

from crucible.core.risk import Exposure, billed_within, course, finish_by
from sim_cost.comparison import HOUR, Case, cases, cost_errors, exposure_of, played
from sim_cost.event_simulation import Setting, run

SEED = 20
RUNS = 10_000


def test_the_expected_bill_is_within_two_percent_of_the_simulated_one() -> None:
    settings = cases(SEED, 200, longest_h=50.0)  # longer ones: benchmarks/risk.py
    errors = cost_errors(settings, SEED, standard_error=0.004)
    worst = max(range(len(settings)), key=lambda i: abs(errors[i]))
    assert abs(errors[worst]) < 0.02, f"{errors[worst]:.2%} for {settings[worst]}"


def repeated(case: Case, count: int) -> Exposure:
    return exposure_of([case] * count)


@pytest.mark.parametrize("case", cases(SEED, 12, longest_h=30.0), ids=lambda c: f"{c.gang_losses_per_hour:.3f}/h")
def test_the_odds_to_be_in_time_and_in_budget_are_those_of_the_simulation(case: Case) -> None:
    one = repeated(case, 1)
    setting = played(case, float(course(one).interval_h[0]))
    runs = [run(setting, Random(SEED + index)) for index in range(RUNS)]
    for hours, odds in (
        (sorted(r.wall_s / HOUR for r in runs), finish_by),
        (sorted(r.alive_s / HOUR for r in runs), billed_within),
    ):
        limits = np.array([hours[RUNS * tenth // 10] for tenth in range(1, 10)]) + 1e-9
        exposure = repeated(case, len(limits))
        seen = np.searchsorted(hours, limits, side="right") / RUNS
        # A bit over 0.02: the simulation itself is off by up to three times 0.005.
        assert np.abs(odds(exposure, course(exposure), limits) - seen).max() < 0.03


def test_the_expected_number_of_interruptions_is_that_of_the_simulation() -> None:
    for case in cases(SEED + 1, 8, longest_h=20.0):
        expected = course(repeated(case, 1))
        setting = played(case, float(expected.interval_h[0]))
        seen = [run(setting, Random(index)).losses for index in range(2_000)]
        allowed = 4 * statistics.stdev(seen) / len(seen) ** 0.5 + 0.01
        assert abs(statistics.fmean(seen) - expected.interruptions[0]) < allowed


def test_a_simulated_job_without_losses_takes_its_work_and_its_checkpoints() -> None:
    calm = Setting(
        machines=4, losses_per_hour=0.0, work_s=10 * HOUR, interval_s=HOUR, checkpoint_s=60, wait_s=0, boot_s=0
    )
    assert run(calm, Random(1)).wall_s == pytest.approx(10 * HOUR + 9 * 60)
