"""Which processes belong to a rank, and how to end them without touching anybody else's.

A rank's processes are the descendants of its supervisor (a subreaper, so that a double fork stays below it), the
members of its cgroup, and whatever carries its mark in the environment. Without /proc (not Linux) only the process
group is known."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Iterable, List, Optional

# In the environment of every process of a rank: <attempt>/<rank>, and its folder.
RANK_ID = "CRUCIBLE_RANK_ID"
RUN_DIR = "CRUCIBLE_RUN_DIR"
# In that of everything below the agent of a machine.
MACHINE_ID = "CRUCIBLE_MACHINE_ID"

_PR_SET_CHILD_SUBREAPER = 36


class Process:
    """One line of the process table. `started` tells a process from a later one with the same pid."""

    __slots__ = ("group", "is_zombie", "parent", "pid", "started")

    def __init__(self, pid: int, stat: str) -> None:
        # The command name may hold spaces and brackets; the fields after the last bracket do not.
        fields = stat[stat.rindex(")") + 2 :].split()
        self.pid = pid
        self.is_zombie = fields[0] in "ZX"
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.started = int(fields[19])


def become_subreaper() -> bool:
    """Orphans below this process become its children. Needed to know that nothing is left."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def find(pid: int) -> Optional[Process]:
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return Process(pid, file.read())
    except (OSError, ValueError, IndexError):
        return None


def everything() -> Dict[int, Process]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    found = (find(int(name)) for name in names if name.isdigit())
    return {process.pid: process for process in found if process is not None}


def descendants(root: int) -> List[Process]:
    """Living processes below `root`, children before grandchildren."""
    children: Dict[int, List[Process]] = {}
    for process in everything().values():
        children.setdefault(process.parent, []).append(process)
    found: List[Process] = []
    frontier = [root]
    while frontier:
        below = children.get(frontier.pop(), [])
        found += below
        frontier += [process.pid for process in below]
    return [process for process in found if not process.is_zombie]


def marked(rank_id: str, run_dir: str) -> List[Process]:
    """Living processes that were started with the rank's id and folder in their environment.

    Both, because only the folder tells this rank from one with the same id of another world on this machine."""
    return carriers({RANK_ID: rank_id, RUN_DIR: run_dir})


def carriers(marks: Dict[str, str]) -> List[Process]:
    """Living processes that were started with all of these in their environment."""
    wanted = {os.fsencode(name): os.fsencode(value) for name, value in marks.items()}
    found = [process for process in everything().values() if not process.is_zombie]
    return [process for process in found if wanted.items() <= environment_of(process).items()]


def members(cgroup: Optional[str]) -> List[Process]:
    """Living processes of a cgroup."""
    if cgroup is None:
        return []
    try:
        with open(os.path.join(cgroup, "cgroup.procs"), encoding="ascii") as file:
            found = [find(int(line)) for line in file]
    except (OSError, ValueError):
        return []
    return [process for process in found if process is not None and not process.is_zombie]


def kill(processes: Iterable[Process], signum: int = signal.SIGKILL) -> None:
    """Sends to those that are still the processes they were."""
    for process in processes:
        current = find(process.pid)
        if current is None or current.started != process.started:
            continue
        try:
            os.kill(process.pid, signum)
        except OSError:
            pass


def make_cgroup(path: Optional[str]) -> Optional[str]:
    """None where it is not allowed: the process group and the mark then have to do."""
    if path is None:
        return None
    try:
        os.mkdir(path)
    except OSError:
        return None
    return path


def remove_cgroup(path: Optional[str]) -> None:
    """Once it is empty."""
    if path is None:
        return
    try:
        os.rmdir(path)
    except OSError:
        pass


def kill_cgroup(cgroup: Optional[str]) -> None:
    """All members at once, also those that fork while they are being killed (Linux 5.14)."""
    if cgroup is None:
        return
    try:
        with open(os.path.join(cgroup, "cgroup.kill"), "w", encoding="ascii") as file:
            file.write("1")
    except OSError:
        kill(members(cgroup))


def reap(pid: int) -> None:
    """An orphan of somebody who died became our child, if we are a subreaper."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def environment_of(process: Process) -> Dict[bytes, bytes]:
    """As it was started; empty where we may not look."""
    try:
        with open("/proc/%d/environ" % process.pid, "rb") as file:
            pairs = (line.partition(b"=") for line in file.read().split(b"\0"))
            return {name: value for name, _, value in pairs}
    except OSError:
        return {}
