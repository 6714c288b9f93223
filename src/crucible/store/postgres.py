"""PostgreSQL: several servers share one database. Each transaction has a connection and a thread of its own, READ
COMMITTED, with the guards in the statements. No wait is unbounded."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from crucible.model.errors import Busy, InvalidRequest, InvariantBroken, PlatformError, StorageFailed
from crucible.store import schema
from crucible.store.runner import Failpoint
from crucible.store.sql import POSTGRES, Driver, Transaction, TryAgain, UniqueViolated

try:
    import psycopg
except ImportError as error:
    raise StorageFailed(f"PostgreSQL needs its driver ({error}): pip install 'crucible[postgres]'") from error

T = TypeVar("T")
Connection = psycopg.Connection[Any]

THREADS = 8  # transactions at a time; a transaction is a few milliseconds
MAX_WAITING = 10_000
CONNECT_TIMEOUT_S = 5
# The database gives up this transaction for another's sake (deadlock); the second time it is alone.
TRIES = 3

# A server that is stopped in the middle of a transaction must not hold its locks for longer than a claim lasts.
_SESSION = """
SET idle_in_transaction_session_timeout = '10s';
SET statement_timeout = '30s';
SET lock_timeout = '10s';
SET default_transaction_isolation = 'read committed';
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
_BEGIN = "BEGIN"
_BEGIN_UNSYNCED = "BEGIN; SET LOCAL synchronous_commit = off"
_BEGIN_SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def translate(error: Exception) -> Exception:
    match error:
        case psycopg.errors.UniqueViolation():
            return UniqueViolated(str(error))
        case psycopg.errors.DeadlockDetected() | psycopg.errors.SerializationFailure():
            return TryAgain(str(error))
        case psycopg.errors.IntegrityError():
            return InvariantBroken(f"PostgreSQL refused a row: {error}")
        case psycopg.errors.DataError() | OverflowError() | UnicodeEncodeError():
            return InvalidRequest(f"a value does not fit into the database: {error}")
        case psycopg.OperationalError() | psycopg.InterfaceError() | psycopg.errors.ReadOnlySqlTransaction():
            return StorageFailed(f"PostgreSQL failed, nothing was changed: {error}; look at the server and try again")
        case _:
            return InvariantBroken(f"PostgreSQL refused a statement: {error}")


DRIVER = Driver(POSTGRES, (psycopg.Error, OverflowError, UnicodeEncodeError), translate, True)


class Pool:
    """Idle connections, the most recently used first. There are never more than threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Connection] = []
        self._lock = threading.Lock()

    def take(self) -> Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        connection = connect(self._url)
        _execute(connection, _SESSION)
        return connection

    def give(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)

    def empty(self) -> None:
        """After one connection broke, the others are as old: the server was probably restarted."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def connect(url: str) -> Connection:
    try:
        return psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name="crucible",
            keepalives_idle=10,
            keepalives_interval=3,
            keepalives_count=3,
            tcp_user_timeout=15_000,
        )
    except psycopg.Error as error:
        raise StorageFailed(f"cannot reach PostgreSQL: {error}; check that it runs and the `database` URL") from error


def prepare(url: str, failpoint: Failpoint) -> None:
    """Bring the schema up to date. A database that is current costs one statement."""
    with connect(url) as connection:
        revision = found(connection)
        if revision is None:
            revision = create(connection, failpoint)
    if revision in schema.OLDER:
        from crucible.store.migrate import upgrade_postgres

        upgrade_postgres(lambda: psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S), failpoint)


def found(connection: Connection) -> str | None:
    name = f"the database {connection.info.dbname}"
    return schema.found_revision(Transaction(connection.cursor(), DRIVER), name)


def create(connection: Connection, failpoint: Failpoint) -> str | None:
    with connection.transaction():
        connection.execute(schema.SCHEMA_LOCK)
        revision = found(connection)  # another server may have been first
        if revision is None:
            schema.create(Transaction(connection.cursor(), DRIVER))
            failpoint("migrate.create")
        return revision


class PostgresRunner:
    def __init__(self, url: str, failpoint: Failpoint) -> None:
        self._pool = Pool(url)
        self._failpoint = failpoint
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="crucible-postgres")
        self._waiting = 0
        self._is_closed = False

    async def read(self, work: Callable[[Transaction], T]) -> T:
        return await self._in_thread(lambda: self._transact(None, work))

    async def snapshot(self, work: Callable[[Transaction], T]) -> T:
        return await self._in_thread(lambda: self._transact(_BEGIN_SNAPSHOT, work))

    survey = snapshot  # has a thread anyway

    async def write(self, work: Callable[[Transaction], T], *, label: str, durable: bool = True) -> T:
        def whole() -> T:
            self._failpoint(f"commit.{label}.before")
            result = self._transact(_BEGIN if durable else _BEGIN_UNSYNCED, work)
            self._failpoint(f"commit.{label}.after")
            return result

        return await self._in_thread(whole)

    async def close(self) -> None:
        self._is_closed = True
        await asyncio.to_thread(self._threads.shutdown)
        self._pool.empty()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        if self._is_closed:
            raise StorageFailed("the database is closed: the server is stopping")
        if self._waiting >= MAX_WAITING:
            raise Busy(f"{MAX_WAITING} transactions are waiting for PostgreSQL: try again in a moment")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        finally:
            self._waiting -= 1

    # --- in a thread ----------------------------------------------------------------------------------------

    def _transact(self, begin: str | None, work: Callable[[Transaction], T]) -> T:
        """Until COMMIT is sent nothing can have been written, so that a broken connection costs one more try."""
        for _ in range(TRIES - 1):
            try:
                return self._once(begin, work)
            except _Broken:
                self._pool.empty()
            except TryAgain:
                pass
        try:
            return self._once(begin, work)
        except TryAgain as error:
            raise Busy(f"PostgreSQL could not order this transaction among others: {error}") from error
        except _Broken as error:
            raise error.failure from error

    def _once(self, begin: str | None, work: Callable[[Transaction], T]) -> T:
        connection = self._pool.take()
        try:
            if begin is not None:
                _execute(connection, begin)
            result = work(Transaction(connection.cursor(), DRIVER))
        except BaseException as error:
            self._take_back(connection, begin is not None)
            if connection.closed and isinstance(error, StorageFailed):
                raise _Broken(error) from error
            raise
        if begin is not None:
            self._commit(connection)
        self._pool.give(connection)
        return result

    def _take_back(self, connection: Connection, in_transaction: bool) -> None:
        try:
            if in_transaction and not connection.closed:
                connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:
            connection.close()
        if not connection.closed:
            self._pool.give(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT", prepare=False)
        except psycopg.Error as error:
            connection.close()
            self._pool.empty()
            raise StorageFailed(
                f"PostgreSQL went away during a commit: {error}; look whether it was written before trying again",
                outcome="unknown",
            ) from error


class _Broken(Exception):
    """The connection was lost before anything could be committed."""

    def __init__(self, failure: PlatformError) -> None:
        self.failure = failure


def _execute(connection: Connection, text: str) -> None:
    try:
        connection.execute(text, prepare=False)
    except psycopg.Error as error:
        raise translate(error) from error
