"""A process to be killed while it removes what is old: `python retention_program.py <url> <folder> [point[:hit]]`."""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from crucible.model.ids import UserId
from retention_world import ROOT, memory


async def main(url: str, folder: str, armed: str) -> None:
    point, _, hit = armed.partition(":")
    hits: Counter[str] = Counter()

    def kill(name: str) -> None:
        hits[name] += 1
        if name == point and hits[name] == int(hit or 1):
            os.kill(os.getpid(), signal.SIGKILL)

    async with memory(url, Path(folder), failpoint=kill) as made:
        users = {user.id for user in await made.store.users()}
        if UserId("u1") in users and not await made.store.erasures():
            await made.privacy.forget(ROOT, UserId("u1"), keeps_jobs=False)
        await made.retention.pass_once()
    print("done")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3], sys.argv[3] if len(sys.argv) > 3 else ""))
