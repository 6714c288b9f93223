"""What becomes of steps: when they begin, when they are skipped, what they say of their jobs."""

from dataclasses import replace

import pytest

from crucible.core.workflow import HELD, Part, decide, to_begin, wishes
from crucible.model.ids import Digest, JobId, TaskId
from crucible.model.job import Desired, Job, JobStatus
from crucible.model.spec import JobSpec, Step, When
from crucible.model.task import TaskAdvanced, TaskEnded, TaskKind, TaskPhase, Verdict
from making import NOW, a_job, a_task

SUCCEEDED, FAILED, CANCELLED = TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED


def a_part(name: str, index: int, phase: TaskPhase = TaskPhase.WAITING, **fields: object) -> Part:
    told = {key: fields.pop(key) for key in ("child", "came") if key in fields}
    step = Step(name=name, job=JobSpec(command=("x",)), **{"needs": (), **fields})  # type: ignore[arg-type]
    task = a_task(id=TaskId(name), index=index, kind=TaskKind.STEP, phase=phase)
    return Part(step, task, **told)  # type: ignore[arg-type]


def a_child(status: JobStatus, index: int = 0, **fields: object) -> Job:
    return a_job(id=JobId(f"c{index}"), parent=JobId("j"), step=index, status=status, **fields)


def test_a_step_without_needs_begins_and_others_wait() -> None:
    parts = [a_part("a", 0), a_part("b", 1, needs=("a",))]
    assert decide(a_job(), parts, NOW) == {0: (TaskAdvanced(NOW, TaskPhase.WAITING, NOW),)}


def test_a_step_begins_in_the_look_that_sees_the_end_of_what_it_needs() -> None:
    came = a_task(outputs=Digest("d" * 64), value=0.5, metrics={"loss": 0.5})
    parts = [a_part("a", 0, child=a_child(JobStatus.COMPLETED), came=came), a_part("b", 1, needs=("a",))]
    events = decide(a_job(), parts, NOW)
    ended = TaskEnded(NOW, SUCCEEDED, None, value=0.5, metrics={"loss": 0.5}, outputs=Digest("d" * 64))
    assert events == {0: (ended,), 1: (TaskAdvanced(NOW, TaskPhase.WAITING, NOW),)}


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        (JobStatus.PENDING, TaskPhase.WAITING),
        (JobStatus.SCHEDULED, TaskPhase.SCHEDULED),
        (JobStatus.PROVISIONING, TaskPhase.PROVISIONING),
        (JobStatus.RUNNING, TaskPhase.RUNNING),
        (JobStatus.CHECKPOINTING, TaskPhase.CHECKPOINTING),
    ],
)
def test_a_step_says_what_its_job_says(status: JobStatus, phase: TaskPhase) -> None:
    part = a_part("a", 0, child=a_child(status, reason="because"))
    assert decide(a_job(), [part], NOW) == {0: (TaskAdvanced(NOW, phase, None, "because"),)}
    told = replace(part, task=replace(part.task, phase=phase, reason="because"))
    assert decide(a_job(), [told], NOW) == {}


def test_a_failure_names_its_step() -> None:
    part = a_part("train", 0, child=a_child(JobStatus.FAILED, reason="exited with 1"))
    assert decide(a_job(), [part], NOW) == {0: (TaskEnded(NOW, FAILED, "train: exited with 1"),)}


def test_what_needs_a_step_that_failed_is_skipped_to_the_end_of_the_chain() -> None:
    parts = [a_part("a", 0, FAILED), a_part("b", 1, needs=("a",)), a_part("c", 2, needs=("b",))]
    events = decide(a_job(), parts, NOW)
    assert events == {
        1: (TaskEnded(NOW, CANCELLED, "a failed", Verdict.SKIPPED),),
        2: (TaskEnded(NOW, CANCELLED, "b was skipped", Verdict.SKIPPED),),
    }


def test_a_step_that_can_never_begin_is_skipped_while_its_other_needs_still_run() -> None:
    running = a_part("r", 1, TaskPhase.RUNNING, child=a_child(JobStatus.RUNNING, 1))
    parts = [a_part("a", 0, FAILED), running, a_part("b", 2, needs=("a", "r"))]
    assert 2 in decide(a_job(), parts, NOW)


@pytest.mark.parametrize(
    ("phase", "begins"), [(SUCCEEDED, False), (FAILED, True), (CANCELLED, False)], ids=lambda v: str(v)
)
def test_when_failed_runs_after_a_failure_only(phase: TaskPhase, begins: bool) -> None:
    parts = [a_part("a", 0, phase), a_part("h", 1, needs=("a",), when=When.FAILED)]
    (event,) = decide(a_job(), parts, NOW)[1]
    assert isinstance(event, TaskAdvanced) is begins
    if not begins:
        assert event == TaskEnded(NOW, CANCELLED, "nothing before it failed", Verdict.SKIPPED)


def test_when_failed_sees_a_failure_behind_what_was_skipped() -> None:
    parts = [a_part("a", 0, FAILED), a_part("b", 1, needs=("a",)), a_part("h", 2, needs=("b",), when=When.FAILED)]
    assert decide(a_job(), parts, NOW)[2] == (TaskAdvanced(NOW, TaskPhase.WAITING, NOW),)


def test_who_waits_for_a_failure_waits_for_all_before_it_even_where_what_it_needs_was_skipped() -> None:
    def parts(slow: TaskPhase) -> list[Part]:
        b = a_part("b", 2, CANCELLED, needs=("a", "slow"))
        handler = a_part("h", 3, needs=("b",), when=When.FAILED)
        return [a_part("a", 0, CANCELLED), a_part("slow", 1, slow, child=a_child(JobStatus.RUNNING)), b, handler]

    assert 3 not in decide(a_job(), parts(TaskPhase.RUNNING), NOW)
    assert decide(a_job(), parts(FAILED), NOW) == {3: (TaskAdvanced(NOW, TaskPhase.WAITING, NOW),)}
    skipped = TaskEnded(NOW, CANCELLED, "nothing before it failed", Verdict.SKIPPED)
    assert decide(a_job(), parts(SUCCEEDED), NOW) == {3: (skipped,)}


@pytest.mark.parametrize("phase", [SUCCEEDED, FAILED, CANCELLED])
def test_when_ended_runs_whatever_became_of_the_others(phase: TaskPhase) -> None:
    parts = [a_part("a", 0, phase), a_part("z", 1, needs=("a",), when=When.ENDED)]
    assert decide(a_job(), parts, NOW) == {1: (TaskAdvanced(NOW, TaskPhase.WAITING, NOW),)}


def test_a_cancelled_workflow_ends_what_has_no_job_and_tells_the_others() -> None:
    job = a_job(desired=Desired.CANCEL, reason="cancelled by ann")
    running = a_part("a", 0, TaskPhase.RUNNING, child=a_child(JobStatus.RUNNING))
    parts = [running, a_part("b", 1), a_part("c", 2, needs=("a",), when=When.ENDED)]
    assert set(decide(job, parts, NOW)) == {1, 2}
    assert decide(job, parts, NOW)[1] == (TaskEnded(NOW, CANCELLED, "cancelled by ann"),)
    ((child, desired, reason),) = wishes(job, parts)
    assert (child.id, desired, reason) == ("c0", Desired.CANCEL, "cancelled by ann")


def test_a_held_workflow_begins_nothing_and_holds_its_jobs_until_it_is_released() -> None:
    held = a_job(desired=Desired.HOLD)
    running = a_part("a", 0, TaskPhase.RUNNING, child=a_child(JobStatus.RUNNING))
    due = replace(a_part("b", 1), task=replace(a_part("b", 1).task, deadline_at=NOW))
    assert to_begin(held, [due], NOW) == () and to_begin(a_job(), [due], NOW) == (due,)
    assert [(one.id, wish, why) for one, wish, why in wishes(held, [running])] == [("c0", Desired.HOLD, HELD)]
    kept = a_part("a", 0, child=a_child(JobStatus.PENDING, desired=Desired.HOLD, reason=HELD))
    assert [(one.id, wish) for one, wish, _ in wishes(a_job(), [kept])] == [("c0", Desired.RUN)]


def test_a_job_that_somebody_holds_by_itself_stays_held() -> None:
    held = a_part("a", 0, child=a_child(JobStatus.PENDING, desired=Desired.HOLD, reason="lunch"))
    assert wishes(a_job(), [held]) == ()
    assert [wish for _, wish, _ in wishes(a_job(desired=Desired.CANCEL), [held])] == [Desired.CANCEL]


def test_a_step_that_is_tried_again_later_is_not_begun_before() -> None:
    later = replace(a_part("a", 0), task=replace(a_part("a", 0).task, deadline_at=NOW.replace(hour=1)))
    assert to_begin(a_job(), [later], NOW) == ()
    assert decide(a_job(), [later], NOW) == {}
