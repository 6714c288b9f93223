"""Where the kernel does not end machines together with the Lab, a small process does: it waits until the Lab is gone,
however it went, and kills whatever carries the mark of a machine that has a folder there."""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from crucible.lab.enclosure import Enclosure
from crucible.providers.local import processes

PASSES, PAUSE_S = 100, 0.02


@contextlib.contextmanager
def watching(enclosure: Enclosure, folder: Path) -> Iterator[None]:
    """Nothing to do where machines have namespaces."""
    if enclosure.has_namespace:
        yield
        return
    argv = [sys.executable, "-P", "-m", __name__, str(folder)]
    guardian = subprocess.Popen(argv, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        assert guardian.stdin is not None
        guardian.stdin.close()
        guardian.wait()


def kill_all(folder: Path) -> None:
    """Everything of the machines whose folders are in `folder`."""
    ids = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    for _ in range(PASSES):
        found = [(pid, machine_id) for machine_id, pids in processes.carriers(ids).items() for pid in pids]
        if not found:
            return
        for pid, machine_id in found:
            processes.signal_carrier(pid, machine_id, signal.SIGKILL)
        time.sleep(PAUSE_S)


def main(folder: str) -> None:
    """The pipe ends when the Lab does."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)
    sys.stdin.buffer.read()
    kill_all(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
