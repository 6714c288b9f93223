"""How a container goes whose supervisor is dead: by the command that the supervisor noted before it started one. The
agent's loop never waits for a runtime; it only looks."""

from __future__ import annotations

import os
import subprocess
import time

from . import container, disk, private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional

# A runtime that hangs must not keep the end of a rank from being told.
LIMIT_S = 20.0


def beside(folder: str) -> str:
    """Of a rank's folder `rank-<r>`: where the facts of its container are kept, without their last part. The container
    does not see them."""
    parent, name = os.path.split(folder)
    return os.path.join(parent, "container-" + name[len("rank-") :])


def remove_left(machine: str) -> None:
    """All that the machine of this folder may have left, when nothing of it runs any more. Blocks."""
    private.remove_left(machine)
    for part in ("attempts", "trash"):
        try:
            attempts = [entry.path for entry in os.scandir(os.path.join(machine, part)) if entry.is_dir()]
        except OSError:
            continue
        for attempt in attempts:
            remove_noted(attempt)


def remove_noted(attempt: str) -> None:
    """What could not be removed when it ended, before the attempt's folder goes. Blocks."""
    try:
        names = os.listdir(attempt)
    except OSError:
        return  # somebody else was quicker
    for name in names:
        record = disk.read_json(os.path.join(attempt, name)) if name.startswith("container-") else None
        if record is not None:
            remove([str(word) for word in record["remove"]], container.client_environment(os.environ))


def remove(argv: List[str], env: Dict[str, str]) -> bool:
    """Blocks for as long as the runtime takes, at most LIMIT_S."""
    null = subprocess.DEVNULL
    try:
        done = subprocess.run(argv, env=env, stdin=null, stdout=null, stderr=subprocess.PIPE, timeout=LIMIT_S, cwd="/")
    except (OSError, subprocess.SubprocessError):
        return False
    # Docker takes absence for an error.
    return done.returncode == 0 or b"No such container" in done.stderr


class Removal:
    def __init__(self, folder: str) -> None:
        self._record = beside(folder) + ".json"
        self._until = time.monotonic() + LIMIT_S
        self._process: Optional[subprocess.Popen[bytes]] = None
        record = disk.read_json(self._record)
        if record is not None:
            self._start([str(word) for word in record["remove"]])

    def _start(self, argv: List[str]) -> None:
        env = container.client_environment(os.environ)
        null = subprocess.DEVNULL
        try:
            self._process = subprocess.Popen(argv, stdin=null, stdout=null, stderr=null, env=env, cwd="/")
        except OSError:
            pass  # the runtime itself is gone

    def is_over(self) -> bool:
        if self._process is None:
            return True
        code = self._process.poll()
        if code is None and time.monotonic() >= self._until:
            self._process.kill()
            self._process.wait()
            return True
        if code == 0 and os.path.exists(self._record):
            os.unlink(self._record)
        return code is not None
