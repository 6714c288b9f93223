"""The end of a server: whoever waits for news is told at once, so that stopping takes no longer than a request."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from crucible.engine.hub import Hub
from crucible.model.errors import Busy

T = TypeVar("T")


class Shutdown:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._polls: set[asyncio.Task[Any]] = set()
        self.is_stopping = False

    def begin(self) -> None:
        self.is_stopping = True
        self._hub.notify_all()
        for poll in self._polls:
            poll.cancel()

    async def unless_stopping(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a wait that may take long; raises Busy when the server stops meanwhile."""
        poll = asyncio.ensure_future(work)
        self._polls.add(poll)
        try:
            await asyncio.wait((poll,))
            if self.is_stopping and poll.cancelled():
                raise Busy("this server is stopping; ask another, or again in a moment")
            return poll.result()
        finally:
            poll.cancel()
            self._polls.discard(poll)
