"""The status of a job: always the same fields, shares that are shares, an end that comes nearer with progress."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crucible.core.costs import Basis, Done, Expected, Remaining, remaining
from crucible.core.status import Known, doubt, eta_of, figure_of, status_of, utilisation
from crucible.model.health import Finding, FindingCode, Health, HeldNode, JobHealth, Memory, TaskMemory
from crucible.model.ids import AttemptId, JobId, NodeId, TaskId
from crucible.model.job import JobStatus
from crucible.model.notice import Severity
from crucible.model.record import Progress
from crucible.model.units import MicroUsd
from crucible.testing.specimens import a_job

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
JOB = a_job(status=JobStatus.RUNNING, started_at=NOW - timedelta(hours=1))
REST = Remaining(basis=Basis.PROGRESS, hours=2.0, hours_high=2.0, likely=MicroUsd(4_000_000), high=MicroUsd(4_000_000))


def progress(**fields: Any) -> Progress:
    return Progress(task_id=TaskId("t"), job_id=JobId("j1"), attempt_id=AttemptId("a"), at=NOW, **fields)


def health(*pace: float, status: Health = Health.OK) -> JobHealth:
    memory = Memory(tasks={"t": TaskMemory(pace=pace)})
    return JobHealth(job_id=JobId("j1"), status=status, looked_at=NOW, memory=memory)


def node(rank: int | None = 0, gpus: int = 1, heard_s: float = 0.0, **usage: float) -> HeldNode:
    return HeldNode(
        node_id=NodeId(f"n{rank}"),
        job_id=JobId("j1"),
        task_id=TaskId("t"),
        index=0,
        rank=rank,
        gpus=gpus,
        devices=(),
        heard_at=NOW - timedelta(seconds=heard_s),
        usage=usage,
    )


def test_a_job_of_which_nothing_is_known_says_why_of_everything() -> None:
    found = status_of(Known(job=a_job()), NOW)
    assert found.health is Health.UNKNOWN and found.eta is None and found.utilisation.cpu is None
    assert found.unknown == {
        "progress": "it has not started",
        "eta": "there is neither an estimate nor progress yet",
        "health": "it was not looked at yet",
        "utilisation": "it holds no machine",
        "gpu": "it holds no machine",
    }


def test_a_job_that_is_over_has_no_end_to_come_and_no_findings() -> None:
    finding = Finding(
        job_id=JobId("j1"),
        code=FindingCode.DISK_FULL,
        opened_at=NOW,
        severity=Severity.WARNING,
        words="w",
        advice="a",
    )
    done = a_job(status=JobStatus.COMPLETED, started_at=NOW, finished_at=NOW)
    found = status_of(Known(job=done, remaining=REST, findings=[finding], health=health()), NOW)
    assert (found.eta, found.findings, found.health) == (None, (), Health.UNKNOWN)
    assert found.unknown["eta"] == found.unknown["health"] == found.unknown["utilisation"] == "it is over"


def test_steps_tell_the_pace_and_several_tasks_only_their_share() -> None:
    one = status_of(Known(job=JOB, told=progress(step=5, total_steps=10, fraction=0.5), health=health(2.0, 2.0)), NOW)
    assert (one.progress.step, one.progress.fraction, one.progress.steps_per_s) == (5, 0.5, 0.5)
    many = status_of(Known(job=JOB, told=progress(step=5, fraction=0.5), share=0.25), NOW)
    assert (many.progress.step, many.progress.fraction) == (None, 0.25)


def test_slow_steps_widen_the_range_of_the_end_and_of_what_it_costs() -> None:
    even = status_of(Known(job=JOB, remaining=REST, health=health(*[1.0] * 20)), NOW)
    assert even.eta is not None and even.eta.at == even.eta.latest_at == NOW + timedelta(hours=2)
    uneven = status_of(Known(job=JOB, remaining=REST, health=health(*[1.0] * 15, *[2.0] * 5)), NOW)
    assert uneven.eta is not None and uneven.eta.latest_at == NOW + timedelta(hours=4)
    assert uneven.cost.remaining == 4_000_000 and uneven.cost.remaining_high == 8_000_000
    assert doubt([1.0] * 12 + [100.0] * 8) == 3.0


def test_what_no_checkpoint_has_is_at_risk() -> None:
    known = Known(job=JOB, per_hour=MicroUsd(6_000_000), unsaved_since=NOW - timedelta(minutes=30))
    assert status_of(known, NOW).cost.at_risk == 3_000_000
    assert status_of(Known(job=JOB), NOW).cost.at_risk is None


def test_use_is_summed_up_over_ranks_and_names_the_worst() -> None:
    nodes = [
        node(0, gpu0_percent=90.0, cpu_percent=10.0, memory_used_bytes=1.0, memory_total_bytes=4.0),
        node(1, gpu0_percent=10.0, cpu_percent=30.0, memory_used_bytes=3.0, memory_total_bytes=4.0),
    ]
    found = utilisation(nodes, NOW)
    assert found.gpu is not None and (found.gpu.mean, found.gpu.low, found.gpu.worst_rank) == (0.5, 0.1, 1)
    assert found.memory is not None and (found.memory.high, found.memory.worst_rank) == (0.75, 1)
    assert found.cpu is not None and found.cpu.worst_rank == 0
    assert (found.machines, found.heard, found.gpus, found.disk) == (2, 2, 2, None)


def test_figures_of_long_ago_are_not_those_of_now() -> None:
    found = utilisation([node(cpu_percent=10.0, heard_s=600)], NOW)
    assert (found.machines, found.heard, found.cpu) == (1, 0, None)


def test_gpus_that_were_not_asked_for_are_not_counted() -> None:
    assert utilisation([node(gpus=0, gpu0_percent=50.0)], NOW).gpu is None
    assert figure_of([], is_high_bad=True) is None


NUMBERS = st.floats(0, 1e6, allow_nan=False)


@given(
    share=st.none() | st.floats(-1, 2),
    fraction=st.none() | st.floats(-1, 2),
    step=st.none() | st.integers(-5, 10**9),
    pace=st.lists(NUMBERS, max_size=40),
    hours=st.none() | st.floats(0, 1e9),
    usage=st.dictionaries(st.sampled_from(["cpu_percent", "gpu0_percent", "disk_used_bytes"]), NUMBERS),
    status=st.sampled_from(list(JobStatus)),
)
def test_whatever_is_known_a_status_can_be_told_and_shares_are_shares(
    share: float | None,
    fraction: float | None,
    step: int | None,
    pace: list[float],
    hours: float | None,
    usage: dict[str, float],
    status: JobStatus,
) -> None:
    rest = None
    if hours is not None:
        rest = Remaining(basis=Basis.PROGRESS, hours=hours, hours_high=hours, likely=MicroUsd(1), high=MicroUsd(2))
    known = Known(
        job=a_job(status=status),
        told=progress(step=step, fraction=fraction),
        share=share,
        health=health(*pace),
        nodes=[node(**usage)],
        remaining=rest,
    )
    found = status_of(known, NOW)
    assert found.progress.fraction is None or 0 <= found.progress.fraction <= 1
    assert found.eta is None or NOW <= found.eta.at <= found.eta.latest_at
    assert (found.eta is None) == ("eta" in found.unknown)


@given(st.floats(0.02, 0.98), st.floats(0.001, 1), st.floats(0.1, 100))
def test_the_end_comes_nearer_with_progress(done: float, more: float, ran_h: float) -> None:
    plan = Expected(hours=10.0, hours_high=15.0, per_hour=MicroUsd(1_000_000))
    before = eta_of(remaining(Done(0.0, done), ran_h, plan, ()), (), NOW)
    after = eta_of(remaining(Done(0.0, min(1.0, done + more)), ran_h, plan, ()), (), NOW)
    assert before is not None and after is not None
    assert after.at <= before.at and after.latest_at <= before.latest_at
