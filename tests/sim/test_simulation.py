"""A failure prints its seed: `python -c "from simulation import …"` in tests/sim repeats it exactly."""

import pytest
from simulation import World

from crucible.model.job import JobStatus
from crucible.testing.fake_cloud import Faults

ROUGH = Faults(
    lost_reply=0.05,
    error_before=0.05,
    no_capacity=0.05,
    late_listing=0.05,
    lying_delete=0.1,
    machine_dies=0.1,
    taken=0.1,
    list_fails=0.05,
    server_unreachable=0.03,
    reply_lost=0.03,
)


def test_a_calm_world_finishes_everything() -> None:
    outcome = World(seed=1, jobs=40).run()
    assert outcome.broken == []
    assert sum(outcome.statuses.values()) == 40
    assert set(outcome.statuses) == {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}


@pytest.mark.parametrize("seed", range(100, 102))
def test_a_rough_world_with_restarts_loses_nothing(seed: int) -> None:
    outcome = World(seed=seed, jobs=60, faults=ROUGH, restart_every_s=300).run()
    assert outcome.broken == [], f"seed {seed}"
    assert sum(outcome.statuses.values()) == 60


@pytest.mark.parametrize("seed", [300])
def test_what_is_bought_by_the_catalog_costs_what_the_cloud_asks_for(seed: int) -> None:
    """Spot machines at prices that move, refused, taken back, deleted by nobody knows whom. That the books are exact is
    checked in every world here."""
    outcome = World(seed=seed, jobs=30, faults=ROUGH, restart_every_s=400, is_bought=True).run()
    assert outcome.broken == [], f"seed {seed}"
    assert outcome.billed_microusd > 0


@pytest.mark.parametrize("seed", [200])
def test_a_clock_that_is_an_hour_off_after_a_restart_fails_no_job(seed: int) -> None:
    outcome = World(seed=seed, jobs=40, faults=Faults(machine_dies=0.05), restart_every_s=600, clock_steps=True).run()
    assert outcome.broken == [], f"seed {seed}"


def test_the_same_seed_is_the_same_run() -> None:
    runs = [World(seed=7, jobs=12, faults=ROUGH, restart_every_s=400).run() for _ in range(2)]
    assert runs[0].digest == runs[1].digest
    assert World(seed=8, jobs=12, faults=ROUGH, restart_every_s=400).run().digest != runs[0].digest
