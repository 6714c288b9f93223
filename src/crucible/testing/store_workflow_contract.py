"""Workflows: the jobs of their steps, their figures, results of steps, and what somebody must look at. A part of
StoreContract."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.model.change import born
from crucible.model.errors import StaleVersion
from crucible.model.ids import Digest, JobId, UserId
from crucible.model.job import Desired, Job, JobDesired, JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.ledger import ChargeKind, Entry, Posting
from crucible.model.record import StepResult
from crucible.model.task import Task, TaskAdvanced, TaskCreated, TaskEnded, TaskKind, TaskPhase, Verdict
from crucible.model.units import MicroUsd
from crucible.ports.store import JobQuery, Store
from crucible.ports.workflows import Shape
from crucible.testing.specimens import LATER, NOW, a_job, a_task, step, submitted

KEY = Digest("e" * 64)


async def a_workflow(store: Store, id_: str = "w", steps: int = 3) -> tuple[Job, tuple[Task, ...]]:
    job = a_job(id_)
    made = tuple(
        a_task(job, index, kind=TaskKind.STEP, params={"step": f"s{index}"}, deadline_at=None if index else NOW)
        for index in range(steps)
    )
    changes = [born(job, JobSubmitted(NOW)), *(born(task, TaskCreated(NOW)) for task in made)]
    await store.submit(changes, idempotency_key=None, user_id=job.user_id)
    return job, made


async def a_child(store: Store, parent: Job, task: Task, *, id_: str | None = None, **fields: Any) -> tuple[Job, Task]:
    """The job of a step, with what it means for the step's task."""
    child = a_job(id_ or f"{parent.id}-{task.index}", parent=parent.id, step=task.index, **fields)
    after, begun = step(task, TaskAdvanced(NOW, TaskPhase.WAITING, None))
    work = a_task(child)
    changes = [born(child, JobSubmitted(NOW)), born(work, TaskCreated(NOW)), begun]
    await store.submit(changes, idempotency_key=None, user_id=child.user_id)
    return child, after


class WorkflowContract:
    async def test_a_step_has_one_job_whoever_submits_it(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        child, _ = await a_child(store, job, tasks[0])
        with pytest.raises(StaleVersion):
            await a_child(store, job, tasks[0], id_="another")
        late = replace(tasks[0], version=tasks[0].version + 1)
        with pytest.raises(StaleVersion):
            await a_child(store, job, late, id_="another")
        assert await store.child_jobs(job.id) == (child,)

    async def test_a_step_that_has_ended_gets_no_job(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        await store.commit([step(tasks[0], TaskEnded(NOW, TaskPhase.CANCELLED, "no"))[1]], label="test")
        with pytest.raises(StaleVersion):
            await a_child(store, job, tasks[0])
        assert await store.child_jobs(job.id) == ()

    async def test_jobs_of_steps_are_listed_only_for_whoever_asks(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        await submitted(store, "other")
        child, _ = await a_child(store, job, tasks[1])
        other, more = await a_workflow(store, "v")
        await a_child(store, other, more[0])

        async def ids(query: JobQuery) -> set[str]:
            return {item.id for item in (await store.jobs(query)).items}

        failed = frozenset({JobStatus.FAILED, JobStatus.PENDING})
        assert await ids(JobQuery()) == await ids(JobQuery(status=failed)) == {"w", "v", "other"}
        assert await ids(JobQuery(parent=job.id)) == {child.id}
        assert await ids(JobQuery(with_steps=True)) == {"w", "v", "other", child.id, "v-0"}
        assert await ids(JobQuery(name=child.name)) == set()
        assert await ids(JobQuery(name=child.name, with_steps=True, status=failed)) == {child.id}

    async def test_a_workflow_is_told_in_a_few_figures(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        plain, _ = await submitted(store, "plain")
        child, first = await a_child(store, job, tasks[0])
        done = step(first, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1]
        skipped = step(tasks[2], TaskEnded(NOW, TaskPhase.CANCELLED, "a failed", Verdict.SKIPPED))[1]
        await store.commit([done, skipped], [a_posting(child.id, 250)], label="test")
        second, _ = await a_child(store, job, tasks[1])
        told = await store.workflows([plain.id, job.id, JobId("nobody")])
        assert told == {job.id: Shape(3, 2, (child.id, second.id), MicroUsd(250))}
        assert await store.workflows([plain.id]) == {} == await store.workflows([])

    async def test_the_newest_result_of_a_key_counts(self, store: Store) -> None:
        assert await store.step_result(KEY) is None
        first = a_result("j1")
        await store.commit((), [first], label="test")
        assert await store.step_result(KEY) == first
        second = a_result("j2", outputs=None, created_at=LATER)
        await store.commit((), [second], label="test")
        assert await store.step_result(KEY) == second

    async def test_a_step_whose_turn_has_come_is_due_until_it_has_a_job(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        assert (await store.due(NOW, 10)).workflows == (job.id,)
        await a_child(store, job, tasks[0])
        assert (await store.due(NOW, 10)).workflows == ()

    async def test_a_workflow_is_due_until_its_steps_say_what_their_jobs_say(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        child, first = await a_child(store, job, tasks[0])
        assert (await store.due(NOW, 10)).workflows == ()
        child, change = step(child, JobStatusChanged(NOW, JobStatus.SCHEDULED))
        await store.commit([change], label="test")
        assert (await store.due(NOW, 10)).workflows == (job.id,)
        first, change = step(first, TaskAdvanced(NOW, TaskPhase.SCHEDULED, None))
        await store.commit([change], label="test")
        assert (await store.due(NOW, 10)).workflows == ()
        child, change = step(child, JobStatusChanged(NOW, JobStatus.FAILED, "no"))
        await store.commit([change], label="test")
        assert (await store.due(NOW, 10)).workflows == (job.id,)
        await store.commit([step(first, TaskEnded(NOW, TaskPhase.FAILED, "no"))[1]], label="test")
        assert (await store.due(NOW, 10)).workflows == ()

    async def test_a_workflow_is_due_until_its_jobs_know_what_is_wanted(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        child, _ = await a_child(store, job, tasks[0])
        await store.commit([step(job, JobDesired(NOW, Desired.HOLD, job.user_id))[1]], label="test")
        assert (await store.due(NOW, 10)).workflows == (job.id,)
        await store.commit([step(child, JobDesired(NOW, Desired.HOLD, job.user_id))[1]], label="test")
        assert (await store.due(NOW, 10)).workflows == ()

    async def test_waiting_steps_are_nobody_s_to_place_or_to_end_together(self, store: Store) -> None:
        job, tasks = await a_workflow(store)
        assert await store.waiting(NOW, 10) == []
        assert list(await store.waiting_tasks(job.id, 10)) == []
        assert set(await store.tasks_at_work(job.id)) == {task.id for task in tasks}

    async def test_a_workflow_goes_on_once_a_step_has_begun_and_tells_no_reason_of_skipped_ones(
        self, store: Store
    ) -> None:
        job, tasks = await a_workflow(store)
        assert (await store.tally(job.id)).ever_placed is False
        _, done = step(tasks[0], TaskEnded(NOW, TaskPhase.SUCCEEDED, None))
        _, skipped = step(tasks[1], TaskEnded(NOW, TaskPhase.CANCELLED, "nothing failed", Verdict.SKIPPED))
        await store.commit([done, skipped], label="test")
        told = await store.tally(job.id)
        assert (told.ever_placed, told.skipped, told.reason) == (True, 1, None)


def a_result(job_id: str, **fields: Any) -> StepResult:
    given: dict[str, Any] = {
        "cache_key": KEY,
        "user_id": UserId("ann"),
        "job_id": JobId(job_id),
        "outputs": Digest("f" * 64),
        "created_at": NOW,
    }
    return StepResult(**{**given, **fields})


def a_posting(job_id: JobId, amount: int) -> Posting:
    entries = (Entry(f"job:{job_id}", MicroUsd(amount)), Entry("provider:fake", MicroUsd(-amount)))
    return Posting(id=f"p-{job_id}", at=NOW, memo="test", job_id=job_id, kind=ChargeKind.COMPUTE, entries=entries)
