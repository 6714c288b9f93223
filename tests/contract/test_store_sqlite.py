"""What only SQLite can suffer: one file, one process, one writer, one disk."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crucible.model.account import Role, User
from crucible.model.audit import AuditEntry
from crucible.model.change import born
from crucible.model.errors import Busy, InvalidRequest, PlatformError, StaleVersion, StorageFailed
from crucible.model.ids import JobId, MachineId, TokenId, UserId
from crucible.model.job import JobReasonChanged, JobSubmitted
from crucible.model.sweep import Goal
from crucible.model.task import TaskPhase
from crucible.ports.accounts import Seal
from crucible.ports.store import JobQuery, Store
from crucible.ports.trials import TaskQuery
from crucible.store import open_store
from crucible.store.writer import MAX_WAITING
from crucible.testing.specimens import NOW, a_job, running, step, submitted

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "crucible.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{path}")
    yield store
    await store.close()


# --- one process ------------------------------------------------------------------------------------------


async def test_a_second_server_on_the_file_is_refused_and_told_who_has_it(store: Store, path: Path) -> None:
    with pytest.raises(StorageFailed, match=f"in use by process {os.getpid()}.*PostgreSQL"):
        await open_store(f"sqlite:///{path}")


async def test_a_closed_file_opens_again_with_everything_in_it(path: Path) -> None:
    for number in range(3):
        store = await open_store(f"sqlite:///{path}")
        await submitted(store, f"j{number}")
        assert len((await store.jobs(JobQuery())).items) == number + 1
        await store.close()


async def test_a_closed_store_takes_no_more_writes(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    await store.close()
    with pytest.raises(StorageFailed, match="closed"):
        await submitted(store)


async def test_what_waits_is_written_before_the_store_closes(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    writes = [asyncio.ensure_future(submitted(store, f"j{number}")) for number in range(50)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*writes)
    store = await open_store(f"sqlite:///{path}")
    assert len((await store.jobs(JobQuery(limit=100))).items) == 50
    await store.close()


async def test_nobody_else_may_read_the_file(store: Store, path: Path) -> None:
    await submitted(store)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


# --- places that cannot be opened ---------------------------------------------------------------------------


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageFailed, match=r"nowhere.*does not exist"):
        await open_store(f"sqlite:///{tmp_path}/nowhere/crucible.db")


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("a diary\n" * 1000)
    with pytest.raises(StorageFailed, match="not a database"):
        asyncio.run(open_store(f"sqlite:///{path}"))
    assert path.read_text().startswith("a diary")


def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageFailed, match="cannot write"):
        asyncio.run(open_store(f"sqlite:///{path}"))


async def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"mysql.*sqlite:///path or postgresql://"):
        await open_store("mysql://here")


async def opened_and_closed(path: Path) -> None:
    await (await open_store(f"sqlite:///{path}")).close()


READ_ONLY = """
import asyncio, os, sys
from crucible.model.errors import StorageFailed
from crucible.store import open_store
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
try:
    asyncio.run(open_store(sys.argv[1]))
except StorageFailed as error:
    print(error)
"""


@pytest.mark.parametrize("has_file", [False, True])
def test_a_read_only_folder_is_a_clear_error(path: Path, has_file: bool) -> None:
    if has_file:
        asyncio.run(opened_and_closed(path))
    for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o055)
    path.parent.chmod(0o555)
    for file in path.parent.iterdir():
        file.chmod(0o444)
    done = subprocess.run([sys.executable, "-c", READ_ONLY, f"sqlite:///{path}"], capture_output=True, text=True)
    assert "cannot write" in done.stdout and "ermission" in done.stdout, done


# --- the writer -----------------------------------------------------------------------------------------------


async def test_a_write_that_fails_takes_no_other_of_its_group_along(store: Store) -> None:
    job, _ = await submitted(store)
    _, change = step(job, JobReasonChanged(NOW, "first"))
    waves: list[Awaitable[Any]] = [store.commit([change], label="test") for _ in range(10)]
    waves += [submitted(store, f"other-{number}") for number in range(10)]
    results = await asyncio.gather(*waves, return_exceptions=True)
    assert [type(result) for result in results[:10]].count(StaleVersion) == 9
    assert all(isinstance(result, tuple) for result in results[10:])
    assert len((await store.jobs(JobQuery())).items) == 11


class Thrown(BaseException):
    """Not an Exception: nobody in between may catch it."""


@pytest.mark.parametrize("url", ["sqlite://", "file"])
@pytest.mark.parametrize(("place", "is_written"), [("before", False), ("after", True)])
async def test_a_failpoint_may_raise_on_either_side_of_a_commit(
    url: str, place: str, is_written: bool, path: Path
) -> None:
    def failpoint(name: str) -> None:
        if name == f"commit.submit.{place}":
            raise Thrown(name)

    store = await open_store(url if url != "file" else f"sqlite:///{path}", failpoint=failpoint)
    with pytest.raises(Thrown):
        await submitted(store)
    assert bool((await store.jobs(JobQuery())).items) is is_written
    await store.add_user(User(id=a_job().user_id, name="ann", role=Role.ADMIN, created_at=NOW))
    await store.close()


async def test_a_queue_that_grows_without_end_says_busy(path: Path) -> None:
    stuck = threading.Event()

    def failpoint(name: str) -> None:
        if name.startswith("commit."):
            stuck.wait(60)

    store = await open_store(f"sqlite:///{path}", failpoint=failpoint)
    try:
        writes = [asyncio.ensure_future(store.heard([], [])) for _ in range(MAX_WAITING + 300)]
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="waiting for the disk"):
            await store.heard([], [])
    finally:
        stuck.set()
    refused = [result for result in await asyncio.gather(*writes, return_exceptions=True) if result is not None]
    assert len(refused) <= 300 and all(isinstance(result, Busy) for result in refused)
    await store.close()


async def test_a_caller_that_gives_up_does_not_disturb_the_writer(store: Store) -> None:
    writes = [asyncio.ensure_future(submitted(store, f"j{number}")) for number in range(20)]
    await asyncio.sleep(0)
    for write in writes[::2]:
        write.cancel()
    await asyncio.gather(*writes, return_exceptions=True)
    await submitted(store, "after")
    assert {"j1", "j19", "after"} <= {item.id for item in (await store.jobs(JobQuery())).items}


# --- rules in the file itself ------------------------------------------------------------------------------------


async def test_the_file_refuses_to_forget_or_to_wake_the_dead(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    await running(store)
    await store.close()
    connection = sqlite3.connect(path)
    for statement in (
        "UPDATE events SET body = '{}'",
        "DELETE FROM events",
        "UPDATE job_events SET reason = 'x'",
        "DELETE FROM job_events",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.execute("UPDATE jobs SET status = 'failed'")
    with pytest.raises(sqlite3.IntegrityError, match="terminal"):
        connection.execute("UPDATE jobs SET status = 'running'")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        connection.execute("UPDATE tasks SET phase = 'asleep'")
    connection.close()


async def test_dollars_are_there_for_people_who_read_the_tables(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    await submitted(store)
    await store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT budget_usd, cost_running_usd, cost_estimated_usd FROM jobs").fetchall() == [
        (12.345678, 0, None)
    ]
    connection.close()


# --- every list has its index ----------------------------------------------------------------------------------------


async def test_no_query_reads_a_whole_table(path: Path) -> None:
    """Users and tokens are listed whole; everything else must not slow down as history grows."""
    store = await open_store("sqlite://")
    family = await running(store)
    statements: list[str] = []
    connection: sqlite3.Connection = store._runner._connection  # type: ignore[attr-defined]
    connection.set_trace_callback(statements.append)
    job, task, node = family.job.id, family.task.id, family.nodes[0].id
    calls: list[Callable[[], Awaitable[Any]]] = [
        *(lambda query=query: store.jobs(query) for query in job_queries()),
        lambda: store.tree(task),
        lambda: store.waiting(NOW, 10, without=[task]),
        lambda: store.due(NOW, 10),
        lambda: store.tally(job),
        lambda: store.node_work(node),
        lambda: store.usage(job),
        lambda: store.progress(job),
        lambda: store.events(job),
        lambda: store.artifacts(job),
        lambda: store.checkpoints(job),
        lambda: store.job_attempts(job),
        lambda: store.job_leases(job),
        lambda: store.job_orders(job),
        lambda: store.job_tasks(job),
        lambda: store.unfinished_tasks(job),
        lambda: store.crewed(NOW),
        lambda: store.crews(job),
        lambda: store.seated(job, NOW, 10),
        lambda: store.waiting_tasks(job, 10),
        lambda: store.tasks_at_work(job),
        lambda: store.stranded(10),
        lambda: store.open_leases("fake"),
        lambda: store.open_orders("fake"),
        lambda: store.open_leases("fake", "here-1"),
        lambda: store.usages("fake", [MachineId("m")]),
        lambda: store.open_usages("fake", "here-1"),
        lambda: store.job_usages(job),
        lambda: store.job_postings(job),
        lambda: store.job_costs([job]),
        lambda: store.open_usages_of([job]),
        lambda: store.cooldowns(NOW),
        lambda: store.spot_lives(NOW, NOW),
        lambda: store.newest_step(job, 0),
        lambda: store.task_progress(task),
        *(lambda query=query: store.task_page(query) for query in task_queries(job)),
        lambda: store.trial_counts(job),
        lambda: store.job_progress(job),
        lambda: store.tries(job),
        lambda: store.tasks_between(job, 0, 9),
        lambda: store.sweeping(),
        lambda: store.tried(job, Goal.MAXIMIZE, 10),
        lambda: store.curves(job, NOW),
        lambda: store.running_trials(job),
        lambda: store.run_times(job),
        lambda: store.newest_checkpoint(job, 0),
        lambda: store.segments("x"),
    ]
    for call in calls:
        await call()
    connection.set_trace_callback(None)
    for statement in statements:
        for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
            assert not detail.startswith("SCAN") or is_harmless(detail), (detail, statement)
    await store.close()


def is_harmless(detail: str) -> bool:
    """A scan along an index of what is still open, of an index in the order of the answer, or of a result in memory."""
    words = detail.split()
    return words[1] in ("late", "due", "json_each") or words[1].startswith("anon") or "INDEX" in words


def job_queries() -> list[JobQuery]:
    job = a_job()
    cursor = "MTc2NzI2ODgwMDEyMzQ1NiBqMQ=="
    return [
        JobQuery(),
        JobQuery(cursor=cursor),
        JobQuery(status=frozenset({job.status})),
        JobQuery(user_id=job.user_id, cursor=cursor),
        JobQuery(name=job.name),
    ]


def task_queries(job: JobId) -> list[TaskQuery]:
    cursor = "WzAsIDAuMCwgMF0="
    return [
        TaskQuery(job_id=job),
        TaskQuery(job_id=job, cursor=cursor),
        TaskQuery(job_id=job, phases=frozenset({TaskPhase.FAILED})),
        TaskQuery(job_id=job, best_first=Goal.MINIMIZE, cursor=cursor),
    ]


async def test_the_wrong_kind_of_number_is_the_callers_error(store: Store) -> None:
    with pytest.raises(PlatformError, match="does not fit"):
        await store.submit([born(a_job(gpus=2**70), JobSubmitted(NOW))], idempotency_key=None, user_id=a_job().user_id)


# --- the log of changes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forgery",
    [
        'UPDATE audit SET details = \'{"role":"viewer"}\' WHERE seq = 3',
        "UPDATE audit SET user_id = 'eve' WHERE seq = 3",
        "DELETE FROM audit WHERE seq = 3",
        "UPDATE audit SET digest = (SELECT digest FROM audit WHERE seq = 2) WHERE seq = 3",
    ],
)
async def test_a_line_that_was_altered_or_removed_by_hand_is_found(path: Path, forgery: str) -> None:
    store = await open_store(f"sqlite:///{path}")
    for number in range(6):
        entry = AuditEntry(
            at=NOW,
            user_id=UserId("ann"),
            token_id=TokenId("t"),
            action=f"a{number}",
            subject="s",
            details={"role": "admin"},
        )
        await store.commit((), [entry], label="test")
    assert (await store.check_audit(Seal())).broken is None
    await store.close()
    with sqlite3.connect(path) as connection:
        with pytest.raises(sqlite3.DatabaseError, match="append-only"):
            connection.execute(forgery)
        for verb in ("update", "delete"):  # somebody who can do that can do anything, but not unnoticed
            connection.execute(f"DROP TRIGGER audit_no_{verb}")
        connection.execute(forgery)
    connection.close()
    store = await open_store(f"sqlite:///{path}")
    assert (await store.check_audit(Seal())).broken in (3, 4)
    await store.close()
