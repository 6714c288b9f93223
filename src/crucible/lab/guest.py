"""One machine as a tree of real processes. It starts, hears the power button, and ends as a whole: `kill` returns when
nothing of it runs any more."""

import asyncio
import logging
import os
import secrets
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from crucible.lab.console import Console
from crucible.lab.enclosure import Enclosure
from crucible.lab.image import Image
from crucible.providers.local import processes

log = logging.getLogger("crucible.lab")

# Passes over all processes when a tree without a namespace is killed: it may fork in between.
KILL_PASSES, KILL_PAUSE_S = 50, 0.02
# The kernel needs milliseconds; a process that waits for a disk needs longer.
GONE_WITHIN_S = 10.0
# A machine tells us short words; more at once is noise.
WORD_BYTES = 4096

Told = Callable[[str], None]


class Guest:
    """`told` hears what the machine says of itself: "off", "exit 0", and "dead" when it ends without being asked to."""

    def __init__(self, machine_id: str, folder: Path, enclosure: Enclosure, told: Told) -> None:
        self.machine_id = machine_id
        self.secret = secrets.token_urlsafe(18)  # of its place in the metadata service
        self.image = Image(folder)
        self.is_ending = False
        self._enclosure = enclosure
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._process: asyncio.subprocess.Process | None = None
        self._console: Console | None = None
        self._power: int | None = None
        self._gone: asyncio.Task[None] | None = None
        self._change = asyncio.Lock()  # it starts or it ends
        self._killing: asyncio.Task[None] | None = None

    async def start(self, user_data: bytes, metadata_url: str) -> None:
        """Nothing is started if it is to end already. Raises OSError."""
        async with self._change:
            if not self.is_ending:
                await self._start(user_data, metadata_url)

    async def _start(self, user_data: bytes, metadata_url: str) -> None:
        note = self.image.make(user_data)
        reading, writing = os.pipe()
        self._console = Console(self.image.console, reading)
        self._console.write(note.encode())
        # Opened for both, so that it never ends when one who writes goes away.
        self._power = os.open(self.image.power, os.O_RDWR | os.O_NONBLOCK)
        self._loop.add_reader(self._power, self._hear)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._enclosure.argv([str(self.image.first)]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.DEVNULL,  # of unshare, which complains when its child is killed
                cwd=self.image.folder / "home",
                env=self.image.environment(metadata_url, (processes.MARK, self.machine_id)),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        self._gone = asyncio.create_task(self._bury(self._process))

    def press_power(self) -> None:
        """Ask everything in it to end, as a machine does that is switched off properly."""
        self.is_ending = True
        if not self._enclosure.has_namespace:
            self._signal_marked(signal.SIGTERM)
        elif (first := self._first_pid()) is not None:
            _signal(first, signal.SIGTERM)

    def console(self) -> bytes:
        return self._console.last() if self._console else b""

    async def kill(self) -> None:
        """Everything at once. Whoever asks again waits for the same end."""
        self.is_ending = True
        if self._killing is None:
            self._killing = asyncio.create_task(self._kill())
        await asyncio.shield(self._killing)

    async def _kill(self) -> None:
        async with self._change:
            if self._process is not None and self._gone is not None:
                if self._enclosure.has_namespace:
                    await self._kill_namespace(self._process, self._gone)
                else:
                    await self._kill_marked(self._process)
                await self._gone
            self._let_go()
            await asyncio.to_thread(self._clean)

    async def _kill_namespace(self, process: asyncio.subprocess.Process, gone: asyncio.Task[None]) -> None:
        """The kernel ends everything in a namespace before its first process is gone, and that before unshare is."""
        first = self._first_pid()
        if first is not None:
            _signal(first, signal.SIGKILL)
        else:  # it has just been started, or has just ended
            _signal(process.pid, signal.SIGKILL)
            await self._kill_marked(process)
        done, _ = await asyncio.wait([gone], timeout=GONE_WITHIN_S)
        if not done:
            log.error("processes of %s do not end", self.machine_id)

    async def _kill_marked(self, process: asyncio.subprocess.Process) -> None:
        for _ in range(KILL_PASSES):
            if not await asyncio.to_thread(self._signal_marked, signal.SIGKILL) and process.returncode is not None:
                return
            await asyncio.sleep(KILL_PAUSE_S)
        log.error("processes of %s do not end", self.machine_id)

    def _signal_marked(self, signum: signal.Signals) -> int:
        """How many there were."""
        if not processes.HAS_PROC and self._process is not None:
            processes.signal_group(self._process.pid, signum)
        pids = processes.carriers([self.machine_id])[self.machine_id]
        for pid in pids:
            processes.signal_carrier(pid, self.machine_id, signum)
        return len(pids)

    def _first_pid(self) -> int | None:
        """The first process of the namespace: the only child of unshare."""
        if self._process is None or self._process.returncode is not None:
            return None
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    async def _bury(self, process: asyncio.subprocess.Process) -> None:
        await process.wait()
        if not self.is_ending:
            self._told("dead")

    def _hear(self) -> None:
        assert self._power is not None
        try:
            words = os.read(self._power, WORD_BYTES).decode("ascii", "replace").splitlines()
        except BlockingIOError:
            return
        for word in words:
            if word == "off" or word.startswith("exit "):
                self._told(word)

    def _let_go(self) -> None:
        if self._power is not None:
            self._loop.remove_reader(self._power)
            os.close(self._power)
            self._power = None
        if self._console is not None:
            self._console.close()

    def _clean(self) -> None:
        """The disk goes with the machine; what it printed is still asked for."""
        if not self.image.folder.is_dir():  # it never started
            return
        for path in self.image.folder.iterdir():
            if path == self.image.console:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _signal(pid: int, signum: signal.Signals) -> None:
    try:
        os.kill(pid, signum)
    except ProcessLookupError:
        pass
