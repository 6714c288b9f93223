"""What is still to come, in order of time; at one moment, in order of entry."""

from dataclasses import dataclass, field
from enum import StrEnum
from heapq import heappop, heappush


class Due(StrEnum):
    BOOT = "boot"
    WARN = "warn"
    NOTICE = "notice"
    TAKE = "take"
    END = "end"
    PRICE = "price"


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    at: float
    number: int
    due: Due = field(compare=False)
    subject: str = field(compare=False)  # id of a machine, "type@zone"


class Agenda:
    """An entry that no longer holds is not taken out; whoever carries it out checks it."""

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._count = 0

    def add(self, at: float, due: Due, subject: str) -> None:
        self._count += 1
        heappush(self._heap, Entry(at, self._count, due, subject))

    def next_at(self) -> float | None:
        return self._heap[0].at if self._heap else None

    def pop(self, now: float) -> Entry | None:
        """The first that is due."""
        return heappop(self._heap) if self._heap and self._heap[0].at <= now else None
