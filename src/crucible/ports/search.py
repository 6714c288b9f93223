"""An adaptive search: what the next trials try, from what those before it found."""

from collections.abc import Sequence
from typing import Protocol

from crucible.model.sweep import Params, Sweep, Tried


class Sampler(Protocol):
    def check(self) -> None:
        """Raises InvalidRequest if it cannot be used here, with what to install."""
        ...

    def suggest(self, sweep: Sweep, numbers: Sequence[int], history: Sequence[Tried]) -> Sequence[Params]:
        """For the trials of these numbers; each knows what those before it are given. Nothing is remembered: the same
        question gets the same answer, whoever asks. May take seconds; no event loop may wait for it."""
        ...
