"""The demo as a process, small, in a folder of its own: what `make demo` starts, and whether all of it is gone after
Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash.lab_world import free_port
from crash.server_process import until
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

ROOT = Path(__file__).resolve().parents[1]
# A computer that runs every other test as well needs its time.
READY_WITHIN_S, GONE_WITHIN_S = 400.0, 90.0


@dataclass(frozen=True)
class Demo:
    folder: Path
    url: str
    jobs: dict[str, str]  # by name
    token: str
    said: Path  # what it printed

    def client(self) -> Client:
        return Client(Transport(Endpoint(self.url, self.token), timeout_s=60.0))


@contextmanager
def a_demo(folder: Path) -> Iterator[Demo]:
    """Ends it as a person does, and sees to it that nothing of it is left."""
    said, written = folder / "said.txt", folder / "demo.json"
    with said.open("w") as file:
        running = subprocess.Popen(
            argv(folder, "--port", str(free_port())), cwd=ROOT, env=environ(), stdout=file, stderr=file
        )
    try:
        until("the demo is ready", lambda: written.exists() or running.poll() is not None, READY_WITHIN_S, 0.2)
        assert running.poll() is None, said.read_text()
        told: dict[str, Any] = json.loads(written.read_text())
        token = (folder / "home" / "admin-token").read_text().strip()
        yield Demo(folder, told["url"], told["jobs"], token, said)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(GONE_WITHIN_S)
    assert running.returncode == 0 and "is gone" in said.read_text(), said.read_text()
    assert processes_in(folder) == []
    assert not written.exists()


def argv(folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "examples.demo.story", "--small", "--no-open", "--folder", str(folder), *more]


def environ() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CRUCIBLE_"))}
    return {**kept, "PYTHONUNBUFFERED": "1", "NO_PROXY": "127.0.0.1"}


def processes_in(folder: Path) -> list[str]:
    """Command lines that name it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if str(folder) in words:
            found.append(words)
    return found
