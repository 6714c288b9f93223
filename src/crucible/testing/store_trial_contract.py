"""Tasks by the page, and trials: what they were given, what they report, what came of them. A part of StoreContract."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core.sweep import standing
from crucible.model.attempt import AttemptEnded, AttemptStarted, Outcome
from crucible.model.change import born
from crucible.model.errors import InvalidRequest
from crucible.model.ids import AttemptId, Digest, JobId, TaskId
from crucible.model.job import Desired, Job, JobDesired, JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.record import Checkpoint, Progress
from crucible.model.spec import JobType
from crucible.model.sweep import Curve, Goal, Tried
from crucible.model.task import (
    Task,
    TaskAdvanced,
    TaskCreated,
    TaskEnded,
    TaskGiven,
    TaskKind,
    TaskPhase,
    TaskPlaced,
    TaskPruned,
    TaskRetried,
    Verdict,
)
from crucible.ports.store import Store
from crucible.ports.trials import JobProgress, Place, TaskQuery, TrialCount, Tries
from crucible.testing.specimens import LATER, NOW, TARGET, a_job, a_task, running, step, submitted

SECOND = timedelta(seconds=1)
# value, phase, verdict: ties, signs, a trial that was stopped early, and such as have no value.
ENDS: tuple[tuple[float | None, TaskPhase, Verdict | None], ...] = (
    (0.5, TaskPhase.SUCCEEDED, None),
    (None, TaskPhase.SUCCEEDED, None),
    (-1.25, TaskPhase.SUCCEEDED, None),
    (0.1, TaskPhase.SUCCEEDED, Verdict.PRUNED),
    (0.5, TaskPhase.SUCCEEDED, None),
    (1e-300, TaskPhase.SUCCEEDED, Verdict.REUSED),
    (None, TaskPhase.FAILED, None),
    (0.2, TaskPhase.SUCCEEDED, Verdict.PRUNED),
    (None, TaskPhase.CANCELLED, Verdict.SKIPPED),
)


class TrialContract:
    # --- pages --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("goal", [None, *Goal])
    @pytest.mark.parametrize("limit", [1, 4, 9, 100])
    async def test_pages_hold_every_task_once_in_their_order(self, store: Store, goal: Goal | None, limit: int) -> None:
        job, tasks = await a_sweep(store)
        tasks = [*tasks, await crewed(store, job)]
        found = await listed(store, TaskQuery(job_id=job.id, best_first=goal, limit=limit))
        expected = [task for task in tasks if task.kind is not TaskKind.CREW]
        if goal is not None:
            expected.sort(key=lambda task: standing(task, goal))
        assert found == expected

    async def test_tasks_are_found_by_phase(self, store: Store) -> None:
        job, tasks = await a_sweep(store)
        wanted = frozenset({TaskPhase.FAILED, TaskPhase.CANCELLED})
        found = await listed(store, TaskQuery(job_id=job.id, phases=wanted, limit=1))
        assert found == [task for task in tasks if task.phase in wanted]
        assert await listed(store, TaskQuery(job_id=JobId("none"), limit=1)) == []

    async def test_a_row_says_how_far_the_task_is_and_where_it_runs(self, store: Store) -> None:
        family = await running(store)
        attempt, began = step(family.attempt, AttemptStarted(NOW, LATER))
        await store.commit([began], label="test")
        said = Progress(
            task_id=family.task.id,
            job_id=family.job.id,
            attempt_id=attempt.id,
            at=NOW,
            step=7,
            metrics={"loss": 0.5},
            curve=Curve(last=0.5, best=0.25, reports=2, marks=((1, 0.25), (3, None)), attempt=1, number=9),
        )
        await store.heard([], [said])
        (row,) = (await store.task_page(TaskQuery(job_id=family.job.id))).items
        assert (row.task, row.progress) == (family.task, said)
        assert row.attempt is not None
        assert (row.attempt.number, row.attempt.phase, row.attempt.started_at) == (0, attempt.phase, NOW)
        assert row.attempt.place == Place(TARGET, family.order.instance_type, is_spot=True)
        assert (await store.tree(family.task.id)).progress == await store.task_progress(family.task.id) == said

    async def test_a_task_that_never_ran_is_a_row_too(self, store: Store) -> None:
        job, _ = await submitted(store)
        (row,) = (await store.task_page(TaskQuery(job_id=job.id))).items
        assert (row.progress, row.attempt) == (None, None)
        assert await store.task_progress(row.task.id) is None

    async def test_tasks_are_found_by_their_places(self, store: Store) -> None:
        job, tasks = await a_sweep(store)
        await crewed(store, job)
        assert list(await store.tasks_between(job.id, 2, 5)) == tasks[2:5]
        assert list(await store.tasks_between(job.id, 0, 100)) == tasks
        assert list(await store.tasks_between(job.id, 5, 5)) == []

    @pytest.mark.parametrize(
        "cursor", ["", "x", "%%%", "MTIz", "WzAsMCwwLDBd", "bnVsbA==", "☃", "WzAsMCw5OTk5OTk5OTk5XQ=="]
    )
    async def test_a_cursor_that_is_none_is_refused(self, store: Store, cursor: str) -> None:
        job, _ = await submitted(store)
        with pytest.raises(InvalidRequest, match="cursor"):
            await store.task_page(TaskQuery(job_id=job.id, cursor=cursor))

    @pytest.mark.parametrize("limit", [0, -1, 1001])
    async def test_a_page_of_any_size_is_refused(self, store: Store, limit: int) -> None:
        with pytest.raises(InvalidRequest, match="1 to 1000"):
            await store.task_page(TaskQuery(job_id=JobId("j"), limit=limit))

    # --- all of them together -----------------------------------------------------------------------------------

    async def test_a_job_is_as_far_as_its_tasks_together(self, store: Store) -> None:
        job, tasks = await submitted(store, "j1", 4)
        await crewed(store, job)
        assert await store.job_progress(job.id) is None
        early = replace(said(tasks[0], Curve(last=1.0), 0), fraction=1.0)
        late = replace(said(tasks[1], Curve(last=2.0), 1), fraction=0.5, metrics={"loss": 2.0})
        await store.heard([], [early, late, said(tasks[2], None, 0)])
        found = await store.job_progress(job.id)
        assert found == JobProgress(4, 1.5, replace(late, curve=None))
        assert [one.curve for one in await store.progress(job.id)] == [None, None, None]
        ended = [step(task, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1] for task in tasks[2:]]
        await store.commit(ended, label="test")
        found = await store.job_progress(job.id)
        assert found is not None and found.done == 3.5, "who has succeeded is done, whatever it said"

    async def test_the_tries_of_all_tasks_are_added_up(self, store: Store) -> None:
        job, (first, second) = await submitted(store, "j1", 2)
        lost = TaskRetried(NOW, "gone", NOW, counts_as_failure=False, counts_as_loss=True)
        failed = TaskRetried(NOW, "no", NOW, counts_as_failure=True, counts_as_loss=False)
        placed = TaskPlaced(NOW, AttemptId("a"), LATER)
        await store.commit([step(first, placed, lost, placed, failed)[1], step(second, placed)[1]], label="test")
        assert await store.tries(job.id) == Tries(started=3, failures=1, losses=1)
        assert await store.tries(JobId("none")) == Tries()

    # --- counts -------------------------------------------------------------------------------------------------

    async def test_trials_are_counted_by_how_they_ended(self, store: Store) -> None:
        job, _ = await a_sweep(store)
        await crewed(store, job)
        found = await store.trial_counts(job.id)
        assert sorted(found, key=str) == sorted(
            [
                TrialCount(TaskPhase.SUCCEEDED, None, True, 3),
                TrialCount(TaskPhase.SUCCEEDED, None, False, 1),
                TrialCount(TaskPhase.SUCCEEDED, Verdict.PRUNED, True, 2),
                TrialCount(TaskPhase.SUCCEEDED, Verdict.REUSED, True, 1),
                TrialCount(TaskPhase.FAILED, None, False, 1),
                TrialCount(TaskPhase.CANCELLED, Verdict.SKIPPED, False, 1),
            ],
            key=str,
        )

    async def test_searches_and_evaluations_that_are_not_over_are_looked_after(self, store: Store) -> None:
        for number, kind in enumerate((JobType.HPO, JobType.TRAINING, JobType.EVAL, JobType.HPO, JobType.HPO)):
            job, _ = await submitted(store, f"j{number}", job_type=kind, created_at=NOW + number * SECOND)
            if number == 3:
                await store.commit([step(job, JobStatusChanged(NOW, JobStatus.FAILED, "no"))[1]], label="test")
            if number == 4:
                await store.commit([step(job, JobDesired(NOW, Desired.HOLD, job.user_id))[1]], label="test")
        assert await store.sweeping() == ["j0", "j2"]

    # --- what was tried -----------------------------------------------------------------------------------------

    async def test_an_adaptive_search_learns_from_what_was_found_and_from_what_runs(self, store: Store) -> None:
        job, tasks = await a_sweep(store)
        ended = [0, 1, 2, 3, 4, 5, 6, 7]  # what was skipped has found nothing out
        values = {task.index: task.value for task in tasks}
        less = sorted(ended, key=lambda n: standing_of(values[n], 1, n))
        more = sorted(ended, key=lambda n: standing_of(values[n], -1, n))
        assert await store.tried(job.id, Goal.MINIMIZE, 100) == [Tried(n, {"x": n}, values[n]) for n in less]
        assert [one.number for one in await store.tried(job.id, Goal.MAXIMIZE, 3)] == more[:3]

    async def test_what_runs_comes_first_and_what_was_given_nothing_not_at_all(self, store: Store) -> None:
        _, (first, second, _) = await submitted(store, "j1", 3)
        await store.commit([step(first, TaskGiven(NOW, {"x": 1}))[1]], label="test")
        done = (TaskGiven(NOW, {"x": 2}), TaskEnded(NOW, TaskPhase.SUCCEEDED, None, value=0.5))
        await store.commit([step(second, *done)[1]], label="test")
        found = await store.tried(JobId("j1"), Goal.MINIMIZE, 10)
        assert found == [Tried(0, {"x": 1}, is_live=True), Tried(1, {"x": 2}, 0.5)]

    # --- what trials report -------------------------------------------------------------------------------------

    async def test_curves_are_read_from_where_one_has_read_to(self, store: Store) -> None:
        job, tasks = await submitted(store, "j1", 3)
        old, new = Curve(last=1.0, reports=1), Curve(last=0.5, reports=2, marks=((1, 1.0),))
        await store.heard([], [said(tasks[0], old, 0), said(tasks[1], None, 0), said(tasks[2], old, 1)])
        first = await store.curves(job.id, None)
        assert first.curves == {tasks[0].id: old, tasks[2].id: old}
        assert first.until == NOW + SECOND
        await store.heard([], [said(tasks[0], new, 2)])
        second = await store.curves(job.id, NOW + 2 * SECOND)
        assert second.curves == {tasks[0].id: new}
        nothing = await store.curves(job.id, NOW + 9 * SECOND)
        assert (nothing.curves, nothing.until) == ({}, NOW + 9 * SECOND)
        assert (await store.curves(JobId("none"), None)).until is None

    async def test_only_trials_that_run_can_be_given_up_and_only_once(self, store: Store) -> None:
        job, tasks = await submitted(store, "j1", 5)
        phases = (TaskPhase.RUNNING, TaskPhase.CHECKPOINTING, TaskPhase.PROVISIONING, TaskPhase.RUNNING)
        for task, phase in zip(tasks, phases, strict=False):
            events: list[Any] = [TaskAdvanced(NOW, phase, LATER)]
            if task.index == 3:
                events.append(TaskPruned(NOW, "bad"))
            await store.commit([step(task, *events)[1]], label="test")
        await crewed(store, job)
        assert list(await store.running_trials(job.id)) == [tasks[0].id, tasks[1].id]

    # --- how long they take, and what they leave ------------------------------------------------------------------

    async def test_run_times_are_of_programs_that_ran(self, store: Store) -> None:
        assert (await store.run_times(JobId("none"))).ended == 0
        family = await running(store)
        assert (await store.run_times(family.job.id)).live_since == ()
        attempt, began = step(family.attempt, AttemptStarted(NOW, LATER))
        await store.commit([began], label="test")
        times = await store.run_times(family.job.id)
        assert (times.ended, times.live_since) == (0, (NOW,))
        _, over = step(attempt, AttemptEnded(NOW + 90 * SECOND, Outcome.SUCCEEDED, None))
        await store.commit([over], label="test")
        times = await store.run_times(family.job.id)
        assert (times.ended, times.ended_s, times.live_since) == (1, 90.0, ())

    async def test_the_newest_checkpoint_is_that_of_the_trial(self, store: Store) -> None:
        job, _ = await submitted(store)
        saved = [a_checkpoint(job, 3, 0), a_checkpoint(job, 9, 1), a_checkpoint(job, 5, 0)]
        await store.commit([], saved, label="test")
        assert await store.newest_checkpoint(job.lineage, 0) == saved[2]
        assert await store.newest_checkpoint(job.lineage, 1) == saved[1]
        assert await store.newest_checkpoint(job.lineage, 2) is None


def standing_of(value: float | None, sign: int, number: int) -> tuple[bool, float, int]:
    return value is None, sign * (value or 0.0), number


async def a_sweep(store: Store) -> tuple[Job, list[Task]]:
    """A job of trials that have all ended, each in its own way."""
    job = a_job(job_type=JobType.HPO)
    made = [a_task(job, n, params={"x": n}) for n in range(len(ENDS))]
    changes = [born(job, JobSubmitted(NOW)), *(born(task, TaskCreated(NOW)) for task in made)]
    await store.submit(changes, idempotency_key=None, user_id=job.user_id)
    tasks = []
    for task, (value, phase, verdict) in zip(made, ENDS, strict=True):
        end = TaskEnded(NOW, phase, "because", verdict, value, {"loss": value} if value is not None else {})
        after, change = step(task, end)
        await store.commit([change], label="test")
        tasks.append(after)
    return job, tasks


async def crewed(store: Store, job: Job) -> Task:
    """One that holds machines for the others."""
    crew: Task
    crew, advanced = step(replace(a_task(job, -1), kind=TaskKind.CREW), TaskAdvanced(NOW, TaskPhase.RUNNING, None))
    await store.commit([replace(advanced, before=None, events=(TaskCreated(NOW), *advanced.events))], label="test")
    return crew


async def listed(store: Store, query: TaskQuery) -> list[Task]:
    found: list[Task] = []
    while True:
        page = await store.task_page(query)
        found += [row.task for row in page.items]
        if page.next_cursor is None:
            return found
        query = replace(query, cursor=page.next_cursor)


def said(task: Task, curve: Curve | None, seconds: int) -> Progress:
    return Progress(
        task_id=TaskId(task.id),
        job_id=task.job_id,
        attempt_id=AttemptId("a"),
        at=NOW + seconds * SECOND,
        curve=curve,
    )


def a_checkpoint(job: Job, step: int, task_index: int) -> Checkpoint:
    return Checkpoint(
        lineage=job.lineage,
        job_id=job.id,
        attempt_id=AttemptId("a"),
        step=step,
        uri=f"file:///{task_index}/{step}",
        size_bytes=1,
        manifest_sha256=Digest(f"{task_index}{step}"),
        created_at=NOW,
        task_index=task_index,
    )
