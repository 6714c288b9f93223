"""A process to be killed: `python store_program.py <what> <url> [argument]`."""

import asyncio
import os
import resource
import signal
import sys
from itertools import count

from crucible.model.errors import StorageFailed
from crucible.model.job import JobReasonChanged
from crucible.ports.store import JobQuery
from crucible.store import open_store
from crucible.testing.specimens import NOW, step, submitted

WRITERS = 8


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


async def write_until_killed(url: str, round_: str) -> None:
    """Says every version that was acknowledged, and only those."""
    store = await open_store(url)

    async def write(worker: int) -> None:
        job, _ = await submitted(store, f"{round_}-{worker}")
        say(f"{job.id} 0")
        for number in count(1):
            job, change = step(job, JobReasonChanged(NOW, f"{number} " + "x" * 200))
            await store.commit([change], label="step")
            say(f"{job.id} {job.version}")

    await asyncio.gather(*(write(worker) for worker in range(WRITERS)))


async def die_at(url: str, failpoint: str) -> None:
    def kill(name: str) -> None:
        if name == failpoint:
            os.kill(os.getpid(), signal.SIGKILL)

    store = await open_store(url, failpoint=kill)
    await submitted(store, "victim")
    say("survived")


async def run_out_of_disk(url: str, _: str) -> None:
    """The limit on a file's size is a disk that is full: the same refusal, in the middle of a write."""
    store = await open_store(url)
    await submitted(store, "before")
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
    refused = 0
    for number in range(40):
        try:
            await submitted(store, f"during-{number}", spec_yaml="x" * 50_000)
        except StorageFailed as error:
            refused += 1
            message = str(error)
    readable = len((await store.jobs(JobQuery())).items)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    await submitted(store, "after")
    await store.close()
    say(f"{refused} {readable} {message}")


if __name__ == "__main__":
    what = {"write": write_until_killed, "die": die_at, "fill": run_out_of_disk}[sys.argv[1]]
    asyncio.run(what(*sys.argv[2:4]))
