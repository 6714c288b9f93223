"""What a job costs, as people ask for it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crucible.core.costs import Basis, Done, Expected, costs, done_of, ran_hours, remaining
from crucible.model.attempt import Attempt, Rank
from crucible.model.ids import AttemptId, JobId, LeaseId, MachineId, NodeId, OrderId, TaskId
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.record import Progress
from crucible.model.units import MicroUsd
from crucible.testing.specimens import a_job, a_task, an_attempt

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
COMPUTE = Rate(ChargeKind.COMPUTE, MicroUsd(3_600_000), 3600)
DISK = Rate(ChargeKind.STORAGE, MicroUsd(730_000), 730 * 3600)
PLAN = Expected(hours=4.0, hours_high=6.0, per_hour=MicroUsd(2_000_000))


def a_stretch(begun: float, over: float | None = None, machine: str = "m", **changes: Any) -> Usage:
    """In hours before now."""
    usage = Usage(
        provider="aws",
        region="r",
        machine_id=MachineId(machine),
        order_id=OrderId("o"),
        job_id=JobId("j"),
        lease_id=LeaseId("l"),
        rate=COMPUTE,
        from_at=NOW - begun * HOUR,
    )
    if over is not None:
        usage = replace(usage, to_at=NOW - over * HOUR, amount=MicroUsd(round((begun - over) * 3_600_000)))
    return replace(usage, **changes)


def ran(begun: float, over: float | None, **changes: Any) -> Attempt:
    rank = Rank(rank=0, node_id=NodeId("n"), node_rank=0, local_rank=0, devices=(), started_at=NOW - begun * HOUR)
    if over is not None:
        rank = replace(rank, ended_at=NOW - over * HOUR)
    return replace(an_attempt(a_task(a_job())), ranks=(rank,), **changes)


def at_fraction(fraction: float | None, total: int | None = None, task: str = "t") -> Progress:
    return Progress(
        task_id=TaskId(task),
        job_id=JobId("j"),
        attempt_id=AttemptId("a"),
        at=NOW,
        fraction=fraction,
        total_steps=total,
    )


# --- so far -------------------------------------------------------------------------------------------------------


def test_parts_add_up_to_the_whole() -> None:
    found = costs([a_stretch(3, 2), a_stretch(2), a_stretch(3, rate=DISK), a_stretch(1, machine="n")], NOW)
    assert found.so_far == 3_600_000 + 7_200_000 + 3000 + 3_600_000
    assert found.posted == 3_600_000
    assert found.per_hour == 2 * 3_600_000 + 1000
    assert sum(kind.so_far for kind in found.kinds) == sum(one.so_far for one in found.machines) == found.so_far
    assert sum(kind.per_hour for kind in found.kinds) == sum(one.per_hour for one in found.machines) == found.per_hour
    assert [one.machine_id for one in found.machines] == ["m", "n"]


def test_a_machine_runs_until_the_last_of_its_stretches_is_closed() -> None:
    (alive,) = costs([a_stretch(3, 2), a_stretch(3, rate=DISK)], NOW).machines
    assert (alive.started_at, alive.ended_at) == (NOW - 3 * HOUR, None)
    (over,) = costs([a_stretch(3, 2), a_stretch(2, 1, is_estimate=True)], NOW).machines
    assert (over.ended_at, over.is_estimate) == (NOW - HOUR, True)


def test_a_guess_that_was_overtaken_is_no_guess() -> None:
    (one,) = costs([a_stretch(3, 2, is_estimate=True), a_stretch(2, 1)], NOW).machines
    assert not one.is_estimate


def test_machines_of_two_providers_may_have_one_name() -> None:
    assert len(costs([a_stretch(1), a_stretch(1, provider="gcp")], NOW).machines) == 2


def test_nothing_costs_nothing() -> None:
    found = costs([], NOW)
    assert (found.so_far, found.per_hour, found.kinds, found.machines) == (0, 0, (), ())


# --- what is left -------------------------------------------------------------------------------------------------


def test_progress_says_how_long_it_still_takes_at_the_price_of_now() -> None:
    rest = remaining(Done(0.0, 0.25), 1.0, None, [a_stretch(2)])
    assert rest is not None and rest.basis is Basis.PROGRESS
    assert (rest.hours, rest.hours_high, rest.likely, rest.high) == (3.0, 3.0, 10_800_000, 10_800_000)


def test_the_plans_doubt_is_the_doubt_of_the_rest() -> None:
    rest = remaining(Done(0.0, 0.5), 3.0, PLAN, [a_stretch(2)])
    assert rest is not None and (rest.hours, rest.hours_high) == (3.0, 4.5)
    assert rest.high == 4.5 * 3_600_000


def test_a_job_that_went_on_from_a_checkpoint_is_as_fast_as_it_was_since() -> None:
    rest = remaining(Done(0.5, 0.75), 1.0, None, [a_stretch(2)])
    assert rest is not None and rest.hours == 1.0


@pytest.mark.parametrize(("reached", "ran_h"), [(0.0, 1.0), (0.009, 1.0), (0.5, 0.01)])
def test_too_little_progress_leaves_it_to_the_plan(reached: float, ran_h: float) -> None:
    rest = remaining(Done(0.0, reached), ran_h, PLAN, [a_stretch(2)])
    assert rest is not None and rest.basis is Basis.PLAN
    assert rest.hours == pytest.approx(4.0 - ran_h) and rest.hours_high == pytest.approx(6.0 - ran_h)
    assert rest.likely == pytest.approx(rest.hours * 3_600_000, abs=1)


def test_before_anything_runs_the_plan_sets_the_price() -> None:
    rest = remaining(Done(), 0.0, PLAN, [])
    assert rest is not None and (rest.likely, rest.high) == (8_000_000, 12_000_000)


def test_a_plan_that_was_overrun_says_nothing_is_left_but_not_less() -> None:
    rest = remaining(Done(), 9.0, PLAN, [a_stretch(2)])
    assert rest is not None and (rest.hours, rest.hours_high, rest.high) == (0.0, 0.0, 0)


def test_where_nobody_knows_nothing_is_said() -> None:
    assert remaining(Done(), 1.0, None, [a_stretch(2)]) is None


def test_tasks_that_have_not_told_of_themselves_have_done_nothing() -> None:
    assert done_of([at_fraction(0.5), at_fraction(1.0, task="u")], [], 6) == Done(0.0, 0.25)
    assert done_of([], [], 1) == Done()


def test_steps_of_another_job_are_not_counted_as_its_own() -> None:
    attempts = [ran(2, 1, resume_step=50), ran(1, None, resume_step=60)]
    assert done_of([at_fraction(0.75, total=100)], attempts, 1) == Done(0.5, 0.75)


def test_hours_are_counted_once_and_up_to_now() -> None:
    assert ran_hours([ran(5, 4), ran(4.5, 3), ran(1, None), ran(7, None, ended_at=NOW - 6 * HOUR)], NOW) == 4.0
    assert ran_hours([an_attempt(a_task(a_job()))], NOW) == 0.0
