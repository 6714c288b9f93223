"""Wake-ups die with the server that should have heard them, or find the row claimed by one that is dead. Polling finds
the rows again: it costs seconds, not the job."""

import asyncio
from datetime import timedelta

from simulation import World

from crucible.model.job import JobStatus

CLAIM = timedelta(seconds=15)
# Half the time every task is claimed by nobody alive; without polling the jobs would wait for a deadline, for days.
PATIENCE = timedelta(hours=1)


class Haunted(World):
    """Somebody claims every task now and then, and dies: nobody gives the claims back."""

    async def _run(self, folder):
        ghost = asyncio.create_task(self._haunt())
        try:
            return await super()._run(folder)
        finally:
            ghost.cancel()

    async def _haunt(self) -> None:
        while True:
            await asyncio.sleep(self.random.uniform(5, 40))
            for lease in await self.store.open_leases(self.cloud.name):
                await self.store.claim(f"task:{lease.task_id}", "ghost", CLAIM)


def test_tasks_that_a_dead_server_had_claimed_come_to_their_end() -> None:
    world = Haunted(seed=3, jobs=40)
    outcome = world.run()
    assert outcome.broken == []
    assert sum(outcome.statuses.values()) == 40 and JobStatus.COMPLETED in outcome.statuses
    assert outcome.virtual_s < PATIENCE.total_seconds()
