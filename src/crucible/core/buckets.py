"""How much somebody may ask for in a while: a bucket that fills steadily and is emptied by requests."""

from typing import NamedTuple


class Rate(NamedTuple):
    """`per_s` for ever, and `burst` at once after a rest. Nothing per second: no limit."""

    per_s: float
    burst: float

    @property
    def is_unlimited(self) -> bool:
        return self.per_s <= 0


class Level(NamedTuple):
    """What was in a bucket at a moment of a steady clock."""

    left: float
    at_s: float


def filled(level: Level | None, rate: Rate, now_s: float) -> float:
    """What is in it now; None: nobody has taken anything lately. A clock that goes back fills nothing."""
    if level is None:
        return rate.burst
    return min(rate.burst, level.left + max(0.0, now_s - level.at_s) * rate.per_s)


def taken(level: Level | None, rate: Rate, now_s: float) -> tuple[Level, float]:
    """After one request: the bucket, and how long to wait before asking again; 0: it may pass. Who is refused takes
    nothing, so that waiting helps."""
    left = filled(level, rate, now_s)
    if left < 1:
        return Level(left, now_s), (1 - left) / rate.per_s
    return Level(left - 1, now_s), 0.0
