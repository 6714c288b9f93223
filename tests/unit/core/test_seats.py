"""Seats of a machine: by its GPUs, or by CPUs and memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.seats import seats
from crucible.model.spec import Resources


@pytest.mark.parametrize(
    ("need", "gpus", "cpus", "memory_gib", "expected"),
    [
        (Resources(gpus=1), 8, 96.0, 1024.0, 8),
        (Resources(gpus=3), 8, 96.0, 1024.0, 2),
        (Resources(gpus=8), 4, 96.0, 1024.0, 0),
        (Resources(gpus=1, cpus=96, cpu_memory_gib=1024), 8, 96.0, 1024.0, 8),  # these are about the machine
        (Resources(), 0, 16.0, 64.0, 16),
        (Resources(cpus=4), 0, 16.0, 64.0, 4),
        (Resources(cpus=3), 0, 16.0, 64.0, 5),
        (Resources(cpus=1, cpu_memory_gib=20), 0, 16.0, 64.0, 3),
        (Resources(cpus=32), 0, 16.0, 64.0, 0),
        (Resources(cpu_memory_gib=65), 0, 16.0, 64.0, 0),
    ],
)
def test_as_many_tasks_as_fit(need: Resources, gpus: int, cpus: float, memory_gib: float, expected: int) -> None:
    assert seats(need, gpus, cpus, memory_gib) == expected


def test_a_machine_that_says_nothing_of_itself_has_a_seat() -> None:
    assert seats(Resources(), 0, 0.0, 0.0) == 1
    assert seats(Resources(), 0, 0.5, 0.0) == 1


@given(st.integers(0, 64), st.floats(0, 512), st.floats(0, 4096), st.floats(0, 4096))
def test_seats_never_need_more_than_the_machine_has(
    cpus: int, memory: float, machine_cpus: float, machine_memory: float
) -> None:
    found = seats(Resources(cpus=cpus, cpu_memory_gib=memory), 0, machine_cpus, machine_memory)
    assert found * cpus <= machine_cpus and found * memory <= machine_memory * (1 + 1e-9)
