"""Figures as people read them: times, durations, money, sizes. Pure: `now` and the time zone are arguments."""

from datetime import datetime, tzinfo

NONE = "-"
MINUTE, HOUR, DAY = 60, 3600, 86400


def moment(text: str | None) -> datetime | None:
    """A time as the API writes it."""
    return datetime.fromisoformat(text) if text else None


def clock(text: str | None, zone: tzinfo | None = None) -> str:
    """Local date and time to the second; `zone` None is the computer's own."""
    at = moment(text)
    return NONE if at is None else at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S")


def instant(text: str | None, zone: tzinfo | None = None) -> str:
    """The same to the millisecond, where the order of things counts."""
    at = moment(text)
    return NONE if at is None else at.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"


def age(text: str | None, now: datetime) -> str:
    """How long ago, in one unit: it stands in a column."""
    at = moment(text)
    if at is None:
        return NONE
    seconds = max(0, int((now - at).total_seconds()))
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE)):
        if seconds >= 2 * size or (unit == "m" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def when(text: str | None, now: datetime, zone: tzinfo | None = None) -> str:
    """Date, time and how long ago."""
    return NONE if not text else f"{clock(text, zone)} ({age(text, now)} ago)"


def duration(seconds: float | None) -> str:
    """In two units: 0.4s, 45s, 3m 12s, 2h 05m, 3d 04h."""
    if seconds is None:
        return NONE
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    whole = int(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m {whole % MINUTE:02}s"
    if whole < DAY:
        return f"{whole // HOUR}h {whole % HOUR // MINUTE:02}m"
    return f"{whole // DAY}d {whole % DAY // HOUR:02}h"


def span(start: str | None, end: str | None, now: datetime) -> str:
    """From `start` to `end`, or until now while it has none."""
    began = moment(start)
    return NONE if began is None else duration(((moment(end) or now) - began).total_seconds())


def money(dollars: float | None) -> str:
    """Cents, and more digits where cents would hide it."""
    if dollars is None:
        return NONE
    sign, size = "-" if dollars < 0 else "", abs(dollars)
    return f"{sign}${size:,.4f}" if 0 < size < 0.1 else f"{sign}${size:,.2f}"


def size(count: int | None) -> str:
    if count is None:
        return NONE
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("the last unit takes everything")


def percent(fraction: float | None) -> str:
    """Rounded down: 100% means that nothing is left."""
    return NONE if fraction is None else f"{int(100 * fraction)}%"


def number(value: float | None) -> str:
    """Six significant digits, without an exponent where a person would not write one."""
    return NONE if value is None else f"{value:.6g}"


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
