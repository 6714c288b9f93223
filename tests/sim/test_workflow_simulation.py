"""Random workflows through the whole engine on a virtual clock, in a world where replies are lost, machines die and the
server is stopped and started again. A failure names its seed."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from simulation import ADMIN, ALWAYS, World
from test_simulation import ROUGH

from crucible.core.workflow import Part
from crucible.engine.workflow_parts import parts_of
from crucible.model.errors import Conflict
from crucible.model.ids import JobId
from crucible.model.job import Job, JobStatus
from crucible.model.task import TaskPhase, Verdict
from crucible.testing.fake_cloud import Faults

WHEN = ("succeeded", "succeeded", "succeeded", "failed", "ended")
ENDS = {
    JobStatus.COMPLETED: TaskPhase.SUCCEEDED,
    JobStatus.FAILED: TaskPhase.FAILED,
    JobStatus.CANCELLED: TaskPhase.CANCELLED,
}


@dataclass(frozen=True)
class Flow:
    """What one workflow will do. Cached results of others are kept out by its number."""

    number: int
    needs: Mapping[str, Sequence[str]]
    when: Mapping[str, str]
    fails: frozenset[str]
    cancel_after: float | None

    def spec(self) -> str:
        steps = "".join(
            f"    - {{name: {name}, needs: [{', '.join(before)}], when: {self.when[name]}, command: [{name}], "
            f'env: {{SIM_SECONDS: "{10 + len(before)}", SIM_FAILS: "{ALWAYS if name in self.fails else 0}"}}}}\n'
            for name, before in self.needs.items()
        ).replace("needs: [], ", "")
        head = "job:\n  resources: {gpus: 1}\n  retry: {limit: 0}\n  constraints: {allow_spot: true}\n"
        return f'{head}  env: {{NUMBER: "{self.number}", SIM_LINES: "1"}}\n  steps:\n{steps}'


class FlowWorld(World):
    async def _person(self, number: int) -> JobId:
        await asyncio.sleep(self.random.uniform(0, 10 * self.jobs))
        flow = self._flow(number)
        job_id = await self._insist(
            lambda: self.engine.service.submit(ADMIN, name=f"flow{number}", spec_yaml=flow.spec())
        )
        if flow.cancel_after is not None:
            await asyncio.sleep(flow.cancel_after)
            try:
                await self._insist(lambda: self.engine.service.cancel(ADMIN, job_id))
            except Conflict:
                pass
        while not (job := await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(5)
        self.broken += wrong_with(flow, job, await parts_of(self.engine.context, job))
        return job_id

    def _flow(self, number: int) -> Flow:
        r = self.random
        names = [f"s{i}" for i in range(r.randrange(1, 7))]
        needs = {name: r.sample(names[:i], r.randrange(0, min(i, 3) + 1)) for i, name in enumerate(names)}
        return Flow(
            number=number,
            needs=needs,
            when={name: r.choice(WHEN) if needs[name] else "succeeded" for name in names},
            fails=frozenset(name for name in names if r.random() < 0.2),
            cancel_after=r.uniform(0, 300) if r.random() < 0.15 else None,
        )


def wrong_with(flow: Flow, job: Job, parts: Sequence[Part]) -> list[str]:
    found = {part.step.name: part for part in parts}
    said = [one for part in parts for one in wrong_with_step(flow, part, found)]
    phases = {part.task.phase for part in parts}
    cancelled = [part for part in parts if part.task.phase is TaskPhase.CANCELLED and part.task.verdict is None]
    expected = JobStatus.CANCELLED if cancelled or TaskPhase.SUCCEEDED not in phases else JobStatus.COMPLETED
    expected = JobStatus.FAILED if TaskPhase.FAILED in phases else expected
    if job.status is not expected and flow.cancel_after is None:
        said.append(f"{job.id} is {job.status}, its steps say {expected}")
    return said


def wrong_with_step(flow: Flow, part: Part, found: Mapping[str, Part]) -> list[str]:
    child, task, needed = part.child, part.task, [found[name] for name in part.step.needs]
    said = [] if task.phase.is_terminal else [f"{task.id} has not ended"]
    if child is None:
        if task.phase is not TaskPhase.CANCELLED:
            said.append(f"{task.id} is {task.phase} without a job")
        if task.verdict is not Verdict.SKIPPED and flow.cancel_after is None:
            said.append(f"{task.id} was not begun, and nobody cancelled it")
        return said
    if ENDS.get(child.status) is not task.phase:
        said.append(f"{task.id} is {task.phase}, its job {child.status}")
    if flow.cancel_after is None:
        ending = JobStatus.FAILED if part.step.name in flow.fails else JobStatus.COMPLETED
        said += [] if child.status is ending else [f"{child.id} {child.status}: {child.reason}, not {ending}"]
    for other in needed:
        end = other.child.finished_at if other.child is not None else None
        if not other.task.phase.is_terminal or (end is not None and end > child.created_at):
            said.append(f"{part.step.name} of {child.parent} began before {other.step.name} had ended")
    return said


def test_workflows_in_a_calm_world_come_to_the_end_that_their_steps_have() -> None:
    outcome = FlowWorld(seed=1, jobs=25).run()
    assert outcome.broken == []
    assert sum(outcome.statuses.values()) == 25 and len(outcome.statuses) == 3


@pytest.mark.parametrize("seed", range(500, 503))
def test_a_rough_world_with_restarts_begins_nothing_early_and_loses_no_step(seed: int) -> None:
    outcome = FlowWorld(seed=seed, jobs=25, faults=ROUGH, restart_every_s=30).run()
    assert outcome.broken == [], f"seed {seed}"
    assert sum(outcome.statuses.values()) == 25 and outcome.restarts > 3


def test_a_server_that_is_always_restarted_still_gets_every_workflow_done() -> None:
    outcome = FlowWorld(seed=510, jobs=6, faults=Faults(), restart_every_s=15).run()
    assert outcome.broken == []
