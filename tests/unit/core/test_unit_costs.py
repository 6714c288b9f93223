"""What a step, a sample and a token cost, and what was saved."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from crucible.core.costs import Done, done_of
from crucible.core.unit_costs import Saved, UnitCosts, saved_on, unit_costs
from crucible.model.ids import AttemptId, JobId, MachineId, TaskId
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.record import Progress
from crucible.model.units import MicroUsd
from crucible.testing.specimens import a_job, a_task, an_attempt, an_order

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TASK = a_task(a_job())


def told(task: str = TASK.id, step: int | None = None, **metrics: float) -> Progress:
    return Progress(
        task_id=TaskId(task), job_id=JobId("j"), attempt_id=AttemptId("a"), at=NOW, step=step, metrics=metrics
    )


def test_everything_paid_is_shared_by_everything_done() -> None:
    some = [told(step=100, tokens=5000.0, samples=250.0), told("u", step=300, tokens=5000.0)]
    found = unit_costs(MicroUsd(4_000_000), some, [])
    assert found == UnitCosts(pytest.approx(0.01), pytest.approx(4 / 250), pytest.approx(0.0004))


def test_steps_that_a_checkpoint_brought_were_paid_for_elsewhere() -> None:
    first, second = (replace(an_attempt(TASK), number=n, resume_step=step) for n, step in ((0, 600), (1, 900)))
    assert unit_costs(MicroUsd(4_000_000), [told(step=1000)], [second, first]).per_step == pytest.approx(0.01)


def test_what_nobody_told_or_paid_has_no_price() -> None:
    assert unit_costs(MicroUsd(4_000_000), [told(), told("u", step=0)], []) == UnitCosts()
    assert unit_costs(MicroUsd(0), [told(step=10)], []) == UnitCosts()


def test_tasks_that_have_ended_are_done_whatever_they_told() -> None:
    half = replace(told("u"), fraction=0.5)
    quiet = replace(told(), fraction=0.2)
    assert done_of([half, quiet], [], 4, {TASK.id}) == Done(0.0, 1.5 / 4)


def test_savings_are_against_the_price_when_it_was_bought() -> None:
    known = replace(an_order(TASK), on_demand_per_hour=MicroUsd(10_000_000))
    unknown = an_order(TASK, 1)

    def stretch(order_id: str, kind: ChargeKind = ChargeKind.COMPUTE) -> Usage:
        return Usage(
            provider="aws",
            region="r",
            machine_id=MachineId("m"),
            order_id=order_id,  # type: ignore[arg-type]
            job_id=JobId("j"),
            lease_id=None,
            rate=Rate(kind, MicroUsd(4_000_000), 3600),
            from_at=NOW - HOUR,
            to_at=NOW,
            amount=MicroUsd(4_000_000),
        )

    some = [stretch(known.id), stretch(known.id, ChargeKind.STORAGE), stretch(unknown.id)]
    assert saved_on(some, [known, unknown], NOW) == Saved(MicroUsd(6_000_000), MicroUsd(4_000_000))
    running = replace(some[0], to_at=None, amount=None)
    assert saved_on([running], [known], NOW + HOUR).saved == 12_000_000
