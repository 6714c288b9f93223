"""Opening a store by its URL: take the lock, bring the schema up to date, start what it needs."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from crucible.model.errors import InvalidRequest, StorageFailed
from crucible.ports.store import Store
from crucible.ports.watch import NOBODY, Watch
from crucible.store import schema
from crucible.store.claims import MemoryClaims, SharedClaims
from crucible.store.runner import Failpoint, no_failpoint
from crucible.store.sql import Transaction
from crucible.store.sqlite import FileLock, FileRunner, MemoryRunner, connect, driver, translate, whole
from crucible.store.store import SqlStore
from crucible.store.watched import WatchedRunner

SQLITE_FILE = "sqlite:///"
SQLITE_MEMORY = ("sqlite://", "sqlite:///:memory:")
POSTGRES = ("postgresql://", "postgres://")


async def open_store(
    url: str,
    *,
    clock_monotonic: Callable[[], float] = time.monotonic,
    failpoint: Failpoint = no_failpoint,
    watch: Watch = NOBODY,
) -> Store:
    """`sqlite:///path`, `sqlite://` (in memory) or `postgresql://…`. `clock_monotonic` times the claims of a database
    that one process writes; a shared database uses its own clock. `watch` is told of every commit."""
    if url in SQLITE_MEMORY:
        return _open_memory(clock_monotonic, failpoint)
    if url.startswith(SQLITE_FILE):
        return _open_file(Path(url.removeprefix(SQLITE_FILE)), clock_monotonic, failpoint, watch)
    if url.startswith(POSTGRES):
        return await _open_postgres(url, failpoint, watch)
    scheme = url.partition("://")[0]
    raise InvalidRequest(f"cannot open a {scheme!r} database: use sqlite:///path or postgresql://user@host/name")


def _open_memory(monotonic: Callable[[], float], failpoint: Failpoint) -> Store:
    runner = MemoryRunner(failpoint)
    schema.create(runner.transaction)
    return SqlStore(runner, MemoryClaims(monotonic))


def _open_file(path: Path, monotonic: Callable[[], float], failpoint: Failpoint, watch: Watch) -> Store:
    _check_folder(path)
    lock = FileLock(path)
    try:
        _make_private(path)
        _prepare_file(path, failpoint)
        runner = WatchedRunner(FileRunner(path, lock, failpoint), watch, time.monotonic)
        return SqlStore(runner, MemoryClaims(monotonic), watch)
    except sqlite3.Error as error:
        lock.release()
        raise translate(error, str(path)) from error
    except BaseException:
        lock.release()
        raise


def _check_folder(path: Path) -> None:
    try:
        exists = path.parent.is_dir()
    except OSError as error:  # a folder above may not be entered
        raise StorageFailed(f"cannot write {path}: {error.strerror}; choose a folder you own") from error
    if not exists:
        raise StorageFailed(f"cannot open {path}: the folder {path.parent} does not exist; create it first")


def _make_private(path: Path) -> None:
    """Specs hold names and addresses of people's work; the journal files take the mode of this one."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StorageFailed(f"cannot write {path}: {error.strerror}; choose a folder you own") from error


def _prepare_file(path: Path, failpoint: Failpoint) -> None:
    our = driver(str(path))
    with closing(connect(path)) as connection, whole(connection, our):
        tx = Transaction(connection.cursor(), our)
        revision = schema.found_revision(tx, str(path))
        if revision is None:
            schema.create(tx)
            failpoint("migrate.create")
    if revision in schema.OLDER:
        from crucible.store.migrate import upgrade_sqlite

        upgrade_sqlite(path, failpoint)


async def _open_postgres(url: str, failpoint: Failpoint, watch: Watch) -> Store:
    from crucible.store.postgres import PostgresRunner, prepare

    await asyncio.to_thread(prepare, url, failpoint)
    runner = WatchedRunner(PostgresRunner(url, failpoint), watch, time.monotonic)
    return SqlStore(runner, SharedClaims(runner), watch)
