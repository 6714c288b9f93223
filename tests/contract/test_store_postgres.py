"""What only PostgreSQL can suffer: other servers on the same database, and a database that goes away."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from crucible.model.errors import InvalidRequest, StaleClaim, StaleVersion, StorageFailed
from crucible.model.ids import JobId
from crucible.model.job import JobReasonChanged
from crucible.model.task import TaskEnded, TaskPhase
from crucible.ports.store import JobQuery, Store
from crucible.store import open_store
from crucible.testing.specimens import NOW, running, step, submitted
from postgres_engine import Postgres

pytestmark = pytest.mark.anyio

TTL = timedelta(seconds=30)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[tuple[Store, Store]]:
    """Two servers on one database."""
    one, two = await open_store(postgres_url), await open_store(postgres_url)
    yield one, two
    await one.close()
    await two.close()


# --- several servers -----------------------------------------------------------------------------------------


async def test_servers_that_start_together_make_one_schema(postgres_url: str) -> None:
    stores = await asyncio.gather(*(open_store(postgres_url) for _ in range(6)))
    await submitted(stores[0])
    assert [len((await store.jobs(JobQuery())).items) for store in stores] == [1] * 6
    for store in stores:
        await store.close()


async def test_a_claim_holds_between_servers(stores: tuple[Store, Store]) -> None:
    one, two = stores
    claims = await asyncio.gather(*(store.claim("cycle", f"w{n}", TTL) for n, store in enumerate((one, two) * 8)))
    assert len([claim for claim in claims if claim]) == 1


async def test_a_server_that_slept_past_its_claim_writes_nothing(stores: tuple[Store, Store]) -> None:
    one, two = stores
    job, _ = await submitted(one)
    slept = await one.claim("task", "one", timedelta(milliseconds=20))
    async with asyncio.timeout(10):
        while await two.claim("task", "two", TTL) is None:
            await asyncio.sleep(0.005)
    _, change = step(job, JobReasonChanged(NOW, "late"))
    with pytest.raises(StaleClaim):
        await one.commit([change], label="test", claim=slept)
    assert await two.job(job.id) == job


async def test_nobody_takes_a_claim_in_the_middle_of_a_commit_under_it(stores: tuple[Store, Store]) -> None:
    """Whoever commits under a claim and whoever takes it follow one another; both cannot win."""
    one, two = stores
    job, _ = await submitted(one)
    for _ in range(20):
        mine = await one.claim("task", "one", timedelta(0))
        assert mine is not None
        seen = await one.job(job.id)
        _, change = step(seen, JobReasonChanged(NOW, "x"))
        wrote, theirs = await asyncio.gather(
            one.commit([change], label="test", claim=mine), two.claim("task", "two", TTL), return_exceptions=True
        )
        assert wrote is None or isinstance(wrote, StaleClaim)
        assert theirs is not None and not isinstance(theirs, BaseException)
        assert (await two.job(job.id)).version == seen.version + (wrote is None)
        await two.release(theirs)


async def test_of_two_servers_that_decide_about_one_row_one_wins(stores: tuple[Store, Store]) -> None:
    job, _ = await submitted(stores[0])
    changes = [step(job, JobReasonChanged(NOW, str(n)))[1] for n in range(16)]
    results = await asyncio.gather(
        *(stores[n % 2].commit([change], label="test") for n, change in enumerate(changes)), return_exceptions=True
    )
    assert [type(result) for result in results].count(StaleVersion) == 15


async def test_a_reader_misses_no_line_that_another_server_writes(stores: tuple[Store, Store]) -> None:
    one, two = stores
    job, tasks = await submitted(one, tasks=60)
    writers = asyncio.gather(
        *(
            stores[n % 2].commit([step(task, TaskEnded(NOW, TaskPhase.SUCCEEDED, None))[1]], label="test")
            for n, task in enumerate(tasks)
        )
    )
    seen: list[int] = []
    while True:
        is_last = writers.done()
        batch = await one.events(job.id, after=seen[-1] if seen else 0)
        seen += [event.seq for event in batch]
        if is_last and not batch:
            break
    assert seen == [event.seq for event in await two.events(job.id)]
    assert len(seen) == 121


# --- a database that goes away ---------------------------------------------------------------------------------


async def test_a_restart_of_the_database_costs_nothing_that_was_acknowledged(
    stores: tuple[Store, Store], postgres: Postgres
) -> None:
    one, _ = stores
    await asyncio.gather(*(submitted(one, f"j{n}") for n in range(20)))
    await asyncio.to_thread(postgres.stop, signal.SIGQUIT)
    try:
        with pytest.raises(StorageFailed, match="cannot reach PostgreSQL"):
            await one.job(JobId("j1"))
        with pytest.raises(StorageFailed, match="cannot reach PostgreSQL"):
            await submitted(one, "meanwhile")
    finally:
        await asyncio.to_thread(postgres.start)
    assert len((await one.jobs(JobQuery())).items) == 20
    await submitted(one, "after")


@pytest.mark.parametrize("how", [signal.SIGQUIT, signal.SIGINT])
async def test_connections_that_died_unnoticed_are_replaced(
    stores: tuple[Store, Store], postgres: Postgres, how: signal.Signals
) -> None:
    """The pool is full of connections to a server that is no more; nobody is to see an error for it."""
    for store in stores:
        await asyncio.gather(*(submitted(store, f"{id(store)}-{n}") for n in range(16)))
    await asyncio.to_thread(postgres.stop, how)
    await asyncio.to_thread(postgres.start)
    reader, writer = stores
    reads = [reader.jobs(JobQuery()) for _ in range(16)]
    writes = [submitted(writer, f"after-{n}") for n in range(16)]
    await asyncio.gather(*reads, *writes)


def script(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)


FIRST_TIME_ONLY = """
CREATE SEQUENCE times;
CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('times') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    RETURN NEW;
END $$;
"""


async def test_a_connection_lost_before_the_commit_costs_a_second_try(
    stores: tuple[Store, Store], postgres_url: str
) -> None:
    script(postgres_url, FIRST_TIME_ONLY + "CREATE TRIGGER die AFTER INSERT ON events EXECUTE FUNCTION die()")
    family = await running(stores[0])
    assert await stores[1].job(family.job.id) == family.job


async def test_a_connection_lost_in_the_commit_is_an_unknown_outcome(
    stores: tuple[Store, Store], postgres_url: str
) -> None:
    trigger = "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON events DEFERRABLE INITIALLY DEFERRED FOR EACH ROW"
    script(postgres_url, FIRST_TIME_ONLY + f"{trigger} EXECUTE FUNCTION die()")
    with pytest.raises(StorageFailed, match="look whether it was written") as caught:
        await submitted(stores[0])
    assert caught.value.details["outcome"] == "unknown"
    await submitted(stores[0], "again")


async def test_an_unreachable_database_is_named_without_its_password() -> None:
    with pytest.raises(StorageFailed, match="cannot reach PostgreSQL") as caught:
        await open_store("postgresql://ann:hunter2@127.0.0.1:1/crucible")
    assert "hunter2" not in str(caught.value)


async def test_a_value_that_fits_nowhere_is_the_callers_error(stores: tuple[Store, Store]) -> None:
    with pytest.raises(InvalidRequest, match="does not fit"):
        await submitted(stores[0], gpus=2**70)
    with pytest.raises(InvalidRequest, match="does not fit"):
        await stores[0].job(JobId("nul\0"))


# --- rules in the database itself ---------------------------------------------------------------------------------


async def test_the_database_refuses_to_forget_or_to_wake_the_dead(
    stores: tuple[Store, Store], postgres_url: str
) -> None:
    await running(stores[0])
    for statement in ("UPDATE events SET body = '{}'", "DELETE FROM job_events", "TRUNCATE events CASCADE"):
        with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
            script(postgres_url, statement)
    script(postgres_url, "UPDATE jobs SET status = 'failed'")
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="terminal"):
        script(postgres_url, "UPDATE jobs SET status = 'running'")


WITHOUT_DRIVER = """
import asyncio, sys
sys.modules["psycopg"] = None
from crucible.model.errors import StorageFailed
from crucible.store import open_store
try:
    asyncio.run(open_store("postgresql://localhost/x"))
except StorageFailed as error:
    print(error)
"""


def test_a_missing_driver_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_DRIVER], capture_output=True, text=True)
    assert "pip install 'crucible[postgres]'" in done.stdout, done
