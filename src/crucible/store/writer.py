"""The one writer of a SQLite file. Whatever waits is written in one transaction, each write in its own savepoint, and
acknowledged after one sync of the disk: a hundred writers cost little more than one."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from crucible.model.errors import Busy, StorageFailed
from crucible.store.runner import Failpoint
from crucible.store.sql import Driver, Transaction

MAX_WAITING = 10_000  # beyond this the disk cannot follow, and a caller had better hear it
MAX_GROUP = 256  # keeps the first of a group from waiting too long for the last


@dataclass(slots=True, eq=False)
class Write:
    work: Callable[[Transaction], Any]
    label: str
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def settle(self) -> None:
        if self.future.done():  # its caller gave up
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class Writer:
    def __init__(self, connection: sqlite3.Connection, driver: Driver, failpoint: Failpoint) -> None:
        self._connection = connection
        self._driver = driver
        self._failpoint = failpoint
        self._tx = Transaction(connection.cursor(), driver)
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="crucible-writer", daemon=True)
        self._thread.start()

    def put(self, work: Callable[[Transaction], Any], label: str) -> asyncio.Future[Any]:
        if self._is_closed:
            raise StorageFailed("the database is closed: the server is stopping")
        if self._queue.qsize() >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} writes are waiting for the disk: try again in a moment")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(Write(work, label, loop, future))
        return future

    def close(self) -> None:
        """Write what waits, then stop."""
        self._is_closed = True
        self._queue.put(None)
        self._thread.join()
        self._connection.close()

    # --- in the writer's thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        is_open = True
        while is_open:
            group, is_open = self._next_group()
            self._write(group)
            for loop in {write.loop for write in group}:
                self._settle(loop, [write for write in group if write.loop is loop])

    def _next_group(self) -> tuple[list[Write], bool]:
        group: list[Write] = []
        item = self._queue.get()
        while item is not None:
            group.append(item)
            if len(group) == MAX_GROUP:
                return group, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return group, True
        return group, False

    def _write(self, group: Iterable[Write]) -> None:
        admitted = [write for write in group if self._passes(write, "before")]
        if not admitted:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for write in admitted:
                self._try(write)
            self._connection.execute("COMMIT")
        except Exception as error:
            self._give_up(admitted, error)
            return
        for write in admitted:
            if write.error is None:
                self._passes(write, "after")

    def _try(self, write: Write) -> None:
        """A failure takes back this write alone, unless the disk failed: then the group is lost."""
        self._connection.execute("SAVEPOINT one")
        try:
            write.result = write.work(self._tx)
        except StorageFailed:
            raise
        except BaseException as error:
            write.error = error
            self._connection.execute("ROLLBACK TO one")
        self._connection.execute("RELEASE one")

    def _give_up(self, group: Iterable[Write], error: Exception) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the next group meets the same trouble and says so; this thread must go on
        if isinstance(error, self._driver.errors):
            error = self._driver.translate(error)
        for write in group:
            if write.error is None:
                # Each caller its own: a shared exception would collect everybody's traceback.
                write.error = StorageFailed(str(error))
                write.error.__cause__ = error

    def _passes(self, write: Write, place: str) -> bool:
        """A failpoint may kill the process, or raise to make this one write fail."""
        try:
            self._failpoint(f"commit.{write.label}.{place}")
        except BaseException as error:
            write.error = error
            return False
        return True

    @staticmethod
    def _settle(loop: asyncio.AbstractEventLoop, writes: list[Write]) -> None:
        try:
            loop.call_soon_threadsafe(_settle_all, writes)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more


def _settle_all(writes: Iterable[Write]) -> None:
    for write in writes:
        write.settle()
