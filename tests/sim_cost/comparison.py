"""Random settings of the kind people meet, as the columns that `core.risk` takes and as what the simulation plays."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from crucible.core.cost import expected_billed_hours
from crucible.core.risk import Course, Exposure, course
from sim_cost.event_simulation import Run, Setting, run

HOUR = 3600.0
BILLS = ((1, 0), (1, 60))  # unit and minimum in seconds of the providers that sell spot machines
BATCH = 1_000  # few enough to stop early, enough to have met what is rare


@dataclass(frozen=True)
class Case:
    machines: int
    gang_losses_per_hour: float
    work_h: float
    checkpoint_h: float
    restart_h: float
    boot_h: float
    interval_h: float  # NaN: the best
    unit_s: int
    minimum_s: int


def cases(seed: int, count: int, longest_h: float = 200.0) -> list[Case]:
    random = Random(seed)
    return [random_case(random, longest_h) for _ in range(count)]


def random_case(random: Random, longest_h: float) -> Case:
    hazard = 0.0 if random.random() < 0.05 else 10 ** random.uniform(-3, 0)
    # What a person asks for is at times far from the best, but not so far that the work hardly ever gets done.
    asked_h = min(10 ** random.uniform(-1, 0.7), 2 / (hazard + 1e-9))
    restart_h = random.uniform(2, 15) / 60
    unit_s, minimum_s = random.choice(BILLS)
    return Case(
        machines=random.choice((1, 1, 2, 4, 8, 16)),
        gang_losses_per_hour=hazard,
        work_h=0.5 * (longest_h / 0.5) ** random.random(),
        checkpoint_h=10 * 30 ** random.random() / HOUR,
        restart_h=restart_h,
        boot_h=restart_h * random.random(),
        interval_h=math.nan if random.random() < 0.7 else asked_h,
        unit_s=unit_s,
        minimum_s=minimum_s,
    )


def exposure_of(cases: Sequence[Case]) -> Exposure:
    return Exposure(
        work_h=np.array([c.work_h for c in cases]),
        hazard=np.array([c.gang_losses_per_hour for c in cases]),
        checkpoint_h=np.array([c.checkpoint_h for c in cases]),
        restart_h=np.array([c.restart_h for c in cases]),
        billed_restart_h=np.array([c.boot_h for c in cases]),
        interval_h=np.array([c.interval_h for c in cases]),
    )


def billed_h(cases: Sequence[Case], expected: Course) -> list[float]:
    units, minima = np.array([c.unit_s for c in cases]), np.array([c.minimum_s for c in cases])
    hours = expected_billed_hours(expected.billed_h, 1 + expected.interruptions, units, minima)
    return [float(value) for value in hours]


def played(case: Case, interval_h: float) -> Setting:
    return Setting(
        machines=case.machines,
        losses_per_hour=case.gang_losses_per_hour / case.machines,
        work_s=case.work_h * HOUR,
        interval_s=interval_h * HOUR,
        checkpoint_s=case.checkpoint_h * HOUR,
        wait_s=(case.restart_h - case.boot_h) * HOUR,
        boot_s=case.boot_h * HOUR,
        unit_s=case.unit_s,
        minimum_s=case.minimum_s,
    )


def until_sure(setting: Setting, random: Random, standard_error: float) -> list[Run]:
    """As many runs as it takes to know the mean bill that well, relative to it."""
    runs: list[Run] = []
    while True:
        runs += [run(setting, random) for _ in range(BATCH)]
        bills = [r.billed_s for r in runs]
        if statistics.stdev(bills) <= standard_error * math.sqrt(len(bills)) * statistics.fmean(bills):
            return runs


def cost_errors(cases: Sequence[Case], seed: int, standard_error: float) -> list[float]:
    """Of the expected bill, relative to the simulated one."""
    random = Random(seed)
    expected = course(exposure_of(cases))
    errors = []
    for case, interval_h, said in zip(cases, expected.interval_h, billed_h(cases, expected), strict=True):
        runs = until_sure(played(case, float(interval_h)), random, standard_error)
        errors.append(said * HOUR / statistics.fmean(r.billed_s for r in runs) - 1)
    return errors
