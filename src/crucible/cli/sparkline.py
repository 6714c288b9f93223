"""A price over time in a dozen characters. A price holds until it changes, so each character is the price in force at
the end of its share of the time."""

from collections.abc import Sequence
from datetime import datetime

LENGTH = 16
BARS = "▁▂▃▄▅▆▇█"
PLAIN_BARS = "_.-~=+*#"  # where the terminal has no others
NOTHING = " "

Point = tuple[datetime, float | None]


def steps(points: Sequence[Point], now: datetime, *, is_plain: bool = False) -> str:
    """`points` are changes, oldest first; None is a price that nobody knew."""
    if not points:
        return ""
    first = points[0][0]
    share = (max(now, points[-1][0]) - first) / LENGTH
    return drawn([price_at(points, first + share * (i + 1)) for i in range(LENGTH)], PLAIN_BARS if is_plain else BARS)


def price_at(points: Sequence[Point], moment: datetime) -> float | None:
    return [price for at, price in points if at <= moment][-1]


def drawn(values: Sequence[float | None], bars: str) -> str:
    """From the lowest to the highest; what never changed is a line in the middle."""
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING * len(values)
    low, span = min(known), max(known) - min(known)
    middle = len(bars) // 2 - 1
    return "".join(
        NOTHING if value is None else bars[round((value - low) / span * (len(bars) - 1)) if span else middle]
        for value in values
    )
