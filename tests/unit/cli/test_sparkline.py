"""A price over time in a few characters."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from crucible.cli.sparkline import BARS, LENGTH, NOTHING, PLAIN_BARS, steps

START = datetime(2026, 11, 1, tzinfo=UTC)
END = START + timedelta(hours=LENGTH)


def after(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def test_a_price_holds_until_it_changes() -> None:
    assert steps([(START, 1.0), (after(8), 2.0)], END) == "▁" * 7 + "█" * 9
    assert steps([(START, 1.0), (after(15.5), 2.0)], END) == "▁" * 15 + "█"


def test_what_never_changed_is_a_line() -> None:
    assert steps([(START, 5.0)], END) == "▄" * LENGTH
    assert steps([(START, 5.0)], START) == "▄" * LENGTH


def test_what_nobody_knew_is_empty() -> None:
    assert steps([(START, None)], END) == NOTHING * LENGTH
    assert steps([(START, None), (after(8), 2.0)], END) == NOTHING * 7 + "▄" * 9
    assert steps([], END) == ""


def test_a_terminal_without_bars_gets_plain_ones() -> None:
    assert steps([(START, 1.0), (after(8), 2.0)], END, is_plain=True) == "_" * 7 + "#" * 9


prices = st.none() | st.floats(0, 1e6)
points = st.lists(st.tuples(st.datetimes(START.replace(tzinfo=None), END.replace(tzinfo=None)), prices), max_size=30)


@given(points, st.booleans())
def test_every_history_can_be_drawn(found: list[tuple[datetime, float | None]], is_plain: bool) -> None:
    history = sorted(((at.replace(tzinfo=UTC), price) for at, price in found), key=lambda point: point[0])
    drawn = steps(history, END, is_plain=is_plain)
    assert len(drawn) == (LENGTH if history else 0)
    assert set(drawn) <= set(PLAIN_BARS if is_plain else BARS) | {NOTHING}
