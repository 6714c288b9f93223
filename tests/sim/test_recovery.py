"""Gangs on spot machines that are taken back, with a notice and without, and nodes that fall silent: what was saved is
never done again, the next attempt goes where machines are not being taken, and never two attempts run at a time."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import pytest
from simulation import ADMIN, World

from crucible.model.attempt import Attempt
from crucible.model.ids import JobId
from crucible.model.job import JobStatus
from crucible.model.lease import Lease, Order
from crucible.model.policy import Policy
from crucible.testing.fake_cloud import Faults
from crucible.testing.virtual import EPOCH

JOBS = 8
CALM_S = 900.0  # by then the seller is asked only now and then
STEPS = 500  # a second each
EVERY = 30
NOTICED = ("AttemptStopping", "AttemptEnded")
TAKEN = Faults(taken=0.3, noticed=0.5, machine_dies=0.05, lost_reply=0.03, late_listing=0.03, reply_lost=0.03)
SPEC = """\
job:
  command: [train]
  resources: {{gpus: {gpus}, max_gpus_per_node: 2, estimated_hours: 0.5}}
  progress: {{total_steps: {steps}}}
  retry: {{limit: 0}}
  constraints: {{allow_spot: true, strategy: cheapest}}
  env: {{SIM_STEPS: "{steps}", SIM_CHECKPOINT_EVERY: "{every}"}}
"""


@dataclass
class Gangs(World):
    """Of two to four machines, each with two GPUs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_bought = True
        self.attempts = self.taken = self.resumed = 0

    async def _person(self, number: int) -> JobId:
        await asyncio.sleep(self.random.uniform(0, 900))
        spec = SPEC.format(gpus=self.random.choice([4, 6, 8]), steps=STEPS, every=EVERY)
        job_id = await self._insist(lambda: self.engine.service.submit(ADMIN, name=f"gang{number}", spec_yaml=spec))
        while not (await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(5)
        await self._judge(job_id)
        return job_id

    async def _judge(self, job_id: JobId) -> None:
        attempts = sorted(await self.store.job_attempts(job_id), key=lambda one: one.number)
        leases = await self.store.job_leases(job_id)
        (task,) = await self.store.job_tasks(job_id)
        self.attempts += len(attempts)
        self.taken += sum(lease.was_taken for lease in leases)
        self.resumed += sum(bool(one.resume_step) for one in attempts)
        self.broken += [f"{job_id} counts {task.failures} failures"] if task.failures else []
        self.broken += repeated_work(attempts)
        self.broken += bought_too_soon(await self.store.job_orders(job_id), leases)
        self.broken += wrong_lives(attempts, leases, await self.store.job_orders(job_id))


def repeated_work(attempts: list[Attempt]) -> list[str]:
    """Each attempt goes on from the newest checkpoint that was committed before it, or a newer one."""
    found, newest = [], 0
    for one in attempts:
        if (one.resume_step or 0) < newest:
            found.append(f"{one.id} was planned from step {one.resume_step}, {newest} was committed")
        newest = max(newest, one.saved_step or 0)
    return found


def bought_too_soon(orders: list[Order], leases: list[Lease]) -> list[str]:
    """Nothing is bought for ten minutes where a machine was taken back, as far as anybody knew."""
    kinds = {order.id: (order.zone, order.instance_type) for order in orders if order.is_spot}
    rests = [(kinds[le.order_id], le.ended_at) for le in leases if le.was_taken and le.ended_at is not None]
    return [
        f"{order.id} was bought {order.created_at - at} after one of its kind was taken"
        for order in orders
        for kind, at in rests
        if kinds.get(order.id) == kind and timedelta(0) < order.created_at - at < Policy().taken_cooldown
    ]


def wrong_lives(attempts: list[Attempt], leases: list[Lease], orders: list[Order]) -> list[str]:
    """A gang is told how long it lives if, and only if, some of it may be taken away."""
    spot = {order.id for order in orders if order.is_spot}
    risky = {lease.id for lease in leases if lease.order_id in spot}
    return [
        f"{one.id} is told {one.mean_life_s} s"
        for one in attempts
        if (one.mean_life_s is not None) != bool(risky & set(one.leases))
    ]


@pytest.mark.parametrize("seed", range(500, 502))
def test_gangs_that_are_taken_back_again_and_again_finish_their_work(seed: int) -> None:
    gangs = Gangs(seed=seed, jobs=6, faults=TAKEN, restart_every_s=600)
    outcome = gangs.run()
    assert outcome.broken == [], f"seed {seed}"
    assert outcome.statuses == {JobStatus.COMPLETED: 6}
    assert gangs.taken > 2 and gangs.attempts > 8 and gangs.resumed > 2


# --- silence --------------------------------------------------------------------------------------------------


@dataclass
class Silent(World):
    """Jobs to which something happens while they run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_bought = True
        self.noticed_within: list[timedelta] = []
        self.tries: list[int] = []

    async def _person(self, number: int) -> JobId:
        await asyncio.sleep(CALM_S + self.random.uniform(0, 60))
        spec = SPEC.format(gpus=2, steps=200, every=EVERY).replace("allow_spot: true", "allow_spot: false")
        job_id = await self._insist(lambda: self.engine.service.submit(ADMIN, name=f"s{number}", spec_yaml=spec))
        await self.running(job_id)
        await asyncio.sleep(self.random.uniform(0, 150))
        await self._happen(job_id)
        while not (await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(1)
        return job_id

    async def _happen(self, job_id: JobId) -> None:
        raise NotImplementedError

    async def running(self, job_id: JobId) -> list[Lease]:
        while (await self.store.job(job_id)).status is not JobStatus.RUNNING:
            await asyncio.sleep(1)
        return [lease for lease in await self.store.job_leases(job_id) if lease.phase == "active"]


class Hangs(Silent):
    """A machine stands still: its seller lists it as before."""

    async def _happen(self, job_id: JobId) -> None:
        lease = self.random.choice(await self.running(job_id))
        assert lease.machine_id is not None
        at = EPOCH + timedelta(seconds=asyncio.get_running_loop().time())
        self.end(lease)
        while not (ends := [e.at for e in await self.store.events(job_id) if e.type in NOTICED and e.at >= at]):
            await asyncio.sleep(0.5)
        self.noticed_within.append(ends[0] - at)

    def end(self, lease: Lease) -> None:
        assert lease.machine_id is not None
        self.fleet.end(lease.machine_id)


class Dies(Hangs):
    """A machine ends, and its seller says so."""

    def end(self, lease: Lease) -> None:
        assert lease.machine_id is not None
        self.cloud.end(lease.machine_id, "it broke")


class Blackout(Silent):
    """Nobody can be reached for half a minute, again and again."""

    is_dark = False

    async def _person(self, number: int) -> JobId:
        job_id = await super()._person(number)
        self.tries.append(len(await self.store.job_attempts(job_id)))
        return job_id

    async def _happen(self, job_id: JobId) -> None:
        await self.running(job_id)
        if not self.is_dark:
            self.is_dark = True
            gateway, self.gateway = self.gateway, None
            await asyncio.sleep(30)
            self.gateway = gateway
            await asyncio.sleep(30)  # everybody is heard before it is dark again
            self.is_dark = False


@pytest.mark.parametrize("world", [Hangs, Dies])
def test_a_sudden_death_is_noticed_within_a_minute(world: type[Hangs]) -> None:
    made = world(seed=1, jobs=JOBS)
    outcome = made.run()
    assert outcome.broken == []
    assert outcome.statuses == {JobStatus.COMPLETED: JOBS}
    assert len(made.noticed_within) == JOBS
    assert max(made.noticed_within) <= timedelta(seconds=60)


def test_half_a_minute_of_silence_ends_nothing() -> None:
    made = Blackout(seed=2, jobs=JOBS)
    outcome = made.run()
    assert outcome.broken == []
    assert outcome.statuses == {JobStatus.COMPLETED: JOBS}
    assert made.tries == [1] * JOBS


# --- limits that cannot be kept any more ------------------------------------------------------------------------


class Late(Hangs):
    """A job whose only machine stands still, with all that it did, when there is no time left to begin anew."""

    async def _person(self, number: int) -> JobId:
        deadline = EPOCH + timedelta(seconds=asyncio.get_running_loop().time() + 700)
        limits = f"allow_spot: true, deadline: {deadline.isoformat()}"
        spec = SPEC.format(gpus=1, steps=400, every=0).replace("allow_spot: true", limits)
        spec = spec.replace("estimated_hours: 0.5", "estimated_hours: 0.15")
        job_id = await self._insist(lambda: self.engine.service.submit(ADMIN, name="late", spec_yaml=spec))
        await self.running(job_id)
        await asyncio.sleep(150)
        await self._happen(job_id)
        while not (placed := [e.body for e in await self.store.events(job_id) if e.type == "TaskPlaced"])[1:]:
            await asyncio.sleep(1)
        await self.running(job_id)
        (task,) = await self.store.job_tasks(job_id)
        self.said = [placed[0].get("reason"), placed[1]["reason"], task.reason]
        while not (await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(1)
        return job_id


def test_a_job_that_can_only_be_late_goes_on_and_says_so() -> None:
    made = Late(seed=3, jobs=1)
    outcome = made.run()
    assert outcome.broken == [] and outcome.statuses == {JobStatus.COMPLETED: 1}
    first, second, task = made.said
    assert first is None and second == task
    assert second.startswith("the deadline cannot be kept any more: goes on with ")
    assert second.endswith(" min late") and " on demand, expected " in second
