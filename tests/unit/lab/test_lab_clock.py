"""The Lab's clock starts at wall time and runs as fast as it was asked to."""

from crucible.lab.clock import LabClock


def test_time_passes_faster_there_and_wall_time_stays_the_machines() -> None:
    passed = [100.0]
    clock = LabClock(60.0, wall=lambda: 1_000_000.0, monotonic=lambda: passed[0])
    assert clock.now() == 1_000_000.0
    passed[0] += 2.0
    assert clock.now() == 1_000_120.0
    assert clock.real_delay(120.0) == 2.0
    assert clock.real_delay(-1.0) == 0.0
    assert clock.wall_at(1_000_120.0) == 1_000_002.0
