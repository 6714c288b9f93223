"""A crowd that waits for GPUs, on the virtual loop."""

import asyncio
from dataclasses import replace

from simulation import ADMIN, Story, World

from crucible.engine.placer import BATCH
from crucible.model.ids import JobId
from crucible.model.job import JobStatus

CROWD = 2 * BATCH + 50
LONG_S = 2400
HOLDERS = 2  # of half the GPUs each
HOLDS = Story(gpus=8, seconds=LONG_S, fails=0, lines=1, every=0, cancel_after=None)
WAITS = replace(HOLDS, gpus=1, seconds=1)
NEEDS_NONE = replace(WAITS, gpus=0)


class Crowd(World):
    """The first jobs hold every GPU, the next wait for one, the last needs none."""

    def __init__(self) -> None:
        super().__init__(seed=1, jobs=HOLDERS + CROWD + 1)
        self.ended_at: dict[Story, list[float]] = {HOLDS: [], WAITS: [], NEEDS_NONE: []}

    async def _person(self, number: int) -> JobId:
        story = HOLDS if number < HOLDERS else NEEDS_NONE if number == self.jobs - 1 else WAITS
        await asyncio.sleep(0 if story is HOLDS else 300 + number / 100)
        job = await self.engine.service.submit(ADMIN, name=f"job{number}", spec_yaml=story.spec())
        while not (await self.store.job(job.id)).status.is_terminal:
            await asyncio.sleep(60)
        self.ended_at[story].append(asyncio.get_running_loop().time())
        return job.id


def test_a_crowd_that_waits_keeps_nobody_from_running_who_fits_and_runs_when_there_is_room() -> None:
    crowd = Crowd()
    outcome = crowd.run()
    assert outcome.broken == []
    assert outcome.statuses == {JobStatus.COMPLETED: crowd.jobs}
    assert max(crowd.ended_at[NEEDS_NONE]) < LONG_S / 4
    assert min(crowd.ended_at[WAITS]) > LONG_S
