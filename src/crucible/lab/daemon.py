"""The Lab as a process: it takes a port, says in lab.json where it is, serves until it is told to stop, and leaves
nothing behind. Killed, it leaves lab.json alone; its machines die with it."""

import asyncio
import contextlib
import json
import logging
import os
import resource
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvloop

from crucible import __version__
from crucible.lab import guardian
from crucible.lab.aws.front import AwsFront
from crucible.lab.control import Control
from crucible.lab.gcs import front as gcs
from crucible.lab.imds import Metadata
from crucible.lab.lab import Lab, make
from crucible.lab.running import FILE, LOG
from crucible.lab.server import App, serve
from crucible.lab.settings import LabAccount, Settings, new_account
from crucible.model.errors import InvalidRequest

log = logging.getLogger("crucible.lab")

HOST = "127.0.0.1"
# Of the log file; when it is longer, its first half goes.
MOST_LOG_BYTES = 2 << 20
LOG_CHECKED_EVERY_S = 5.0
PORT_FILE = "port"


def run(settings: Settings) -> None:
    """In the foreground, until SIGTERM, SIGINT or a word through its own door."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    _raise_limits()
    account, token = new_account(), secrets.token_urlsafe(24)
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _listening(settings) as listener:
        port = listener.getsockname()[1]
        url = f"http://{HOST}:{port}"
        lab = make(settings, account)
        with guardian.watching(lab.guests.enclosure, lab.guests.folder), gcs.opened(lab, settings.home) as storage:
            app = App(Control(lab, token, stopping, storage), Metadata(lab), AwsFront(lab), storage, lab.settle)
            async with _playing(lab, url, stopping):
                await serve(app, listener, stopping, lambda: _publish(settings, account, token, url, port))
                (settings.home / FILE).unlink(missing_ok=True)
    log.info("stopped")


@contextlib.asynccontextmanager
async def _playing(lab: Lab, url: str, stopping: asyncio.Event) -> AsyncIterator[None]:
    """Every machine is gone afterwards. A Lab whose time stands still must not look as if it ran: then it stops."""
    tasks = [asyncio.create_task(lab.run(url)), asyncio.create_task(_keep_log_short(lab.settings.home / LOG))]
    tasks[0].add_done_callback(lambda _: stopping.set())
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):
                log.error("the Lab failed", exc_info=result)


def _publish(settings: Settings, account: LabAccount, token: str, url: str, port: int) -> None:
    _write_private(settings.home / PORT_FILE, str(port))
    said = {
        "url": url,
        "pid": os.getpid(),
        "version": __version__,
        "token": token,
        "account": account.id,
        "access_key": account.access_key,
        "secret_key": account.secret_key,
        "regions": list(settings.regions),
    }
    _write_private(settings.home / FILE, json.dumps(said))
    log.info("ready at %s", url)


@contextlib.contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """The port of last time is taken again if it is free: whoever has its address in a shell can go on."""
    ports = [settings.port] if settings.port else [_last_port(settings.home), 0]
    for port in ports:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            listener.close()
            if port == ports[-1]:
                raise InvalidRequest(
                    f"cannot listen on {HOST}:{port}: {error.strerror}; choose another --port"
                ) from error
            continue
        with listener:
            yield listener
        return


def _last_port(home: Path) -> int:
    try:
        return int((home / PORT_FILE).read_text())
    except (OSError, ValueError):
        return 0


async def _keep_log_short(path: Path) -> None:
    """The file is written by appending, so it can be cut under the writer. In the foreground there is none."""
    while True:
        await asyncio.sleep(LOG_CHECKED_EVERY_S)
        await asyncio.to_thread(_cut_log, path)


def _cut_log(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > MOST_LOG_BYTES:
            kept = path.read_bytes()[-MOST_LOG_BYTES // 2 :]
            os.truncate(path, 0)
            with path.open("ab") as file:
                file.write(kept)


def _raise_limits() -> None:
    """Each machine needs a few open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 65_536)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _write_private(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    part.replace(path)
