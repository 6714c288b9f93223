"""SQLite: one process, reads inline, one writer. A read takes microseconds, less than handing it to a thread would."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from crucible.model.errors import InvalidRequest, InvariantBroken, StorageFailed
from crucible.store.runner import Failpoint
from crucible.store.sql import SQLITE, Driver, Transaction, UniqueViolated
from crucible.store.writer import Writer

T = TypeVar("T")

# Statements that stay compiled; more than we have.
CACHED_STATEMENTS = 512
# Of the connection that reads: the upper pages of all indexes of a million jobs.
CACHE_KIB = 16 << 10
# Readers wait only while the journal is recovered after a crash.
BUSY_TIMEOUT_S = 5.0

_UNIQUE = (
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
)
_REFUSED = {
    sqlite3.SQLITE_FULL: "the disk is full, nothing was changed; free some space and try again",
    sqlite3.SQLITE_READONLY: "it is read-only; check the owner and mode of the file and its folder",
    sqlite3.SQLITE_PERM: "access was denied; check the owner and mode of the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check the owner and mode of the file and its folder",
    sqlite3.SQLITE_IOERR: "the disk refused (full, over a limit, or broken); make room or look at the system's log",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; stop the server and restore a backup",
    sqlite3.SQLITE_NOTADB: "the file is not a database; point `database` at another one",
    sqlite3.SQLITE_BUSY: "another program holds it; close whatever has the file open",
    sqlite3.SQLITE_LOCKED: "another program holds it; close whatever has the file open",
    sqlite3.SQLITE_NOMEM: "memory ran out",
}


def driver(name: str) -> Driver:
    """`name` is how messages call the database."""
    return Driver(
        SQLITE, (sqlite3.Error, OverflowError, UnicodeEncodeError), lambda error: translate(error, name), False
    )


def translate(error: Exception, name: str) -> Exception:
    if isinstance(error, (OverflowError, UnicodeEncodeError)):
        return InvalidRequest(f"a value does not fit into the database: {error}")
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _UNIQUE:
        return UniqueViolated(str(error))
    why = _REFUSED.get(code & 0xFF)
    if why is not None:
        return StorageFailed(f"cannot use {name}: {why} ({error})")
    return InvariantBroken(f"{name} refused a statement: {error}")


class MemoryRunner:
    """A database that lives and dies with its process: no threads, no files, no real time."""

    def __init__(self, failpoint: Failpoint) -> None:
        self._driver = driver("the database in memory")
        self._connection = connect(":memory:")
        self._tx = Transaction(self._connection.cursor(), self._driver)
        self._failpoint = failpoint

    @property
    def transaction(self) -> Transaction:
        return self._tx

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return work(self._tx)

    snapshot = survey = read  # nothing can come between

    async def write(self, work: Callable[[Transaction], T], *, label: str, durable: bool = True) -> T:
        self._failpoint(f"commit.{label}.before")
        with whole(self._connection, self._driver):
            result = work(self._tx)
        self._failpoint(f"commit.{label}.after")
        return result

    async def close(self) -> None:
        self._connection.close()


class FileRunner:
    """A file that this process alone may write."""

    def __init__(self, path: Path, lock: "FileLock", failpoint: Failpoint) -> None:
        self._lock = lock
        self._path = path
        self._driver = driver(str(path))
        self._reader = connect(path)
        self._reader.execute("PRAGMA query_only=ON")
        self._reader.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        self._tx = Transaction(self._reader.cursor(), self._driver)
        self._writer = Writer(connect(path), self._driver, failpoint)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return work(self._tx)

    async def snapshot(self, work: Callable[[Transaction], T]) -> T:
        try:
            self._reader.execute("BEGIN")
            return work(self._tx)
        except sqlite3.Error as error:
            raise self._driver.translate(error) from error
        finally:
            if self._reader.in_transaction:
                self._reader.execute("ROLLBACK")

    async def survey(self, work: Callable[[Transaction], T]) -> T:
        return await asyncio.to_thread(self._survey, work)

    def _survey(self, work: Callable[[Transaction], T]) -> T:
        """On a connection of its own: SQLite lets the event loop go on while it reads."""
        with closing(connect(self._path)) as connection:
            connection.execute("PRAGMA query_only=ON")
            connection.execute("BEGIN")
            return work(Transaction(connection.cursor(), self._driver))

    async def write(self, work: Callable[[Transaction], T], *, label: str, durable: bool = True) -> T:
        result: T = await self._writer.put(work, label)
        return result

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        self._reader.close()
        self._lock.release()


class FileLock:
    """Held by the one process that writes the database beside it. The system lets go of it when the process dies."""

    def __init__(self, path: Path) -> None:
        lock = path.with_name(path.name + ".lock")
        try:
            self._fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StorageFailed(f"cannot write beside {path}: {error.strerror}; choose a folder you own") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(self._fd, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._fd)
            raise StorageFailed(
                f"{path} is in use by process {owner}: use that server, stop it, or set `database` to PostgreSQL to"
                " run several"
            ) from error
        self._note_owner(lock)

    def _note_owner(self, lock: Path) -> None:
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            self.release()
            raise StorageFailed(f"cannot write {lock}: {error.strerror}; free some space and try again") from error

    def release(self) -> None:
        os.close(self._fd)


def connect(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    # The first one counts only for a file that is empty: room that is freed later can then be given back to the disk.
    for pragma in (
        "auto_vacuum=INCREMENTAL",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "journal_size_limit=67108864",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


@contextmanager
def whole(connection: sqlite3.Connection, driver: Driver) -> Iterator[None]:
    """All of it or nothing."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise driver.translate(error) from error
        raise
