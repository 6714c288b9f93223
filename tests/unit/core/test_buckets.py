"""Buckets: bursts pass, floods wait, waiting helps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.buckets import Level, Rate, filled, taken

RATE = Rate(per_s=2.0, burst=4.0)


def test_a_burst_passes_and_then_it_is_the_steady_rate() -> None:
    level: Level | None = None
    for _ in range(4):
        level, wait_s = taken(level, RATE, 100.0)
        assert wait_s == 0
    level, wait_s = taken(level, RATE, 100.0)
    assert wait_s == pytest.approx(0.5)
    level, wait_s = taken(level, RATE, 100.0 + wait_s)
    assert wait_s == 0


def test_a_rest_fills_it_and_no_further() -> None:
    assert filled(Level(0.0, 10.0), RATE, 11.0) == 2.0
    assert filled(Level(0.0, 10.0), RATE, 1e9) == RATE.burst
    assert filled(Level(3.0, 10.0), RATE, 5.0) == 3.0, "a clock that goes back fills nothing"


@given(
    rate=st.builds(Rate, per_s=st.floats(0.1, 1000), burst=st.floats(1, 10_000)),
    gaps=st.lists(st.floats(0, 10), min_size=1, max_size=200),
)
def test_never_more_pass_than_burst_and_rate_allow(rate: Rate, gaps: list[float]) -> None:
    level, now_s, passed = None, 0.0, 0
    for gap in gaps:
        now_s += gap
        level, wait_s = taken(level, rate, now_s)
        passed += wait_s == 0
        assert 0 <= level.left <= rate.burst
        assert wait_s <= 1 / rate.per_s + 1e-9
    assert passed <= rate.burst + now_s * rate.per_s + 1e-6


@given(rate=st.builds(Rate, per_s=st.floats(0.1, 1000), burst=st.floats(1, 100)), asked=st.integers(1, 300))
def test_who_waits_as_long_as_told_passes(rate: Rate, asked: int) -> None:
    level: Level | None = None
    for _ in range(asked):
        level, wait_s = taken(level, rate, 5.0)
    _, again_s = taken(level, rate, 5.0 + wait_s * (1 + 1e-9) + 1e-9)
    assert again_s == 0 or wait_s == 0
