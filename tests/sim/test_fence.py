"""A machine that nobody can reach, and that cannot be deleted either: what it ran is started elsewhere when its node
must have ended it, not before, and the machine is removed when it is found again."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta

from simulation import ADMIN, World

from crucible.model.errors import ProviderError
from crucible.model.ids import JobId, MachineId
from crucible.model.job import JobStatus
from crucible.model.lease import Lease
from crucible.model.policy import Policy
from crucible.testing.virtual import EPOCH

FENCE = timedelta(minutes=5)
CUT_AT_S, HEALED_AT_S = 200.0, 2000.0
SPEC = """\
job:
  command: [train]
  resources: {gpus: 1}
  env: {SIM_SECONDS: "400"}
"""


@dataclass
class CutOff(World):
    """One job, whose first machine loses its cable."""

    async def _person(self, number: int) -> JobId:
        self.cloud.facts = replace(self.cloud.facts, fence=FENCE, powers_off=False, orphan_after=FENCE)
        job_id = await self._insist(lambda: self.engine.service.submit(ADMIN, name="cut", spec_yaml=SPEC))
        await asyncio.sleep(CUT_AT_S)
        (machine,) = self.cloud.alive()
        self.cut_at = EPOCH + timedelta(seconds=asyncio.get_running_loop().time())
        self._cut(machine.id)
        while not (await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(5)
        self.leases: list[Lease] = sorted(await self.store.job_leases(job_id), key=lambda lease: lease.created_at)
        _, second = sorted(await self.store.job_attempts(job_id), key=lambda one: one.number)
        self.second_began_at = second.started_at
        await asyncio.sleep(HEALED_AT_S)
        self.cloud.delete = self.whole  # type: ignore[method-assign]
        return job_id

    def _cut(self, machine: MachineId) -> None:
        """Its agent is not heard any more; its rank runs on until the fence, as far as anybody knows."""
        running = dict(self.fleet.running)
        self.fleet.end(machine)
        self.whole = self.cloud.delete

        async def unreachable(wanted: MachineId) -> None:
            if wanted == machine:
                raise ProviderError("it does not answer", provider=self.cloud.name)
            await self.whole(wanted)

        self.cloud.delete = unreachable  # type: ignore[method-assign]
        loop = asyncio.get_running_loop()
        loop.call_later(1, self.fleet.running.update, running)
        loop.call_later((FENCE + Policy().stop_grace).total_seconds(), self.fleet.running.clear)

    async def _check_the_bill(self) -> None:
        """Own machines cost nothing."""
        self.billed = 0


def test_work_behind_the_fence_is_started_elsewhere_and_never_runs_twice() -> None:
    world = CutOff(seed=1, jobs=1)
    outcome = world.run()
    assert outcome.broken == [] and outcome.statuses == {JobStatus.COMPLETED: 1}
    first, _ = world.leases
    limit = FENCE + Policy().stop_grace + Policy().fence_margin
    assert first.ended_at is not None
    assert limit - timedelta(seconds=15) < first.ended_at - world.cut_at < limit + timedelta(seconds=60)
    assert world.second_began_at is not None and world.second_began_at >= first.ended_at
    assert world.cloud.alive() == [], "found again, it was removed"
