"""Blocking calls of a client, awaited: each runs in a thread of its own, and whoever stops waiting hangs up the line,
so that neither the thread nor the server goes on for nobody. It knows no route and repeats nothing."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Generic, TypeVar

from crucible.client.api import Client
from crucible.client.errors import ClientClosed

T = TypeVar("T")

# A reader that is slower than its job lets so many lines wait in memory; then the thread waits, then the server.
AHEAD = 1000


class Line:
    """A client in the hands of one thread. `hang_up` may come from anywhere, also before there is a client."""

    def __init__(self, connect: Callable[[], Client], client: Client | None = None) -> None:
        self._connect = connect
        self._client = client
        self._is_down = False

    def client(self) -> Client:
        """Finding the server, and starting it, blocks: for the thread."""
        if self._client is None:
            self._client = self._connect()
        if self._is_down:
            self._client.abort()
            raise ClientClosed("the client was closed; nothing was asked")
        return self._client

    def hang_up(self) -> None:
        self._is_down = True
        if self._client is not None:
            self._client.abort()

    def release(self) -> Client | None:
        """The client, for the next call."""
        return None if self._is_down else self._client


async def call(line: Line, do: Callable[[Client], T]) -> T:
    """The result of `do`, or what it raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            value = do(line.client())
        except BaseException as error:
            _tell(loop, _fail, done, error)
        else:
            _tell(loop, _succeed, done, value)

    threading.Thread(target=work, name="crucible-call", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        line.hang_up()
        raise


async def stream(line: Line, start: Callable[[Client], Iterator[T]]) -> AsyncGenerator[T, None]:
    """What `start` yields, in order. Leaving the loop ends the thread and its connection."""
    handover: Handover[T] = Handover(asyncio.get_running_loop())

    def work() -> None:
        try:
            for item in start(line.client()):
                if not handover.put(item):
                    return
        except BaseException as error:
            handover.end(error)
        else:
            handover.end(None)

    threading.Thread(target=work, name="crucible-stream", daemon=True).start()
    try:
        while True:
            for item in await handover.take():
                yield item
            if handover.is_over:
                handover.raise_error()
                return
    finally:
        handover.close()
        line.hang_up()


class Handover(Generic[T]):
    """Items from one thread to one loop. The thread waits while too many are untaken."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[T] = deque()
        self._room = threading.Semaphore(AHEAD)
        self._news = asyncio.Event()
        self._is_closed = False
        self._is_ended = False
        self._error: BaseException | None = None

    # --- the thread ------------------------------------------------------------------------------

    def put(self, item: T) -> bool:
        """False once nobody takes any more."""
        self._room.acquire()
        if self._is_closed:
            return False
        self._items.append(item)
        _tell(self._loop, self._news.set)
        return True

    def end(self, error: BaseException | None) -> None:
        self._error = error
        self._is_ended = True
        _tell(self._loop, self._news.set)

    # --- the loop --------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._is_ended and not self._items

    async def take(self) -> list[T]:
        """All there is; waits until there is something, or the end."""
        while not self._items and not self._is_ended:
            self._news.clear()
            if not self._items and not self._is_ended:  # it may have come before the clearing
                await self._news.wait()
        taken = [self._items.popleft() for _ in range(len(self._items))]
        if taken:
            self._room.release(len(taken))
        return taken

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self._is_closed = True
        self._room.release()


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *args: object) -> None:
    try:
        loop.call_soon_threadsafe(what, *args)
    except RuntimeError:
        pass  # the loop is closed: nobody waits


def _succeed(done: "asyncio.Future[T]", value: T) -> None:
    if not done.done():
        done.set_result(value)


def _fail(done: "asyncio.Future[T]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)
