"""Stopwatches: of this process, of another one, and of a child from its start to its end."""

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Spent:
    cpu_s: float
    wall_s: float

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.cpu_s - other.cpu_s, self.wall_s - other.wall_s)


def own() -> Spent:
    return Spent(time.process_time(), time.perf_counter())


def of_process(pid: int) -> Spent:
    """All threads of it, dead ones too; not its children."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return Spent((int(fields[11]) + int(fields[12])) / _TICKS_PER_S, time.perf_counter())


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    with open(f"/proc/{pid}/status") as file:
        found = next(line for line in file if line.startswith(field))
    return int(found.split()[1]) / 1000


def run_child(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Spent:
    """Run to its end; it must succeed and what it says is thrown away."""
    began = time.perf_counter()
    child = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)} ended with {child.returncode}")
    return Spent(usage.ru_utime + usage.ru_stime, time.perf_counter() - began)


def loop_ms() -> float:
    """What a fixed piece of work costs now; says how fast the machine is at this moment."""
    began, texts = time.process_time(), {}
    for number in range(200_000):
        texts[number % 1000] = str(number)
    return (time.process_time() - began) * 1000


def until(is_so: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.perf_counter() + seconds
    while not is_so():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.01)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
