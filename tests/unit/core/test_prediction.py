"""What is expected of a job, and what came of it (requirement C10)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from math import log
from typing import Any

import pytest

from crucible.catalog import benchmarks, facts
from crucible.core import plan
from crucible.core.offers import OfferTable, make_table
from crucible.core.perf import Origin
from crucible.core.prediction import came_of, covered, expected
from crucible.core.proposal import Candidate
from crucible.core.speeds import Factor, SpeedBook, make_book
from crucible.model.attempt import Attempt, Rank
from crucible.model.catalog import Billing, Gpu, InstanceType, Price
from crucible.model.ids import AttemptId, NodeId, TaskId
from crucible.model.job import JobStatus
from crucible.model.lease import Lease
from crucible.model.offer import Fabric, Market
from crucible.model.record import Progress
from crucible.model.spec import Framework, JobSpec, ModelClass, Resources, Workload
from crucible.model.units import MicroUsd, micro_usd
from crucible.testing.specimens import a_job, a_lease, a_task, an_order

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPEC = JobSpec(
    framework=Framework.PYTORCH,
    team="mine",
    resources=Resources(gpus=8),
    workload=Workload(model_class=ModelClass.LLM, parameters=7e9, tokens=5e8),
)


@cache
def book() -> SpeedBook:
    return make_book(benchmarks.benchmarks(), facts.read(facts.SHIPPED, "gpus.csv", Gpu))


@cache
def table() -> OfferTable:
    node = InstanceType(
        provider="aws",
        name="p5",
        gpu="H100-SXM",
        gpus=8,
        gpu_memory_gib=80,
        cpus=96,
        memory_gib=1024,
        fabric=Fabric.HIGH,
    )
    price = Price(
        provider="aws",
        region="us-east-1",
        zone="",
        instance_type="p5",
        market=Market.ON_DEMAND,
        price=micro_usd(55),
        as_of=NOW,
        source="test",
    )
    billing = Billing(
        provider="aws", unit_s=1, minimum_s=60, start_s=360, egress_usd_per_gb=0, max_nodes=8, source="test"
    )
    return make_table([node], [price], billing=[billing])


def way(spec: JobSpec = SPEC, speeds: SpeedBook | None = None) -> Candidate:
    question = plan.Question(spec=spec, now=NOW, enabled=frozenset({"aws"}))
    found = plan.propose(question, table(), speeds or book()).runnable
    assert found is not None
    return found


# --- expected ---------------------------------------------------------------------------------------------


def test_the_start_of_machines_is_no_part_of_the_hours() -> None:
    chosen = way()
    row = expected(SPEC, chosen, table(), book())
    assert chosen.expected_h is not None and row.estimated_hours is not None
    assert row.estimated_hours == pytest.approx(chosen.expected_h - 0.1)
    assert row.estimated_cost == chosen.cost
    assert (row.framework, row.model_class, row.team) == ("pytorch", "llm", "mine")
    assert (row.planned_on, row.gpu, row.gpus, row.nodes) == ("1 × aws/p5", "H100-SXM", 8, 1)
    assert (row.origin, row.book_hours) == (Origin.RECKONED, pytest.approx(chosen.work_h))


def test_the_upper_end_is_never_below_what_is_expected() -> None:
    """A rare loss that costs much lifts the mean above what nine of ten such jobs cost."""
    told = replace(way(), cost=MicroUsd(321_811), cost_p90=MicroUsd(320_488))
    assert expected(SPEC, told, table(), book()).estimated_cost_high == 321_811


def test_hours_of_the_book_are_those_without_telemetry() -> None:
    """Else a factor would be learnt from what the factor itself said."""
    slower = book().with_telemetry({("", "", "llm", "H100-SXM"): Factor(log(0.5), 0.5)})
    chosen = way(speeds=slower)
    row = expected(SPEC, chosen, table(), book())
    assert chosen.work_h is not None and row.estimated_hours is not None and row.book_hours is not None
    assert row.estimated_hours == pytest.approx(chosen.work_h, rel=0.01)
    assert row.book_hours == pytest.approx(chosen.work_h / 2)


@pytest.mark.parametrize(
    ("spec", "origin", "hours"),
    [
        (replace(SPEC, workload=Workload(), resources=Resources(gpus=8, estimated_hours=2.0)), Origin.GIVEN, 2.0),
        (replace(SPEC, workload=Workload()), Origin.UNKNOWN, None),
    ],
    ids=["given", "unknown"],
)
def test_hours_that_say_nothing_of_a_gpu_do_not_teach(spec: JobSpec, origin: Origin, hours: float | None) -> None:
    row = expected(spec, way(spec), table(), book())
    assert (row.origin, row.book_hours, row.estimated_hours) == (origin, None, hours)


# --- what came of it --------------------------------------------------------------------------------------

JOB = replace(
    a_job(),
    status=JobStatus.COMPLETED,
    selected_provider="aws",
    selected_instance_type="p5",
    selected_count=2,
    finished_at=NOW + 9 * HOUR,
)
TASK = a_task(JOB)


def ran(start: float | None, *ends: float | None, given_up: float | None = None, resumes: int | None = None) -> Attempt:
    """Ranks that started together and ended at `ends`; hours after noon."""
    at = None if start is None else NOW + start * HOUR
    ranks = tuple(
        Rank(
            rank=number,
            node_id=NodeId(f"n{number}"),
            node_rank=number,
            local_rank=0,
            devices=(),
            started_at=at,
            ended_at=None if end is None else NOW + end * HOUR,
        )
        for number, end in enumerate(ends)
    )
    return Attempt(
        id=AttemptId("a"),
        task_id=TASK.id,
        job_id=JOB.id,
        number=0,
        leases=(),
        created_at=NOW - HOUR,
        deadline_at=NOW,
        ranks=ranks,
        resume_step=resumes,
        ended_at=None if given_up is None else NOW + given_up * HOUR,
    )


def held(start: float | None, end: float | None, dollars: float = 4.0) -> Lease:
    return a_lease(
        an_order(TASK),
        price_per_hour=micro_usd(dollars),
        started_at=None if start is None else NOW + start * HOUR,
        ended_at=None if end is None else NOW + end * HOUR,
    )


def at_step(step: int | None, task: str = "t") -> Progress:
    return Progress(task_id=TaskId(task), job_id=JOB.id, attempt_id=AttemptId("a"), at=NOW, step=step)


def test_hours_are_those_in_which_ranks_ran() -> None:
    row = came_of(JOB, [ran(1, 3, 3.5, given_up=8)], [], [], NOW)
    assert (row.actual_hours, row.attempts) == (2.5, 1)
    assert (row.status, row.ran_on, row.ended_at) == ("completed", "2 × aws/p5", NOW + 9 * HOUR)


def test_a_lost_rank_ran_until_its_attempt_was_given_up() -> None:
    row = came_of(JOB, [ran(1, 2, None, given_up=4), ran(5, 6)], [], [], NOW)
    assert (row.actual_hours, row.attempts) == (4.0, 2)


def test_an_attempt_that_never_ran_is_none() -> None:
    row = came_of(JOB, [ran(None, None, given_up=4)], [], [at_step(None)], NOW)
    assert (row.actual_hours, row.attempts, row.steps, row.rate) == (None, 0, None, None)


def test_tasks_that_ran_at_the_same_time_are_not_added() -> None:
    spans = [(NOW, NOW + HOUR), (NOW + HOUR / 2, NOW + 2 * HOUR), (NOW + 3 * HOUR, NOW + 4 * HOUR)]
    assert covered(spans) == 3 * HOUR
    assert covered([]) == timedelta(0)


def test_machines_are_paid_at_their_frozen_price_until_they_are_given_back() -> None:
    leases = [held(0, 2), held(0, None, 1.0), held(None, None)]
    assert came_of(JOB, [], leases, [], NOW + 3 * HOUR).actual_cost == MicroUsd(11_000_000)
    assert came_of(JOB, [], [], [], NOW).actual_cost == 0


def test_what_the_ledger_says_counts_before_the_price_of_the_order() -> None:
    assert came_of(JOB, [], [held(0, 2)], [], NOW + 3 * HOUR, MicroUsd(5)).actual_cost == MicroUsd(5)


@pytest.mark.parametrize(
    ("progress", "resumes", "steps", "rate"),
    [
        ([at_step(7200)], None, 7200, 1.0),
        ([at_step(7200)], 3600, 7200, 0.5),
        ([at_step(5), at_step(9, "u")], None, None, None),
        ([], None, None, None),
    ],
    ids=["one task", "from a checkpoint", "two tasks", "none"],
)
def test_the_rate_is_of_the_steps_that_were_made(progress: Any, resumes: Any, steps: Any, rate: Any) -> None:
    row = came_of(JOB, [ran(0, 2, resumes=resumes)], [], progress, NOW)
    assert (row.steps, row.rate) == (steps, rate)
