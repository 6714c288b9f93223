"""Hours in which people do not want to be told. They follow the clocks on the wall, also in the nights in which those
are put forward or back: each night is the stretch between two moments."""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from crucible.model.alert import QuietHours
from crucible.model.errors import InvalidRequest

_DAY = timedelta(days=1)


def quiet_until(quiet: QuietHours | None, now: datetime) -> datetime | None:
    """When the quiet hours end that `now` is in; None if it is in none."""
    if quiet is None:
        return None
    zone = _zone(quiet.time_zone) or UTC  # a server without that zone still tells everybody else
    today = now.astimezone(zone).date()
    for day in (today - _DAY, today):
        start, end = stretch(quiet, zone, day)
        if start <= now < end:
            return end
    return None


def stretch(quiet: QuietHours, zone: tzinfo, day: date) -> tuple[datetime, datetime]:
    """The quiet hours that begin on that day. A time that the clocks leave out is as much later as they skip; of one
    that comes twice, the first is meant."""
    start, end = time.fromisoformat(quiet.start), time.fromisoformat(quiet.end)
    return _moment(day, start, zone), _moment(day if start < end else day + _DAY, end, zone)


def _moment(day: date, at: time, zone: tzinfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)


def check(quiet: QuietHours) -> None:
    """Raises InvalidRequest."""
    if not all(_is_time(text) for text in (quiet.start, quiet.end)) or quiet.start == quiet.end:
        raise InvalidRequest(
            f"{quiet.start}-{quiet.end} are no quiet hours; write two times of day such as 22:00-07:00", field="quiet"
        )
    if _zone(quiet.time_zone) is None:
        raise InvalidRequest(
            f"there is no time zone {quiet.time_zone}; write one such as Europe/Berlin or UTC", field="quiet"
        )


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _is_time(text: str) -> bool:
    try:
        return len(text) == 5 and time.fromisoformat(text).tzinfo is None
    except ValueError:
        return False
