"""Whoever removes what is old dies around each of its steps: the next one finishes, nothing is left half, and what was
charged is what it was."""

import asyncio
import shutil
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from crucible.model.account import Role, User
from crucible.model.ids import UserId
from crucible.ports.streams import LogLine
from crucible.testing import years
from postgres_engine import Postgres
from retention_world import memory

PROGRAM = Path(__file__).with_name("retention_program.py")
JOBS = 60
POINTS = [
    *("commit.erasure.begin.after", "commit.erasure.rows.after", "commit.erasure.end.before"),
    *("commit.removal.horizon.after", "commit.removal.mark.before", "commit.removal.mark.after"),
    *("commit.removal.streams.after", "stream.remove.after", "retention.after"),
    *("commit.removal.rows.before", "commit.removal.rows.after:2", "commit.removal.rows.after:4"),
    *("commit.removal.ran.after", "commit.removal.space.before"),
]


@dataclass
class Disk:
    url: str
    folder: Path

    def run(self, *armed: str) -> int:
        program = [sys.executable, str(PROGRAM), self.url, str(self.folder), *armed]
        return subprocess.run(program, capture_output=True, timeout=120).returncode

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        is_sqlite = self.url.startswith("sqlite")
        connection: Any = (
            sqlite3.connect(self.url.removeprefix("sqlite:///")) if is_sqlite else psycopg.connect(self.url)
        )
        try:
            with connection:
                return [tuple(row) for row in connection.execute(statement).fetchall()]
        finally:
            connection.close()

    def money(self) -> list[Any]:
        return [
            sorted(self.rows("SELECT account, sum(amount_microusd) FROM ledger GROUP BY 1")),
            self.rows("SELECT count(*), sum(amount_microusd) FROM usage"),
            sorted(self.rows("SELECT id, team, project, cost_running_microusd FROM jobs")),
        ]

    def left(self) -> dict[str, Any]:
        """What there is, but for moments and pseudonyms."""
        tables = ("tasks", "attempts", "events", "job_events", "plans", "removals", "erasures", "orders", "kept_jobs")
        counts = {table: self.rows(f"SELECT count(*) FROM {table}")[0][0] for table in tables}
        removed = self.rows("SELECT count(*) FROM jobs WHERE removed_at IS NOT NULL")
        named = self.rows("SELECT count(*) FROM jobs WHERE user_id = 'u1'")
        return {**counts, "removed": removed, "named": named, "streams": len(list((self.folder / "streams").iterdir()))}


def made(url: str, folder: Path) -> Disk:
    async def with_files() -> None:
        async with memory(url, folder) as one:
            await one.store.add_user(User(id=UserId("u1"), name="u1", role=Role.MEMBER, created_at=until))
            for number in range(0, JOBS, 3):
                task = (await one.store.job_tasks(years.job_id(number)))[0]
                line = LogLine(attempt=1, rank=0, n=0, at_ms=0, stream="out", text="hello")
                await one.streams.append_log(task.id, [line])
                stored = one.context.storage.open(one.context.storage_root.below(years.job_id(number)))
                await stored.put("0/manifests/a.json", b"{}")

    async def opened() -> None:
        async with memory(url, folder):
            pass

    until = datetime.now(UTC)
    asyncio.run(opened())
    years.fill(url, years.Years(JOBS, until - timedelta(days=3 * 365), until - timedelta(days=1)))
    asyncio.run(with_files())
    return Disk(url, folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    made(f"sqlite:///{folder}/crucible.db", folder)
    return folder


@pytest.fixture(scope="module")
def finished(original: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    disk = copied(original, tmp_path_factory.mktemp("finished"))
    assert disk.run() == 0
    return disk.left()


def copied(original: Path, target: Path) -> Disk:
    shutil.copytree(original, target, dirs_exist_ok=True)
    return Disk(f"sqlite:///{target}/crucible.db", target)


@pytest.mark.parametrize("point", POINTS)
def test_the_next_one_finishes_wherever_one_died(
    original: Path, finished: dict[str, Any], tmp_path: Path, point: str
) -> None:
    disk = copied(original, tmp_path)
    before = disk.money()
    assert disk.run(point) == -signal.SIGKILL, "the point was never reached"
    assert disk.money() == before
    assert disk.rows("PRAGMA foreign_key_check") == []
    assert disk.run() == 0
    assert disk.left() == finished
    assert disk.money() == before
    assert disk.rows("PRAGMA integrity_check") == [("ok",)]


def test_the_same_on_postgresql(postgres: Postgres, tmp_path: Path, finished: dict[str, Any]) -> None:
    disk = made(postgres.fresh_database(), tmp_path)
    before = disk.money()
    for point in ("commit.erasure.rows.after", "commit.removal.rows.before:2", "commit.removal.mark.after"):
        assert disk.run(point) == -signal.SIGKILL, point
        assert disk.money() == before
        disk.rows("DELETE FROM claims RETURNING name")  # as time would have it
    assert disk.run() == 0
    assert disk.left() == finished and disk.money() == before
