"""Periods as people say them: today, 7d, last month, 2026-11, 2026-11-01..2026-11-15. Pure: `now` and the zone are
arguments, and days, weeks and months are those of that zone. Both ends are whole hours; the last one is not part of
it."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

KNOWN = "today, yesterday, 24h, 7d, 4w, this month, last month, 2026, 2026-11, 2026-11-18, 2026-11-01..2026-11-15"
_UNITS = {"h": "h", "hour": "h", "hours": "h", "d": "d", "day": "d", "days": "d", "w": "w", "week": "w", "weeks": "w"}
_LENGTH = re.compile(r"(?:last )?(\d{1,4}) ?([a-z]+)")
_NAMED = re.compile(r"(this|last) (week|month|year)")
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[t ](\d{2})(?::00)?)?)?)?")


@dataclass(frozen=True, slots=True)
class Period:
    from_at: datetime
    to_at: datetime


def period(text: str, now: datetime, zone: tzinfo = UTC) -> Period:
    """Raises ValueError, with what is understood, for anything else."""
    said = " ".join(text.lower().split())
    if ".." in said:
        first, _, last = said.partition("..")
        return _checked(text, _stated(first, zone), _stated(last, zone) if last.strip() else _today(now, zone))
    found = _relative(said, now, zone) or _stated(said, zone)
    return _checked(text, found, found)


def _checked(text: str, first: Period | None, last: Period | None) -> Period:
    if first is None or last is None:
        raise ValueError(f"{text!r} is no period; what is understood: {KNOWN}")
    if first.from_at >= last.to_at:
        raise ValueError(f"{text!r} ends before it begins")
    return Period(first.from_at, last.to_at)


def _relative(said: str, now: datetime, zone: tzinfo) -> Period | None:
    today = now.astimezone(zone).date()
    if said in ("today", "yesterday"):
        return _days(today - timedelta(days=said == "yesterday"), 1, zone)
    if named := _NAMED.fullmatch(said):
        return _calendar(today, named[2], back=named[1] == "last", zone=zone)
    length = _LENGTH.fullmatch(said)
    unit = _UNITS.get(length[2]) if length else None
    if length is None or unit is None or not int(length[1]):
        return None
    if unit == "h":
        end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return Period(end - timedelta(hours=int(length[1])), end)
    days = int(length[1]) * (7 if unit == "w" else 1)
    return _days(today - timedelta(days=days - 1), days, zone)


def _calendar(today: date, unit: str, *, back: bool, zone: tzinfo) -> Period:
    if unit == "week":
        return _days(today - timedelta(days=today.weekday() + 7 * back), 7, zone)
    if unit == "year":
        return _year(today.year - back, zone)
    first = today.replace(day=1)
    return _month((first - timedelta(days=1)).replace(day=1) if back else first, zone)


def _stated(said: str, zone: tzinfo) -> Period | None:
    found = _DATE.fullmatch(said.strip())
    if found is None:
        return None
    year, month, day, hour = (None if part is None else int(part) for part in found.groups())
    try:
        if month is None:
            return _year(int(found[1]), zone)
        if day is None:
            return _month(date(year or 1, month, 1), zone)
        if hour is None:
            return _days(date(year or 1, month, day), 1, zone)
        at = datetime(year or 1, month, day, hour, tzinfo=zone).astimezone(UTC)
        return Period(at, at + timedelta(hours=1))
    except (ValueError, OverflowError):
        return None


def _today(now: datetime, zone: tzinfo) -> Period:
    return _days(now.astimezone(zone).date(), 1, zone)


def _days(first: date, count: int, zone: tzinfo) -> Period:
    return Period(_midnight(first, zone), _midnight(first + timedelta(days=count), zone))


def _month(first: date, zone: tzinfo) -> Period:
    return Period(_midnight(first, zone), _midnight((first + timedelta(days=32)).replace(day=1), zone))


def _year(year: int, zone: tzinfo) -> Period:
    return Period(_midnight(date(year, 1, 1), zone), _midnight(date(year + 1, 1, 1), zone))


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
