"""Jobs of a team whose budget runs out, in a cloud whose spot prices jump, by a server that is killed at its commits:
no bill passes the limit, what is paused goes on when there is more, and the books are the bill."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from simulation import ADMIN, World

from crucible.engine.budget_desk import Wanted
from crucible.engine.engine import Engine
from crucible.model.account import Team
from crucible.model.budget import BudgetId, Period, Scope
from crucible.model.errors import StorageFailed
from crucible.model.ids import JobId
from crucible.model.job import JobStatus
from crucible.model.policy import Policy
from crucible.model.units import MicroUsd, micro_usd
from crucible.testing.fake_cloud import Faults
from crucible.testing.virtual import EPOCH

TEAM = BudgetId("team:vision:once")
STEPS = 900  # a second each
SPEC = """\
job:
  command: [train]
  team: vision
  priority: {priority}
  resources: {{gpus: 2, max_gpus_per_node: 2, estimated_hours: 0.3}}
  progress: {{total_steps: {steps}}}
  constraints: {{allow_spot: true, strategy: cheapest}}
  env: {{SIM_STEPS: "{steps}", SIM_CHECKPOINT_EVERY: "60"}}
"""
TICK_S = Policy().budget_tick.total_seconds()
PER_MACHINE = 2 * 2_345_678 + 20_000  # micro-dollars per hour, at most
ROUGH = Faults(lost_reply=0.1, late_listing=0.1, lying_delete=0.1, list_fails=0.05, reply_lost=0.03)


@dataclass
class Vision(World):
    """A team with a budget that is too small for its jobs. It is topped up when nothing runs any more."""

    limit: MicroUsd = field(default_factory=lambda: micro_usd(1.2))
    dies_at: str | None = None  # the first time that it comes there
    tolerated: float = 0.0  # beyond the limit, of the rate of all machines, in ticks

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_bought = True
        self.killed = asyncio.Event()
        self.resumed = self.most_at_once = 0
        self.has_died = False
        self.submitted: list[JobId] = []

    # --- the server that dies -----------------------------------------------------------------------

    def failpoint(self, name: str) -> None:
        if name == self.dies_at and not self.has_died:
            self.has_died = True
            self.killed.set()
            raise StorageFailed(f"killed at {name}")

    async def _bury(self) -> None:
        """Another server is there within a few seconds, as a supervisor sees to."""
        await self.killed.wait()
        self.gateway = None
        await self.engine.stop()
        self.restarts += 1
        await asyncio.sleep(TICK_S / 2)
        await self._start()

    async def _start(self) -> Engine:
        engine = await super()._start()
        if not self.restarts:
            now = engine.context.clock.now()
            await self.store.add_team(Team(name="vision", created_at=now, created_by=ADMIN.user_id))
            await engine.budgets.create(ADMIN, Scope.TEAM, "vision", Period.ONCE, Wanted(limit=self.limit))
            self.cloud.surges_at = EPOCH + timedelta(minutes=4)
            self.burying = asyncio.create_task(self._bury())
        return engine

    # --- the team ------------------------------------------------------------------------------------

    async def _person(self, number: int) -> JobId:
        await asyncio.sleep(20 * number)
        spec = SPEC.format(steps=STEPS, priority=number % 2)
        job_id = await self._insist(lambda: self.engine.service.submit(ADMIN, name=f"v{number}", spec_yaml=spec))
        self.submitted.append(job_id)
        if number == 0:
            await self._top_up()
        while not (await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(5)
        self.resumed += sum(bool(one.resume_step) for one in await self.store.job_attempts(job_id))
        return job_id

    async def _top_up(self) -> None:
        while not await self._is_spent():
            await asyncio.sleep(5)
            self.most_at_once = max(self.most_at_once, len(self.cloud.alive()))
        await asyncio.sleep(200)
        self.spent = self.cloud.owed()
        self.broken += ["something runs although the budget is spent"] if self.cloud.alive() else []
        allowed = self.limit + self.tolerated * self.most_at_once * PER_MACHINE * TICK_S / 3600
        self.broken += [f"{self.spent} is spent of {self.limit}"] if self.spent > allowed else []
        await self._insist(self._raise_limit)

    async def _raise_limit(self) -> "Named":
        await self.engine.budgets.change(ADMIN, TEAM, Wanted(limit=micro_usd(100)))
        return Named(JobId("vision"))

    async def _is_spent(self) -> bool:
        """Every job waits for money, or is done."""
        jobs = [await self.store.job(job_id) for job_id in self.submitted]
        waiting = [job for job in jobs if not job.status.is_terminal]
        said = all(job.status is JobStatus.PENDING and TEAM in (job.reason or "") for job in waiting)
        return len(jobs) == self.jobs and bool(waiting) and said and not self.cloud.alive()


@dataclass(frozen=True)
class Named:
    id: JobId


def test_paused_jobs_keep_within_the_budget_and_finish_after_a_top_up() -> None:
    made = Vision(seed=1, jobs=3)
    outcome = made.run()
    assert outcome.broken == [] and outcome.statuses == {JobStatus.COMPLETED: 3}
    assert made.resumed >= 1 and made.spent > made.limit / 2


POINTS = [f"commit.{what}.{side}" for what in ("budget.stop", "budget.go_on") for side in ("before", "after")]


@pytest.mark.parametrize("point", POINTS)
def test_a_server_that_dies_at_a_commit_keeps_the_budget_all_the_same(point: str) -> None:
    """Half a tick later there is another."""
    made = Vision(seed=2, jobs=2, dies_at=point)
    outcome = made.run()
    assert outcome.broken == [] and outcome.statuses == {JobStatus.COMPLETED: 2}
    assert outcome.restarts == 1


@pytest.mark.parametrize("seed", range(600, 601))
def test_lost_replies_late_listings_and_deletes_that_do_nothing_cost_a_tick_at_most(seed: int) -> None:
    made = Vision(seed=seed, jobs=3, faults=ROUGH, tolerated=1.0)
    outcome = made.run()
    assert outcome.broken == [], f"seed {seed}"
    assert outcome.statuses == {JobStatus.COMPLETED: 3}
