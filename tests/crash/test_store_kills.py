"""kill -9 at any moment loses nothing that was acknowledged and leaves nothing half-written."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from crucible.model.encoding import decode_event
from crucible.model.errors import NotFound, StaleVersion, StorageFailed
from crucible.model.ids import JobId, TaskId
from crucible.model.job import Job, JobEvent, JobReasonChanged
from crucible.ports.store import JobQuery, LoggedEvent, Store
from crucible.store import open_store
from crucible.testing.specimens import NOW, a_job, fold, step, submitted
from postgres_engine import Postgres

PROGRAM = Path(__file__).with_name("store_program.py")
WAIT_S = 60.0


def program(*arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAM), *arguments]


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/crucible.db"


def killed_while_writing(url: str, round_: str, acknowledged: int) -> dict[str, int]:
    """The newest version of each job that was acknowledged before the kill."""
    versions: dict[str, int] = {}
    with subprocess.Popen(program("write", url, round_), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            job_id, version = line.split()
            versions[job_id] = int(version)
            if number == acknowledged:
                process.send_signal(signal.SIGKILL)  # what it wrote into the pipe meanwhile is read as well
    assert process.returncode == -signal.SIGKILL
    return versions


async def look_after(url: str, acknowledged: dict[str, int]) -> None:
    store = await open_store(url)
    for job_id, version in acknowledged.items():
        job = await store.job(JobId(job_id))
        assert job.version >= version, f"{job_id}: {version} was acknowledged, {job.version} is there"
        assert job == await folded(store, JobId(job_id))
    await store.close()


async def folded(store: Store, job_id: JobId) -> Job:
    """The job as its log tells it; the log has no gap."""
    log: list[LoggedEvent] = []
    while batch := await store.events(job_id, after=log[-1].seq if log else 0):
        log += batch
    events = [event for event in log if event.kind == "job"]
    assert [event.version for event in events] == list(range(len(events)))
    return fold(a_job(job_id), [decode_event(JobEvent, event.type, event.body) for event in events[1:]])


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_what_was_acknowledged_survives_kill_9(database: str, sqlite_url: str, postgres_url: str) -> None:
    url = sqlite_url if database == "sqlite" else postgres_url
    acknowledged: dict[str, int] = {}
    for round_ in range(5):
        moment = random.randrange(8, 600)
        print(f"round {round_} is killed after {moment} acknowledgements")
        acknowledged |= killed_while_writing(url, f"r{round_}", moment)
        asyncio.run(look_after(url, acknowledged))
    if database == "sqlite":
        connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize(("failpoint", "is_there"), [("commit.submit.before", False), ("commit.submit.after", True)])
def test_a_kill_beside_a_commit_leaves_all_or_nothing(
    database: str, failpoint: str, is_there: bool, sqlite_url: str, postgres_url: str
) -> None:
    url = sqlite_url if database == "sqlite" else postgres_url
    done = subprocess.run(program("die", url, failpoint), capture_output=True, timeout=WAIT_S)
    assert done.returncode == -signal.SIGKILL, done

    async def look() -> None:
        store = await open_store(url)
        if is_there:
            assert (await store.tree(TaskId("victim-t0"))).job.id == "victim"
        else:
            with pytest.raises(NotFound):
                await store.job(JobId("victim"))
        await store.close()

    asyncio.run(look())


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_kill_while_the_schema_is_made_leaves_an_empty_database(
    database: str, sqlite_url: str, postgres_url: str
) -> None:
    url = sqlite_url if database == "sqlite" else postgres_url
    done = subprocess.run(program("die", url, "migrate.create"), capture_output=True, timeout=WAIT_S)
    assert done.returncode == -signal.SIGKILL, done
    assert not tables_in(url)
    asyncio.run(look_after(url, {}))


def tables_in(url: str) -> list[str]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        connection.close()
        return [name for (name,) in names]
    deadline = time.monotonic() + WAIT_S
    with psycopg.connect(url, autocommit=True) as connection:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while (connection.execute(others).fetchone() or (0,))[0] and time.monotonic() < deadline:
            time.sleep(0.01)  # until the server has noticed that its client is dead
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return [name for (name,) in rows]


def test_a_full_disk_refuses_clearly_corrupts_nothing_and_is_forgiven(sqlite_url: str) -> None:
    done = subprocess.run(program("fill", sqlite_url, ""), capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 0, done
    refused, readable, message = done.stdout.split(" ", 2)
    assert int(refused) > 0 and "crucible.db" in message and "make room" in message
    assert int(readable) == 41 - int(refused)

    async def look() -> None:
        store = await open_store(sqlite_url)
        found = {item.id for item in (await store.jobs(JobQuery(limit=100))).items}
        assert {"before", "after"} <= found and len(found) == int(readable) + 1
        await store.close()

    asyncio.run(look())
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_dead_server_leaves_the_file_free(sqlite_url: str) -> None:
    """The lock dies with its process."""
    killed_while_writing(sqlite_url, "r", 20)
    asyncio.run(look_after(sqlite_url, {}))


class Writers:
    """Eight of them, each at its own job, who go on whatever happens to the database."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_over = False
        self.acknowledged: dict[str, int] = {}

    async def write(self, worker: int) -> None:
        job, _ = await submitted(self._store, f"w{worker}")
        while not self._is_over:
            try:
                job, change = step(job, JobReasonChanged(NOW, "on and on"))
                await self._store.commit([change], label="step")
                self.acknowledged[job.id] = job.version
            except (StorageFailed, StaleVersion):
                job = await self._look_again(job.id)

    async def _look_again(self, job_id: JobId) -> Job:
        while True:
            try:
                return await self._store.job(job_id)
            except StorageFailed:
                await asyncio.sleep(0.01)

    async def have_advanced(self) -> None:
        seen = dict(self.acknowledged)
        async with asyncio.timeout(WAIT_S):
            while sum(self.acknowledged[id_] > seen.get(id_, 0) + 3 for id_ in self.acknowledged) < 8:
                await asyncio.sleep(0.01)

    def stop(self) -> None:
        self._is_over = True


def test_the_database_may_die_while_servers_write(postgres: Postgres, postgres_url: str) -> None:
    """The writers see errors; what they were told is written, is."""

    async def scenario() -> None:
        store = await open_store(postgres_url)
        writers = Writers(store)
        tasks = [asyncio.ensure_future(writers.write(worker)) for worker in range(8)]
        for _ in range(3):
            await writers.have_advanced()
            await asyncio.to_thread(postgres.stop, signal.SIGQUIT)
            await asyncio.to_thread(postgres.start)
        await writers.have_advanced()
        writers.stop()
        await asyncio.gather(*tasks)
        await store.close()
        await look_after(postgres_url, writers.acknowledged)

    asyncio.run(scenario())
