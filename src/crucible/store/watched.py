"""A runner whose writes somebody watches: how many wait, and how long they take."""

from collections.abc import Callable
from typing import TypeVar

from crucible.ports.watch import Watch
from crucible.store.runner import Runner
from crucible.store.sql import Transaction

T = TypeVar("T")


class WatchedRunner:
    def __init__(self, runner: Runner, watch: Watch, monotonic: Callable[[], float]) -> None:
        self._runner = runner
        self._watch = watch
        self._monotonic = monotonic
        self.read = runner.read
        self.snapshot = runner.snapshot
        self.survey = runner.survey
        self.close = runner.close

    async def write(self, work: Callable[[Transaction], T], *, label: str, durable: bool = True) -> T:
        began = self._monotonic()
        self._watch.began()
        try:
            return await self._runner.write(work, label=label, durable=durable)
        finally:
            self._watch.ended(self._monotonic() - began)
