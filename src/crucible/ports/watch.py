"""Whoever wants to know what the store does. It is told after the fact, changes nothing and is quick."""

from collections.abc import Sequence
from typing import Protocol

from crucible.model.change import Change
from crucible.model.record import Record


class Watch(Protocol):
    def began(self) -> None:
        """A transaction was handed over."""
        ...

    def ended(self, seconds: float) -> None:
        """It is on disk, or was refused, so long after that."""
        ...

    def committed(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        """All of it is on disk."""
        ...


class Nobody:
    def began(self) -> None:
        pass

    def ended(self, seconds: float) -> None:
        pass

    def committed(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        pass


NOBODY = Nobody()
