"""What happened, in order: all of it once for whoever keeps the processes, the latest for people."""

from collections import deque
from collections.abc import Sequence

from crucible.world.machine import Happening, What


class Diary:
    def __init__(self, kept: int = 10_000) -> None:
        self._kept: deque[Happening] = deque(maxlen=kept)
        self._unread: list[Happening] = []
        self._count = 0

    def write(self, at: float, what: What, subject: str, note: str = "") -> None:
        self._count += 1
        happening = Happening(at, what, subject, note, self._count)
        self._kept.append(happening)
        self._unread.append(happening)

    def read(self) -> tuple[Happening, ...]:
        """What was not read yet."""
        unread, self._unread = tuple(self._unread), []
        return unread

    def unread_since(self) -> float | None:
        return self._unread[0].at if self._unread else None

    def after(self, number: int) -> Sequence[Happening]:
        return [happening for happening in self._kept if happening.number > number]
