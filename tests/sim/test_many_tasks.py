"""Jobs of many tasks in the pretend cloud: machines come, go and are shared, replies get lost, the server dies; every
task ends once, no seat has two tasks, no machine is left, and the books agree."""

import asyncio
import json
from dataclasses import dataclass

import pytest
from simulation import ADMIN, World

from crucible.core.crew import devices_taken
from crucible.model.errors import Conflict
from crucible.model.ids import JobId
from crucible.model.job import Desired, JobStatus
from crucible.model.task import TaskKind, TaskPhase
from crucible.testing.fake_cloud import Faults

TROUBLE = Faults(
    lost_reply=0.05,
    error_before=0.05,
    no_capacity=0.05,
    late_listing=0.05,
    lying_delete=0.1,
    machine_dies=0.2,
    taken=0.2,
    noticed=0.2,
    list_fails=0.05,
    server_unreachable=0.03,
    reply_lost=0.03,
)

SPEC = """\
job:
  type: hpo
  command: [train]
  resources: {{gpus: {gpus}}}
  retry: {{limit: 2, delay: 10s}}
  constraints: {{allow_spot: true}}
  execution: {{parallelism: {parallelism}}}
  sweep:
    max_failures: {max_failures}
    parameters:
      SIM_SECONDS: [1, 5, 40]
      SIM_FAILS: {fails}
      SIM_CHECKPOINT_EVERY: [0, 20]
"""


@dataclass(frozen=True)
class Search:
    gpus: int
    parallelism: int
    fails: tuple[int, ...]
    max_failures: int
    cancel_after: float | None

    def spec(self) -> str:
        words = {**self.__dict__, "fails": json.dumps(self.fails)}
        return SPEC.format(**words)

    @property
    def failing(self) -> int:
        return sum(fails > 2 for fails in self.fails) * 6

    def endings(self) -> set[JobStatus]:
        natural = JobStatus.FAILED if self.failing > self.max_failures else JobStatus.COMPLETED
        return {natural} if self.cancel_after is None else {natural, JobStatus.CANCELLED}


class Searches(World):
    async def _person(self, number: int) -> JobId:
        r = self.random
        story = Search(
            gpus=r.choice([0, 1, 1, 2]),
            parallelism=r.choice([1, 3, 8, 100]),
            fails=r.choice([(0,), (0, 1), (0, 1_000_000), (2,)]),
            max_failures=r.choice([0, 6]),
            cancel_after=r.uniform(0, 300) if r.random() < 0.2 else None,
        )
        await asyncio.sleep(r.uniform(0, 60 * self.jobs))
        job_id = await self._insist(
            lambda: self.engine.service.submit(ADMIN, name=f"job{number}", spec_yaml=story.spec())
        )
        if story.cancel_after is not None:
            await asyncio.sleep(story.cancel_after)
            try:
                await self._insist(lambda: self.engine.service.cancel(ADMIN, job_id))
            except Conflict:
                pass
        while not (job := await self.store.job(job_id)).status.is_terminal:
            await self._check_seats(job_id, story)
            await asyncio.sleep(5)
        if job.status not in story.endings():
            self.broken.append(f"{job_id} {story} ended {job.status}: {job.reason}")
        await self._check_tasks(job_id, story, job.desired)
        return job_id

    async def _check_seats(self, job_id: JobId, story: Search) -> None:
        crews = await self.store.crews(job_id)
        if len(crews.at_work) > story.parallelism:
            self.broken.append(f"{len(crews.at_work)} tasks at a time, {story.parallelism} were asked for")
        for node_id in {rank.node_id for attempt in crews.at_work for rank in attempt.ranks}:
            here = [a for a in crews.at_work if any(r.node_id == node_id for r in a.ranks)]
            devices = [device for a in here for r in a.ranks if r.exit_code is None for device in r.devices]
            if story.gpus and len(devices) != len(set(devices)):
                self.broken.append(f"a GPU of {node_id} was given out twice: {devices_taken(here)}")

    async def _check_tasks(self, job_id: JobId, story: Search, desired: Desired) -> None:
        tasks = [task for task in await self.store.job_tasks(job_id) if task.kind is TaskKind.SEATED]
        phases = [task.phase for task in tasks]
        if len(tasks) != 6 * len(story.fails) or not all(phase.is_terminal for phase in phases):
            self.broken.append(f"{job_id} has ended, its tasks have not: {phases}")
        if desired is Desired.RUN and phases.count(TaskPhase.FAILED) != story.failing:
            self.broken.append(f"{job_id}: {phases.count(TaskPhase.FAILED)} tasks failed, {story.failing} should have")


@pytest.mark.parametrize("is_bought", [False, True])
def test_every_task_ends_once_whatever_happens(is_bought: bool) -> None:
    outcome = Searches(
        seed=7, jobs=12, faults=TROUBLE, restart_every_s=200, clock_steps=True, is_bought=is_bought
    ).run()
    assert outcome.broken == []
    assert outcome.restarts > 3


def test_the_same_seed_gives_the_same_run() -> None:
    once, again = (Searches(seed=3, jobs=4, faults=TROUBLE, restart_every_s=900).run() for _ in range(2))
    assert once.digest == again.digest


def test_machines_are_shared_by_tasks_and_used_again() -> None:
    outcome = Searches(seed=11, jobs=6).run()
    assert outcome.broken == []
    assert outcome.machines < 60  # of more than a hundred tasks


GANGS = """\
job:
  type: hpo
  command: [train]
  resources: {nodes: 2}
  execution: {parallelism: 2}
  sweep: {parameters: {SIM_SECONDS: [20, 30, 40, 50, 60, 70]}}
"""


class Gangs(World):
    async def _person(self, number: int) -> JobId:
        job_id = (await self.engine.service.submit(ADMIN, name=f"job{number}", spec_yaml=GANGS)).id
        most = 0
        while not (await self.store.job(job_id)).status.is_terminal:
            most = max(most, len((await self.store.crews(job_id)).at_work))
            await asyncio.sleep(1)
        if most != 2:
            self.broken.append(f"{most} gangs at a time, 2 were asked for")
        return job_id


def test_as_many_gangs_run_at_a_time_as_were_asked_for() -> None:
    outcome = Gangs(seed=5, jobs=1).run()
    assert outcome.broken == []
    assert outcome.statuses == {JobStatus.COMPLETED: 1}


class OneByOne(World):
    """A search that has one seat: between two trials nothing runs for a moment."""

    async def _person(self, number: int) -> JobId:
        spec = Search(gpus=1, parallelism=1, fails=(0,), max_failures=0, cancel_after=None).spec()
        job_id = (await self.engine.service.submit(ADMIN, name=f"job{number}", spec_yaml=spec)).id
        seen: list[JobStatus] = []
        while not seen or not seen[-1].is_terminal:
            status = (await self.store.job(job_id)).status
            seen += [status] if seen[-1:] != [status] else []
            await asyncio.sleep(0.05)
        if seen.count(JobStatus.RUNNING) != 1 + seen.count(JobStatus.CHECKPOINTING):
            self.broken.append(f"it ran, and did not, and did again: {seen}")
        return job_id


def test_a_search_runs_from_its_first_trial_to_its_last() -> None:
    assert OneByOne(seed=5, jobs=1).run().broken == []
