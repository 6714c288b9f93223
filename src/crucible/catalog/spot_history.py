"""When AWS listed a spot price for a type in a zone, and when it stopped. The price itself is not looked at: over the
pools of 2025 it tells nothing about interruptions (docs/catalog.md)."""

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = "catalog/aws_spot_history_2025-04_2026-08.csv.gz"
LONGEST_STEP_S = 86_400  # between two looks at the list; what is longer is a time in which nobody looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One pool over one span of time."""

    seen_h: float
    listed_h: float
    left: int  # how often it went from listed to not listed

    def __add__(self, other: "Listing") -> "Listing":
        return Listing(
            seen_h=self.seen_h + other.seen_h, listed_h=self.listed_h + other.listed_h, left=self.left + other.left
        )


Pool = tuple[str, str, str]  # region, zone, type
NOTHING = Listing(seen_h=0, listed_h=0, left=0)


def read(data: Path) -> "History":
    changes: dict[Pool, dict[int, bool]] = {}
    with gzip.open(data / FILE, "rt", newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows)
        for ts, kind, region, zone, price, _ in rows:
            seen = changes.setdefault((region, zone, kind), {})
            # A pool may be listed twice at one time, once with a price and once without.
            seen[int(ts)] = seen.get(int(ts), False) or bool(price)
    return History(changes)


class History:
    def __init__(self, changes: Mapping[Pool, Mapping[int, bool]]) -> None:
        self._changes = {pool: sorted(seen.items()) for pool, seen in changes.items()}
        looks = sorted({ts for seen in changes.values() for ts in seen})
        self.looks: tuple[int, ...] = tuple(looks)

    def between(self, start: float, end: float) -> dict[Pool, Listing]:
        """What was seen of each pool from `start` until `end`."""
        spans = [(a, b) for a, b in self._spans() if start <= a and b <= end]
        return {pool: _listing(changes, spans) for pool, changes in self._changes.items()}

    def _spans(self) -> Iterator[tuple[int, int]]:
        """Times between two looks that are close enough to know what was there."""
        for a, b in zip(self.looks, self.looks[1:], strict=False):
            if b - a <= LONGEST_STEP_S:
                yield a, b


def _listing(changes: list[tuple[int, bool]], spans: list[tuple[int, int]]) -> Listing:
    at = 0
    is_listed: bool | None = None
    seen = listed = left = 0
    for a, b in spans:
        was = is_listed
        while at < len(changes) and changes[at][0] <= a:
            is_listed = changes[at][1]
            at += 1
        left += bool(was) and is_listed is False
        if is_listed is not None:
            seen += b - a
            listed += (b - a) * is_listed
    return Listing(seen_h=seen / 3600, listed_h=listed / 3600, left=left)
