"""Random workflows, driven by workers that look at old news, die between deciding and acting, and lose races, while
jobs end as they like and people hold and cancel. Whatever happens: nothing begins early, nothing runs twice, no
result is lost, and everything comes to an end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core import workflow
from crucible.core.workflow import Part
from crucible.model.change import Change, changed
from crucible.model.errors import StaleVersion
from crucible.model.ids import Digest, JobId, TaskId
from crucible.model.job import Desired, Job, JobStatus
from crucible.model.spec import JobSpec, Step, When
from crucible.model.steps import above, circle, layers
from crucible.model.task import Task, TaskAdvanced, TaskKind, TaskPhase, Verdict
from crucible.model.tree import Tally
from making import NOW, a_job, a_task

LIVE = [JobStatus.PENDING, JobStatus.SCHEDULED, JobStatus.PROVISIONING, JobStatus.RUNNING]
ENDS = [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED]
ENOUGH = 400  # rounds after which everything must have ended


@st.composite
def dags(draw: st.DrawFn) -> tuple[Step, ...]:
    names = [f"s{i}" for i in range(draw(st.integers(1, 8)))]
    steps = []
    for number, name in enumerate(names):
        needs = tuple(draw(st.lists(st.sampled_from(names[:number]), unique=True, max_size=3))) if number else ()
        when = draw(st.sampled_from(When)) if needs else When.SUCCEEDED
        steps.append(Step(name=name, job=JobSpec(command=("true",)), needs=needs, when=when))
    return tuple(draw(st.permutations(steps)))


@dataclass
class World:
    """Rows guarded by version, as the store has them."""

    steps: Sequence[Step]
    job: Job = field(default_factory=lambda: a_job(id=JobId("w"), lineage=JobId("w")))
    tasks: dict[int, Task] = field(default_factory=dict)
    children: dict[int, Job] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)  # how often a job was made for a step
    outputs: dict[int, Digest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            self.tasks[index] = a_task(
                id=TaskId(f"t{index}"), job_id=self.job.id, index=index, kind=TaskKind.STEP,
                params={"step": step.name}, deadline_at=None if step.needs else NOW,
            )  # fmt: skip

    def look(self) -> tuple[Job, list[Part]]:
        return self.job, [
            Part(step, self.tasks[index], self.children.get(index), self._came(index))
            for index, step in enumerate(self.steps)
        ]

    def _came(self, index: int) -> Task | None:
        child = self.children.get(index)
        if child is None or not child.status.is_terminal:
            return None
        return a_task(id=TaskId(f"c{index}"), outputs=self.outputs.get(index))

    def commit(self, changes: Sequence[Change]) -> None:
        for change in changes:
            assert isinstance(change.before, Task)
            if self.tasks[change.before.index].version != change.before.version:
                raise StaleVersion("somebody was faster")
        for change in changes:
            assert isinstance(change.after, Task) and isinstance(change.before, Task)
            assert not change.before.phase.is_terminal, f"{change.before} has ended already"
            self.tasks[change.after.index] = change.after

    def submit(self, part: Part) -> None:
        """A job for a step, and what that means for its task, in one transaction."""
        events = (TaskAdvanced(NOW, TaskPhase.WAITING, None),)
        self.commit(changed(part.task, events, tasks.evolve)[1])
        index = part.task.index
        assert index not in self.children, f"{part.step.name} has two jobs"
        self.check_turn(part.step)
        self.began[index] = self.began.get(index, 0) + 1
        self.children[index] = a_job(id=JobId(f"j{index}"), parent=self.job.id, step=index)

    def check_turn(self, step: Step) -> None:
        by_name = {one.name: self.tasks[index] for index, one in enumerate(self.steps)}
        needed = [by_name[name] for name in step.needs]
        assert all(task.phase.is_terminal for task in needed), f"{step.name} began early"
        if step.when is When.SUCCEEDED:
            assert all(task.phase is TaskPhase.SUCCEEDED for task in needed), f"{step.name} began in vain"
        if step.when is When.FAILED:
            before = above(step.name, {one.name: one.needs for one in self.steps})
            assert any(by_name[name].phase is TaskPhase.FAILED for name in before), f"{step.name} had no reason"

    def wish(self, child: Job, desired: Desired, reason: str) -> None:
        assert child.step is not None
        now = self.children[child.step]
        if not now.status.is_terminal and now.desired is not Desired.CANCEL:
            self.children[child.step] = replace(now, desired=desired, reason=reason)

    @property
    def is_over(self) -> bool:
        return all(task.phase.is_terminal for task in self.tasks.values())


@dataclass
class Worker:
    """Works with what it saw when it last looked; may die after any step."""

    world: World
    seen: tuple[Job, list[Part]] | None = None

    def turn(self, dies: Callable[[], bool]) -> None:
        job, parts = self.seen or self.world.look()
        self.seen = None
        events = workflow.decide(job, parts, NOW)
        changes = [c for part in parts for c in changed(part.task, events.get(part.task.index, ()), tasks.evolve)[1]]
        if dies():
            return
        try:
            self.world.commit(changes)
            if changes or dies():
                return
            for child, desired, reason in workflow.wishes(job, parts):
                if dies():
                    return
                self.world.wish(child, desired, reason)
            for part in workflow.to_begin(job, parts, NOW):
                if dies():
                    return
                self.world.submit(part)
        except StaleVersion:
            pass


def move(world: World, child: Job, choose: Callable[[Sequence[object]], object]) -> None:
    """A job of a step goes on, as any job might."""
    index = child.step
    assert index is not None
    if child.desired is Desired.CANCEL:
        after = replace(child, status=JobStatus.CANCELLED, reason="cancelled")
    elif child.desired is Desired.HOLD:
        after = replace(child, status=JobStatus.PENDING)
    else:
        status = choose([*LIVE, *ENDS])
        assert isinstance(status, JobStatus)
        after = replace(child, status=status, reason="it broke" if status is JobStatus.FAILED else None)
    if after.status is JobStatus.COMPLETED:
        world.outputs[index] = Digest(f"{index}" * 64)[:64]  # type: ignore[assignment]
    world.children[index] = after


@settings(max_examples=150, deadline=None)
@given(steps=dags(), data=st.data())
def test_no_step_begins_early_and_no_result_is_lost(steps: tuple[Step, ...], data: st.DataObject) -> None:
    world = World(steps)
    workers = [Worker(world), Worker(world)]
    for _ in range(data.draw(st.integers(0, 60))):
        what = data.draw(
            st.sampled_from(["turn", "turn", "turn", "old", "move", "move", "hold", "run", "rarely cancel"])
        )
        worker = data.draw(st.sampled_from(workers))
        live = [child for child in world.children.values() if not child.status.is_terminal]
        if what == "turn":
            worker.turn(lambda: data.draw(st.integers(0, 3)) == 0)
        elif what == "old":
            worker.seen = world.look()
        elif what == "move" and live:
            move(world, data.draw(st.sampled_from(live)), lambda among: data.draw(st.sampled_from(among)))
        elif what in ("hold", "run", "rarely cancel") and world.job.desired is not Desired.CANCEL:
            is_rare = what.startswith("rarely") and data.draw(st.integers(0, 4)) > 0
            world.job = world.job if is_rare else replace(world.job, desired=Desired(what.split()[-1]))
    finish(world)
    check(world)


def finish(world: World) -> None:
    """Calm: workers live, nobody holds anything, jobs end."""
    if world.job.desired is Desired.HOLD:
        world.job = replace(world.job, desired=Desired.RUN)
    worker = Worker(world)
    for _ in range(ENOUGH):
        worker.turn(lambda: False)
        for child in [child for child in world.children.values() if not child.status.is_terminal]:
            move(world, child, lambda among: JobStatus.COMPLETED)
        if world.is_over:
            return
    raise AssertionError("not everything came to an end")


def check(world: World) -> None:
    for index, step in enumerate(world.steps):
        task, child = world.tasks[index], world.children.get(index)
        assert world.began.get(index, 0) <= 1
        if child is None:
            assert task.phase is TaskPhase.CANCELLED
            assert task.verdict is Verdict.SKIPPED or world.job.desired is Desired.CANCEL
        else:
            assert child.status.is_terminal
            assert task.phase is {
                JobStatus.COMPLETED: TaskPhase.SUCCEEDED, JobStatus.FAILED: TaskPhase.FAILED,
                JobStatus.CANCELLED: TaskPhase.CANCELLED,
            }[child.status]  # fmt: skip
            assert task.outputs == (world.outputs.get(index) if child.status is JobStatus.COMPLETED else None)
        if world.job.desired is Desired.RUN and child is None:
            with pytest.raises(AssertionError):
                world.check_turn(step)  # what was skipped had no turn
    assert jobs.derived_status(world.job.desired, tally(world)) is expected(world)


def tally(world: World) -> Tally:
    counts: dict[TaskPhase, int] = {}
    for task in world.tasks.values():
        counts[task.phase] = counts.get(task.phase, 0) + 1
    skipped = sum(task.verdict is Verdict.SKIPPED for task in world.tasks.values())
    return Tally(counts, skipped=skipped)


def expected(world: World) -> JobStatus:
    phases = [task.phase for task in world.tasks.values()]
    cancelled = [t for t in world.tasks.values() if t.phase is TaskPhase.CANCELLED and t.verdict is None]
    if TaskPhase.FAILED in phases:
        return JobStatus.FAILED
    return JobStatus.CANCELLED if cancelled or TaskPhase.SUCCEEDED not in phases else JobStatus.COMPLETED


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefg"), max_size=3), max_size=6))
def test_a_circle_is_named_exactly_where_layers_cannot_be_made(needs: dict[str, list[str]]) -> None:
    free = [name for layer in layers(needs) for name in layer]
    found = circle(needs)
    assert (found == ()) == (len(free) == len(needs))
    for name, following in zip(found, (*found[1:], *found[:1]), strict=True):
        assert following in needs[name]
    assert all(set(needs[name]) & needs.keys() <= set(free[: free.index(name)]) for name in free)
