"""Quiet hours, on ordinary days and in the nights in which clocks are changed."""

from datetime import UTC, datetime

import pytest

from crucible.core.quiet import quiet_until
from crucible.model.alert import QuietHours

NIGHT = QuietHours(start="22:00", end="07:00", time_zone="Europe/Berlin")
NOON = QuietHours(start="12:00", end="13:30", time_zone="America/New_York")


@pytest.mark.parametrize(
    ("quiet", "now", "until"),
    [
        (NIGHT, "2026-01-10T20:59", None),
        (NIGHT, "2026-01-10T21:00", "2026-01-11T06:00"),
        (NIGHT, "2026-01-11T05:59", "2026-01-11T06:00"),
        (NIGHT, "2026-01-11T06:00", None),
        (NIGHT, "2026-07-10T20:00", "2026-07-11T05:00"),
        (NIGHT, "2026-03-28T23:00", "2026-03-29T05:00"),  # clocks go forward: an hour less of sleep
        (NIGHT, "2026-10-24T22:00", "2026-10-25T06:00"),  # and back
        (NOON, "2026-01-10T17:00", "2026-01-10T18:30"),
        (NOON, "2026-01-10T18:30", None),
        (None, "2026-01-10T17:00", None),
        # times that a night skips, and that it has twice
        (QuietHours(start="01:00", end="02:30", time_zone="Europe/Berlin"), "2026-03-29T00:30", "2026-03-29T01:30"),
        (QuietHours(start="01:00", end="02:30", time_zone="Europe/Berlin"), "2026-10-25T00:00", "2026-10-25T00:30"),
    ],
)
def test_quiet_hours_follow_the_clocks_on_the_wall(quiet: QuietHours | None, now: str, until: str | None) -> None:
    expected = None if until is None else datetime.fromisoformat(until).replace(tzinfo=UTC)
    assert quiet_until(quiet, datetime.fromisoformat(now).replace(tzinfo=UTC)) == expected
