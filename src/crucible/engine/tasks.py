"""Drive one task, and derive one job: look, decide, record. Neither talks to a provider."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core.checkpoint import is_given_up
from crucible.core.cooling import rests
from crucible.core.notices import failure
from crucible.core.outputs import artifact_of
from crucible.core.shards import fate
from crucible.core.step import advance
from crucible.core.unfold import tolerated
from crucible.engine.context import Context
from crucible.engine.crews import CrewDesk
from crucible.engine.sweeps import Sweeps
from crucible.engine.telemetry import Telemetry
from crucible.engine.telling import NOTICES
from crucible.model.attempt import Attempt
from crucible.model.change import Change, changed
from crucible.model.errors import StaleClaim, StaleVersion
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.job import Desired, Job
from crucible.model.lease import Lease, Node
from crucible.model.record import Artifact, ArtifactType, Record
from crucible.model.task import Task, TaskEnded, TaskKind, TaskPhase, Verdict
from crucible.model.tree import Tally, TaskTree

# Each round is new news; a task that is still not at rest then is woken again.
ROUNDS = 8
# Waiting tasks that end in one transaction.
ENDED_TOGETHER = 500
# Lost attempts that were looked after already.
MOURNED = 10_000


class TaskReconciler:
    def __init__(
        self,
        context: Context,
        want_place: Callable[[], None],
        last_words: Callable[[TaskTree], Awaitable[bool]],
        note_size: Callable[[TaskTree], None],
        crews: CrewDesk,
    ) -> None:
        """`last_words` takes in what the ranks of a lost attempt left in storage; `note_size` hears of every task that
        is at rest, in case it could use more machines."""
        self._context = context
        self._want_place = want_place
        self._last_words = last_words
        self._note_size = note_size
        self._crews = crews
        self._mourned: OrderedDict[AttemptId, None] = OrderedDict()

    async def step(self, task_id: TaskId) -> None:
        context = self._context
        claim = await context.store.claim(f"task:{task_id}", context.server_id, context.claim_ttl)
        if claim is None:
            return None
        try:
            for _ in range(ROUNDS):
                context.wakes.looking("task", task_id)
                tree = await context.store.tree(task_id)
                if tree.task.kind is TaskKind.STEP:
                    return context.wakes.wake("workflow", tree.job.id)
                if tree.task.kind is TaskKind.CREW:
                    if await self._crews.step(tree, claim):
                        self._want_place()
                        continue
                    return None
                changes = advance(tree, context.view(tree.job, tree.leases))
                if not changes:
                    return self._note_size(tree)
                if is_given_up(tree.attempt, changes) and await self._left_word(tree):
                    continue
                resting = rests(changes, tree.orders, context.clock.now(), context.policy)
                await context.store.commit(changes, resting, label="task.step", claim=claim)
                self._tell(tree, changes)
        except StaleVersion:
            context.wakes.wake("task", task_id)
        except StaleClaim:
            pass
        finally:
            await context.store.release(claim)

    async def _left_word(self, tree: TaskTree) -> bool:
        """Its machine may have died after its ranks were done: a success is not run again. One look at each attempt."""
        if tree.attempt is None or tree.attempt.id in self._mourned:
            return False
        has_left_word = await self._last_words(tree)
        self._mourned[tree.attempt.id] = None
        if len(self._mourned) > MOURNED:
            self._mourned.popitem(last=False)
        self._context.tidy_later(tree.job.id, tree.task.index)
        return has_left_word

    def _tell(self, tree: TaskTree, changes: tuple[Change, ...]) -> None:
        self._context.tell(tree.job.id, tree.task.id, changes)
        if any(isinstance(change.after, (Attempt, Lease)) for change in changes):
            for node in tree.nodes:
                self._context.hub.notify(node.id)
        if any(may_free_or_want(change.after) for change in changes):
            self._want_place()


def may_free_or_want(changed: object) -> bool:
    """A machine is gone and its place is free, or the task waits again."""
    return isinstance(changed, Node) or (isinstance(changed, Task) and changed.phase is TaskPhase.WAITING)


class JobReconciler:
    def __init__(self, context: Context, telemetry: Telemetry, sweeps: Sweeps) -> None:
        self._context = context
        self._telemetry = telemetry
        self._sweeps = sweeps

    async def step(self, job_id: JobId) -> None:
        """Make the job's status follow from its tasks. No claim: two servers derive the same."""
        store = self._context.store
        job = await store.job(job_id)
        if job.status.is_terminal:
            return
        if job.desired is Desired.CANCEL or job.drained is not None:
            await self._end_waiting(job)
        tally, allowed = await store.tally(job_id), tolerated(self._context.spec_of(job))
        decided = jobs.decide(job, tally, self._context.clock.now(), allowed, await self._fate(job, tally))
        after, changes = changed(job, decided, jobs.evolve)
        if not changes:
            return
        try:
            await store.commit(changes, [*await self._left_behind(after), *failure(after)], label="job.status")
        except StaleVersion:
            self._context.wakes.wake("job", job_id)
        if after.status.is_terminal:
            self._context.hub.notify(NOTICES)
            self._context.tidy_later(job_id)
            for task_id in await store.tasks_at_work(job_id):
                self._context.wakes.wake("task", task_id)  # its crews
        if job.parent is not None:
            self._context.wakes.wake("workflow", job.parent)
        self._context.hub.notify(job_id)

    async def _end_waiting(self, job: Job) -> None:
        """Ten thousand tasks that nobody wants any more end in a few transactions."""
        store, now = self._context.store, self._context.clock.now()
        is_cancelled = job.desired is Desired.CANCEL
        reason = "cancelled before it ran" if is_cancelled else job.drained
        ended = TaskEnded(now, TaskPhase.CANCELLED, reason, None if is_cancelled else Verdict.SKIPPED)
        while waiting := await store.waiting_tasks(job.id, ENDED_TOGETHER):
            changes = [change for task in waiting for change in changed(task, [ended], tasks.evolve)[1]]
            await store.commit(changes, label="job.end_waiting")
            for task in waiting:
                if task.kind is TaskKind.ALONE:
                    self._context.wakes.wake("task", task.id)  # it may hold machines

    async def _fate(self, job: Job, tally: Tally) -> jobs.Fate | None:
        """Of a job that works on items, when its workers have ended."""
        shards = self._context.spec_of(job).shards
        if shards is None or any(n and not phase.is_terminal for phase, n in tally.counts.items()):
            return None
        return fate(shards, await self._context.store.shard_tally(job.id))

    async def _left_behind(self, job: Job) -> Sequence[Record]:
        """What a finished job leaves: what it took beside what was expected, and files for people to find. All of it is
        left by the jobs of its steps, if it has any."""
        if not job.status.is_terminal or self._context.spec_of(job).steps:
            return ()
        outcome = await self._telemetry.outcome(job)
        if job.started_at is None:
            return (outcome,)
        now = self._context.clock.now()
        left = artifact_of(job, await self._context.store.output_totals(job.id), now)
        return outcome, *self._files(job), *left, *await self._sweeps.left_behind(job)

    def _files(self, job: Job) -> tuple[Artifact, ...]:
        now = self._context.clock.now()
        kinds = ((ArtifactType.LOG, "logs"), (ArtifactType.METRICS, "metrics"))
        return tuple(
            Artifact(job_id=job.id, type=kind, uri=f"/v1/jobs/{job.id}/{route}", created_at=now)
            for kind, route in kinds
        )
