"""One purchase: n machines, all or none. The folders of all of them come first, then their agents; so a crash in
between leaves something that the next call with the same order completes or undoes."""

import hashlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from crucible.model.errors import OrderRejected, OutcomeUnknown
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Machine, MachineState, Order
from crucible.providers.local import processes
from crucible.providers.local.folder import MachineFolder, Record, boot_file
from crucible.providers.local.life import ADDRESS, Life

PROVIDER = "local"
# Beside the machines, and shared by them.
CACHE = "cache"


def machine_id(order: Order, index: int) -> MachineId:
    """The same for the same order, and fit for a file name whatever the order is called."""
    return MachineId("local-" + hashlib.sha256(f"{order.id}/{index}".encode()).hexdigest()[:20])


class Purchases:
    """To be used by one at a time: under the provider's lock."""

    def __init__(self, machines: Path, agent: Path, python: str, server_file: Path | None, life: Life) -> None:
        self._machines = machines
        self._agent = agent
        self._python = python
        self._server_file = server_file
        self._cache = machines.parent / CACHE
        self._life = life

    def find(self, order: Order, folders: Collection[MachineFolder]) -> dict[int, MachineFolder] | None:
        """What was bought for this order before, by index; None if nothing was."""
        mine = {folder.record.index: folder for folder in folders if folder.record.order_id == order.id}
        for folder in mine.values():
            if (folder.record.count, folder.record.gpus) != (order.count, order.gpus):
                raise OrderRejected(f"order {order.id} was bought before with another size", provider=PROVIDER)
        if len(mine) == order.count or any(folder.has_run() for folder in mine.values()):
            return mine
        # No agent starts before every folder is there: some of them are a purchase that died half way.
        if not self._undo(mine.values()):
            raise OutcomeUnknown(f"what is left of order {order.id} cannot be removed yet", provider=PROVIDER)
        return None

    def make(self, order: Order, devices: tuple[str, ...], boot: Boot, now: float) -> dict[int, MachineFolder]:
        """Raises OSError, with nothing left behind."""
        if not self._agent.is_file():
            raise OrderRejected(f"the agent {self._agent} is missing: install Crucible again", provider=PROVIDER)
        made: dict[int, MachineFolder] = {}
        try:
            for index in range(order.count):
                mine = devices[index * order.gpus : (index + 1) * order.gpus]
                record = Record(machine_id(order, index), order.id, index, order.count, order.gpus, mine, now)
                boot_json = boot_file(record, boot, ADDRESS, self._server_file, self._cache)
                made[index] = MachineFolder.make(self._machines / record.id, record, boot_json)
        except OSError:
            self._undo(made.values())
            raise
        return made

    def start(self, folders: Mapping[int, MachineFolder]) -> None:
        """Start what has never run. Raises OSError, with nothing left behind, or OutcomeUnknown."""
        waiting = [folder for folder in folders.values() if not folder.has_run() and folder.ending() is None]
        started = processes.carriers([folder.record.id for folder in waiting])
        try:
            for folder in waiting:
                # A second agent would end by itself, since it cannot have the lock; but why start it.
                if not started[folder.record.id]:
                    self._start_agent(folder)
        except OSError as error:
            has_run = any(folder.has_run() for folder in folders.values())
            if has_run or not self._undo(folders.values()):
                raise OutcomeUnknown(f"some agents started, one could not: {error}", provider=PROVIDER) from error
            raise

    def resume(self, folders: Collection[MachineFolder]) -> None:
        """Start what was bought whole by somebody who died before its agents came: whoever sees such machines in a
        listing takes them for bought and does not ask again. Raises OSError, OutcomeUnknown."""
        orders: dict[str, dict[int, MachineFolder]] = {}
        for folder in folders:
            orders.setdefault(folder.record.order_id, {})[folder.record.index] = folder
        for mine in orders.values():
            if len(mine) == next(iter(mine.values())).record.count:
                self.start(mine)

    def machine(self, order: Order, index: int, folders: Mapping[int, MachineFolder]) -> Machine:
        if index in folders:
            return self._life.look(folders[index])
        gone = machine_id(order, index)
        return Machine(id=gone, order_id=order.id, index=index, state=MachineState.GONE, reason="ended long ago")

    def _start_agent(self, folder: MachineFolder) -> None:
        processes.start_detached(
            [self._python, str(self._agent), "--dir", str(folder.path)],
            folder.path,
            processes.agent_environment(folder.record.id, os.environ),
            folder.path / "agent.out",
        )

    def _undo(self, folders: Collection[MachineFolder]) -> bool:
        outcomes = [self._life.destroy(folder) for folder in folders]
        return all(outcomes)
