"""What happened in the Lab, for people: machines, refusals, faults, what machines said. The latest of it, numbered."""

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    number: int
    at: float
    what: str
    subject: str
    note: str

    def fields(self) -> dict[str, Any]:
        return asdict(self)


class Journal:
    def __init__(self) -> None:
        self._notes: deque[Note] = deque(maxlen=KEPT)
        self._count = 0

    def write(self, at: float, what: str, subject: str, note: str = "") -> None:
        self._count += 1
        self._notes.append(Note(self._count, at, what, subject, note))

    def after(self, number: int, subject: str | None = None) -> list[Note]:
        """Those with a higher number, oldest first."""
        return [note for note in self._notes if note.number > number and subject in (None, note.subject)]
