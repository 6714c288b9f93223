"""All machines of the Lab that have processes. Started when the world says that they booted, gone when it says that
they ended; nothing is decided here."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from crucible.lab import guardian
from crucible.lab.enclosure import Enclosure
from crucible.lab.guest import Guest

log = logging.getLogger("crucible.lab")

# Starting is cheap for one and heavy for two hundred at once: so many are started together.
TOGETHER = 8

Told = Callable[[str, str], None]


class Guests:
    """`told` hears a machine's id and its word, as `Guest` says them."""

    def __init__(self, folder: Path, enclosure: Enclosure, told: Told) -> None:
        self.folder = folder
        self.enclosure = enclosure
        self._told = told
        self._guests: dict[str, Guest] = {}
        self._secrets: dict[str, str] = {}  # of the metadata service -> machine
        self._turn = asyncio.Semaphore(TOGETHER)
        self._kills: set[asyncio.Task[None]] = set()

    def prepare(self) -> None:
        """Nothing of an earlier Lab is left."""
        guardian.kill_all(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)

    async def start(self, machine_id: str, user_data: bytes, url: str) -> None:
        """`url` is the Lab's; the machine gets a place of its own below it."""
        guest = Guest(machine_id, self.folder / machine_id, self.enclosure, lambda word: self._told(machine_id, word))
        self._guests[machine_id] = guest
        self._secrets[guest.secret] = machine_id
        async with self._turn:
            await guest.start(user_data, f"{url}/imds/{guest.secret}")

    def press_power(self, machine_id: str) -> None:
        if (guest := self._guests.get(machine_id)) is not None:
            guest.press_power()

    def kill(self, machine_id: str) -> None:
        """Begin to; `settled` waits for it."""
        if (guest := self._guests.get(machine_id)) is not None:
            task = asyncio.create_task(guest.kill())
            self._kills.add(task)
            task.add_done_callback(self._killed)

    async def settled(self) -> None:
        """When everything that was to be killed is gone."""
        if self._kills:
            await asyncio.gather(*self._kills, return_exceptions=True)

    async def stop(self) -> None:
        for machine_id in self._guests:
            self.kill(machine_id)
        await self.settled()

    def console(self, machine_id: str) -> bytes:
        """What it printed last; nothing if it never ran."""
        guest = self._guests.get(machine_id)
        return guest.console() if guest is not None else b""

    def of_secret(self, secret: str) -> str | None:
        return self._secrets.get(secret)

    def forget(self, machine_id: str) -> None:
        """One that is gone: its console too."""
        guest = self._guests.pop(machine_id, None)
        if guest is not None:
            del self._secrets[guest.secret]
            shutil.rmtree(guest.image.folder, ignore_errors=True)

    def _killed(self, task: asyncio.Task[None]) -> None:
        self._kills.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a machine could not be ended", exc_info=error)
