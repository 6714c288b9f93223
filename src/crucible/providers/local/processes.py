"""The processes of a machine: its agent and everything below it carry the machine's id in their environment. A process
is signalled only after it was seen to carry the id, through a handle that cannot come to mean another one where the
kernel has such handles.

Without /proc (macOS) only the agent and its process group can be reached: what an agent leaves behind lives on."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

MARK = "CRUCIBLE_MACHINE_ID"
PROC = Path("/proc")
HAS_PROC = sys.platform == "linux"


def agent_environment(machine_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Ours without what Crucible's own programs read: a server's settings are none of an agent's business."""
    kept = {name: value for name, value in environ.items() if not name.startswith("CRUCIBLE_")}
    return {**kept, MARK: machine_id}


def start_detached(argv: Sequence[str], folder: Path, env: Mapping[str, str], output: Path) -> None:
    """Start a program that outlives us. Raises OSError."""
    with output.open("ab") as out:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # Somebody must take note of its end while we live, or it stays behind as a zombie.
    threading.Thread(target=process.wait, name=f"reap-{process.pid}", daemon=True).start()


def carriers(machine_ids: Collection[str]) -> dict[str, list[int]]:
    """The living processes of each machine, in one look at all processes. Empty lists without /proc."""
    found: dict[str, list[int]] = {machine_id: [] for machine_id in machine_ids}
    if not HAS_PROC or not found:
        return found
    for pid in all_pids():
        machine_id = mark_of(pid)
        if machine_id in found:
            found[machine_id].append(pid)
    return found


def signal_carrier(pid: int, machine_id: str, signum: signal.Signals) -> bool:
    """False if the process is gone or is not of this machine."""
    try:
        with pinned(pid) as handle:
            if mark_of(pid) != machine_id:
                return False
            if handle is None:
                os.kill(pid, signum)
            else:
                signal.pidfd_send_signal(handle, signum)
    except OSError:
        return False
    return True


def signal_group(pid: int, signum: signal.Signals) -> None:
    """For systems without /proc: `pid` leads its own group, and its lock has been seen held."""
    try:
        os.killpg(pid, signum)
    except OSError:
        pass


def all_pids() -> Iterator[int]:
    for path in PROC.iterdir():
        if path.name.isdecimal() and int(path.name) != os.getpid():
            yield int(path.name)


def mark_of(pid: int) -> str | None:
    """None for a zombie, for somebody else's process, and for one without the mark."""
    try:
        environ = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    prefix = MARK.encode() + b"="
    for variable in environ.split(b"\0"):
        if variable.startswith(prefix):
            return os.fsdecode(variable[len(prefix) :])
    return None


@contextmanager
def pinned(pid: int) -> Iterator[int | None]:
    """A handle that stays with this very process: its number may be used again, the handle never means another. None
    before Linux 5.3, and in containers that forbid it."""
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)
