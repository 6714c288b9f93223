"""Figures as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.cli import wording
from crucible.cli.table import Column, cut, draw, printable

NOW = datetime(2026, 1, 17, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (59.9, "59s"),
        (192, "3m 12s"),
        (3600, "1h 00m"),
        (7500, "2h 05m"),
        (86400 * 3 + 4 * 3600, "3d 04h"),
    ],
)
def test_a_duration_has_two_units(seconds: float | None, text: str) -> None:
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(
    ("ago", "text"), [(0, "0s"), (59, "59s"), (60, "1m"), (7199, "119m"), (7200, "2h"), (172800, "2d"), (-5, "0s")]
)
def test_an_age_has_one_unit_and_is_never_negative(ago: int, text: str) -> None:
    assert wording.age((NOW - timedelta(seconds=ago)).isoformat(), NOW) == text


def test_times_are_shown_in_the_zone_of_the_reader() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert wording.clock("2026-01-17T10:00:00Z", tokyo) == "2026-01-17 19:00:00"
    assert wording.when("2026-01-17T10:00:00Z", NOW, tokyo) == "2026-01-17 19:00:00 (2h ago)"
    assert wording.when(None, NOW) == "-"


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(None, "-"), (0, "$0.00"), (0.0042, "$0.0042"), (12.3456, "$12.35"), (1234567.5, "$1,234,567.50")],
)
def test_money_shows_more_digits_where_cents_would_hide_it(dollars: float | None, text: str) -> None:
    assert wording.money(dollars) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "-"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB"), (5 << 50, "5120.0 TiB")],
)
def test_sizes(count: int | None, text: str) -> None:
    assert wording.size(count) == text


def test_a_job_that_is_nearly_done_is_not_done() -> None:
    assert wording.percent(0.999) == "99%"


# Characters that take no room of their own are left out: with them a line has more characters than columns.
TEXT = st.text(st.characters(exclude_categories=("Mn", "Me", "Cs")))


@settings(deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), max_size=8), st.integers(30, 200))
def test_a_table_keeps_its_width_its_rows_and_the_terminal_safe(rows: list[tuple[str, str]], width: int) -> None:
    columns = [Column("A", shrinks=True), Column("B", shrinks=True)]
    lines = draw(columns, rows, width)
    assert len(lines) == len(rows) + 1
    assert all(line.isprintable() for line in lines)
    assert all(len(line) <= width for line in lines)


@settings(deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=8))
def test_without_a_width_nothing_is_cut(rows: list[str]) -> None:
    lines = draw([Column("ID"), Column("NAME", shrinks=True)], [("x", row) for row in rows])
    assert all(printable(row).rstrip() in line for row, line in zip(rows, lines[1:], strict=True))


def test_wide_characters_count_twice_and_a_cut_is_marked() -> None:
    assert cut("学習する", 5) == "学習…"
    assert draw([Column("NAME"), Column("X")], [("学習", "1"), ("abcd", "2")])[1:] == ["学習  1", "abcd  2"]
