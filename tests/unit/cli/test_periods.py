"""Periods as people say them."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from crucible.cli.periods import Period, period

NOW = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)  # a Wednesday
BERLIN = ZoneInfo("Europe/Berlin")


def span(start: str, end: str) -> Period:
    return Period(*(datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end)))


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("today", "2026-11-18", "2026-11-19"),
        ("yesterday", "2026-11-17", "2026-11-18"),
        ("7d", "2026-11-12", "2026-11-19"),
        ("last 7 days", "2026-11-12", "2026-11-19"),
        ("2w", "2026-11-05", "2026-11-19"),
        ("24h", "2026-11-18T00", "2026-11-19T00"),
        ("1h", "2026-11-18T23", "2026-11-19T00"),
        ("this week", "2026-11-16", "2026-11-23"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("this month", "2026-11-01", "2026-12-01"),
        (" Last  Month ", "2026-10-01", "2026-11-01"),
        ("this year", "2026-01-01", "2027-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("2026", "2026-01-01", "2027-01-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2026-02-28", "2026-02-28", "2026-03-01"),
        ("2026-11-18T05", "2026-11-18T05", "2026-11-18T06"),
        ("2026-11-01..2026-11-15", "2026-11-01", "2026-11-16"),
        ("2026-09..2026-10", "2026-09-01", "2026-11-01"),
        ("2026-11-18T05..2026-11-18T07:00", "2026-11-18T05", "2026-11-18T08"),
        ("2026-11-10..", "2026-11-10", "2026-11-19"),
    ],
)
def test_what_people_say_is_a_span_of_whole_hours(said: str, start: str, end: str) -> None:
    assert period(said, NOW) == span(start, end)


def test_days_and_months_are_those_of_the_zone() -> None:
    assert period("today", NOW, BERLIN) == span("2026-11-18T23", "2026-11-19T23")  # it is the nineteenth there
    assert period("2026-10", NOW, BERLIN) == span("2026-09-30T22", "2026-10-31T23")  # clocks are changed meanwhile


@pytest.mark.parametrize(
    "said",
    ["", "soon", "0d", "7y", "2026-13", "2026-02-30", "99999d99", "..", "2026-11-02..2026-11-01", "today..", "1.5d"],
)
def test_what_is_no_period_is_refused_with_what_is(said: str) -> None:
    with pytest.raises(ValueError, match=r"what is understood|before it begins"):
        period(said, NOW)
