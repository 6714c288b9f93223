"""How the processes of one machine are kept apart from the rest of this computer. With namespaces a machine sees only
itself, cannot switch anything else off, and ends as a whole when its first process does. Without them its processes
are known by a mark in their environment."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

NICENESS = 5  # the Lab, the server and the person at the keyboard go first
PROBE_WITHIN_S = 10

_PROCESSES = ("--pid", "--fork", "--kill-child", "--mount-proc")
# First choice first: as the root of a namespace of users a machine has no right over this computer.
_WAYS = (("--user", "--map-root-user", *_PROCESSES), _PROCESSES)


@dataclass(frozen=True, slots=True)
class Enclosure:
    """`options` of unshare(1); none: plain processes."""

    options: tuple[str, ...] = ()
    dies_with_us: bool = False  # whether the kernel ends a machine when the Lab is killed

    @property
    def has_namespace(self) -> bool:
        return bool(self.options)

    def describe(self) -> str:
        if "--user" in self.options:
            return "namespaces of processes and users"
        return "namespaces of processes" if self.options else "plain processes"

    def argv(self, program: Sequence[str]) -> list[str]:
        before = ["setpriv", "--pdeathsig", "KILL"] if self.dies_with_us else []
        inside = ["unshare", *self.options, "--"] if self.options else []
        return [*before, "nice", "-n", str(NICENESS), *inside, *program]


def probe() -> Enclosure:
    """The best that this computer allows, found by trying."""
    dies_with_us = shutil.which("setpriv") is not None and _works(["setpriv", "--pdeathsig", "KILL", "true"])
    if sys.platform == "linux" and dies_with_us and shutil.which("unshare") is not None:
        for options in _WAYS:
            enclosure = Enclosure(options, dies_with_us)
            if _works(enclosure.argv(["true"])):
                return enclosure
    return Enclosure((), dies_with_us)


def _works(argv: Sequence[str]) -> bool:
    try:
        done = subprocess.run(argv, capture_output=True, timeout=PROBE_WITHIN_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
