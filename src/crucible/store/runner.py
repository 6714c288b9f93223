"""Where transactions run. The statements are the same everywhere; a runner knows its database's threads, locks and
failures."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from crucible.store.sql import Transaction

T = TypeVar("T")

Failpoint = Callable[[str], None]


def no_failpoint(name: str) -> None:
    """Crash tests pass something that is less patient."""


class Runner(Protocol):
    async def read(self, work: Callable[[Transaction], T]) -> T:
        """One statement."""
        ...

    async def snapshot(self, work: Callable[[Transaction], T]) -> T:
        """Several statements that see the same moment."""
        ...

    async def survey(self, work: Callable[[Transaction], T]) -> T:
        """The same for what takes its time: never on the event loop."""
        ...

    async def write(self, work: Callable[[Transaction], T], *, label: str, durable: bool = True) -> T:
        """All of `work` or nothing, on disk when it returns. `durable=False` is for what may be lost when the database
        crashes, such as claims. `work` may run more than once. The failpoints commit.<label>.before and .after are
        passed around it."""
        ...

    async def close(self) -> None: ...
