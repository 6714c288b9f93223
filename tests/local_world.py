"""A folder on this computer where the local provider sells, and a double of the agent at the process boundary."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

from crucible.model.ids import MachineId
from crucible.model.lease import MachineState
from crucible.providers.local import LocalProvider, processes
from crucible.testing.seller_contract import SellerWorld, state_is, until

# Passes for an agent: takes the lock, leaves its pid, waits to be told to end. Its habits come from the environment.
AGENT = """
import fcntl, json, os, signal, subprocess, sys, time
folder = sys.argv[sys.argv.index("--dir") + 1]
habits = json.loads(os.environ.get("DOUBLE_HABITS", "{}"))
time.sleep(habits.get("slow", 0))
lock = open(os.path.join(folder, "lock"), "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("another agent is there")
with open(os.path.join(folder, "started"), "a") as file:
    file.write("%d\\n" % os.getpid())
lock.truncate(0)
lock.write(str(os.getpid()))
lock.flush()
with open(os.path.join(folder, "boot.json")) as file:
    boot = json.load(file)
if habits.get("child"):
    subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"],
                     start_new_session=True)
if habits.get("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if habits.get("says"):
    with open(os.path.join(folder, "agent.exit"), "w") as file:
        file.write(habits["says"])
time.sleep(habits.get("life", 600))
"""

GPUS = 4


class LocalWorld(SellerWorld):
    """A folder on this computer; ends what it started."""

    def __init__(self, root: Path, agent: Path) -> None:
        self.root = root
        self.agent = agent

    def open(self, **options: Any) -> LocalProvider:
        return LocalProvider(self.root, **{"agent": self.agent, "gpus": GPUS, **options})

    def folder(self, machine: MachineId) -> Path:
        return self.root / "machines" / machine

    def crash(self, machine: MachineId) -> None:
        os.kill(int((self.folder(machine) / "lock").read_text()), signal.SIGKILL)

    def processes(self) -> list[int]:
        ids = [path.name for path in (self.root / "machines").glob("local-*")]
        return [pid for pids in processes.carriers(ids).values() for pid in pids]

    def close(self) -> None:
        async def delete_all() -> None:
            seller = self.open(stop_grace=timedelta(0))
            for machine in await seller.machines():
                await seller.delete(machine.id)
            for machine in await seller.machines():
                await until(lambda machine=machine: state_is(seller, machine.id, MachineState.GONE))

        asyncio.run(delete_all())
        assert self.processes() == []
