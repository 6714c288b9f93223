"""Drive one task, and derive one job: look, decide, record. Neither talks to a provider."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from crucible.core import job as jobs
from crucible.core.checkpoint import is_given_up
from crucible.core.cooling import rests
from crucible.core.step import advance
from crucible.engine.context import Context
from crucible.engine.telemetry import Telemetry
from crucible.model.attempt import Attempt
from crucible.model.change import Change, changed
from crucible.model.errors import StaleClaim, StaleVersion
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.job import Job
from crucible.model.lease import Lease, Node
from crucible.model.record import Artifact, ArtifactType, Record
from crucible.model.task import Task, TaskPhase
from crucible.model.tree import TaskTree

# Each round is new news; a task that is still not at rest then is woken again.
ROUNDS = 8
# Lost attempts that were looked after already.
MOURNED = 10_000


class TaskReconciler:
    def __init__(
        self, context: Context, want_place: Callable[[], None], last_words: Callable[[TaskTree], Awaitable[bool]]
    ) -> None:
        """`last_words` takes in what the ranks of a lost attempt left in storage."""
        self._context = context
        self._want_place = want_place
        self._last_words = last_words
        self._mourned: OrderedDict[AttemptId, None] = OrderedDict()

    async def step(self, task_id: TaskId) -> None:
        context = self._context
        claim = await context.store.claim(f"task:{task_id}", context.server_id, context.claim_ttl)
        if claim is None:
            return
        try:
            for _ in range(ROUNDS):
                context.wakes.looking("task", task_id)
                tree = await context.store.tree(task_id)
                changes = advance(tree, context.view(tree.job, tree.leases))
                if not changes:
                    return
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
        self._context.tidy_later(tree.job.id)
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
    def __init__(self, context: Context, telemetry: Telemetry) -> None:
        self._context = context
        self._telemetry = telemetry

    async def step(self, job_id: JobId) -> None:
        """Make the job's status follow from its tasks. No claim: two servers derive the same."""
        store = self._context.store
        job = await store.job(job_id)
        if job.status.is_terminal:
            return
        tally = await store.tally(job_id)
        after, changes = changed(job, jobs.decide(job, tally, self._context.clock.now()), jobs.evolve)
        if not changes:
            return
        try:
            await store.commit(changes, await self._left_behind(after), label="job.status")
        except StaleVersion:
            self._context.wakes.wake("job", job_id)
        if after.status.is_terminal:
            self._context.tidy_later(job_id)
        self._context.hub.notify(job_id)

    async def _left_behind(self, job: Job) -> Sequence[Record]:
        """What a finished job leaves: what it took beside what was expected, and files for people to find."""
        if not job.status.is_terminal:
            return ()
        outcome = await self._telemetry.outcome(job)
        return (outcome,) if job.started_at is None else (outcome, *self._files(job))

    def _files(self, job: Job) -> tuple[Artifact, ...]:
        now = self._context.clock.now()
        kinds = ((ArtifactType.LOG, "logs"), (ArtifactType.METRICS, "metrics"))
        return tuple(
            Artifact(job_id=job.id, type=kind, uri=f"/v1/jobs/{job.id}/{route}", created_at=now)
            for kind, route in kinds
        )
