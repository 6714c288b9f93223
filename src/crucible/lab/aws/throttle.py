"""Request rates as EC2 limits them: a bucket of tokens for each account, region and class of operation, refilled in
real time."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bucket:
    size: float  # requests at once
    per_s: float  # and then so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Several times what Amazon grants a new account, so that it is met by mistakes only."""

    reading: Bucket = Bucket(1_000, 200)
    writing: Bucket = Bucket(500, 100)
    buying: Bucket = Bucket(250, 50)


@dataclass(slots=True)
class _Level:
    tokens: float
    at: float


@dataclass(slots=True)
class Throttle:
    limits: Limits
    monotonic: Callable[[], float]
    _levels: dict[tuple[str, str, str], _Level] = field(default_factory=dict)

    def admits(self, account: str, region: str, operation: str) -> bool:
        """Whether this request may be served; it is counted."""
        kind = class_of(operation)
        bucket: Bucket = getattr(self.limits, kind)
        now = self.monotonic()
        level = self._levels.setdefault((account, region, kind), _Level(bucket.size, now))
        level.tokens = min(bucket.size, level.tokens + (now - level.at) * bucket.per_s)
        level.at = now
        if level.tokens < 1:
            return False
        level.tokens -= 1
        return True


def class_of(operation: str) -> str:
    if operation.startswith(("Describe", "Get", "List")):
        return "reading"
    return "buying" if operation == "RunInstances" else "writing"
