"""How many tasks of a job one machine runs at a time. The planner buys by this number and the engine seats by it."""

from math import floor

from crucible.model.spec import Resources


def seats(need: Resources, gpus: int, cpus: float, memory_gib: float) -> int:
    """GPUs decide where a task needs some; what it says of CPUs and memory is then about its machine. Else each has
    its CPUs, at least one, and its memory. A machine that fits one task has a seat, however little it says of itself;
    one that does not has none."""
    if need.gpus:
        return gpus // need.gpus
    if cpus < need.cpus or memory_gib < need.cpu_memory_gib:
        return 0
    room = cpus / max(need.cpus, 1)
    if need.cpu_memory_gib > 0:
        room = min(room, memory_gib / need.cpu_memory_gib)
    return max(floor(room), 1)
