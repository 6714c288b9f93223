"""Batch inference while workers, machines and the server are killed: every item's output exactly once, in order."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crash.harness import World, world
from crash.points import SHARDS, die_at
from crash.server_process import until
from crash.verdict import judge
from crucible.client.package import pack
from crucible.providers.local import processes
from postgres_engine import Postgres

ITEMS, SIZE = 10_000, 50
# In small shards: so many that work is left when the last death comes, however late the first one does.
MANY = 3000
# A shard takes about a tenth of a second: quick enough for a test, slow enough to be hit in the middle.
SCRIPT = """\
import time
from crucible import train
for item in train.items():
    with item:
        time.sleep(0.001)
        if item.value % 1000 == 13:
            raise ValueError("unlucky %d" % item.value)
        item.done({"square": item.value ** 2})
"""
SPEC = """\
job:
  type: inference
  name: batch
  entrypoint: infer.py
  shards: {{count: {items}, size: {size}, workers: 3, lease: 20s}}
  retry: {{limit: 100, delay: 1s, growth: 1}}
"""
DEATHS = 8
ENDED_WITHIN_S = 180.0


@pytest.fixture(params=["sqlite", "postgres"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    url = None
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        url = server.fresh_database()
    with world(tmp_path / "world", database=url, seed=random.randrange(10**6)) as one:
        yield one


def submitted(made: World, items: int = ITEMS, size: int = SIZE) -> str:
    script = made.folder / "infer.py"
    script.write_text(SCRIPT)
    package = pack(script, "infer.py")
    try:
        with package.path.open("rb") as file:
            made.insist(lambda c: c.upload_package(package.digest, file, package.size))
    finally:
        package.path.unlink()
    spec = SPEC.format(items=items, size=size)
    return str(
        made.insist(lambda c: c.submit("batch", spec, code_digest=package.digest, idempotency_key="batch"))["id"]
    )


def counts(made: World, job_id: str) -> Any:
    return made.insist(lambda c: c.shards(job_id, limit=1))["counts"]


def check_output(made: World, job_id: str, items: int = ITEMS) -> None:
    """All of it, once, in order; and what failed, apart."""
    lines = made.insist(lambda c: b"".join(c.results(job_id))).splitlines()
    good = [n for n in range(items) if n % 1000 != 13]
    assert [json.loads(line) for line in lines] == [{"index": n, "result": {"square": n * n}} for n in good]
    errors = made.insist(lambda c: list(c.item_errors(job_id)))
    bad = [n for n in range(items) if n % 1000 == 13]
    assert errors == [{"index": n, "reason": f"ValueError: unlucky {n}"} for n in bad]


def programs(made: World) -> list[int]:
    """Processes of the user's."""
    return [pid for pid in made.leaked() if b"infer.py" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def strike(made: World, chance: random.Random) -> str:
    """One of: a worker's program, a whole machine, the server."""
    victim = chance.choice(["program", "machine", "server", "server"])
    found = programs(made)
    if victim == "server":
        made.server.kill()
        made.server.start().wait_ready()
    elif victim == "program" and found:
        kill([chance.choice(found)])
    elif found:
        machine = processes.mark_of(chance.choice(found))
        kill(processes.carriers([machine])[machine] if machine else [])
    made.disturbed()
    return victim


def test_every_item_of_ten_thousand_is_done_once_and_in_order(made: World) -> None:
    made.server.start().wait_ready()
    job_id = submitted(made)
    chance, struck = made.random, list[str]()
    until("a worker is at work", lambda: counts(made, job_id)["items_done"] > 0)
    while len(struck) < DEATHS and counts(made, job_id)["waiting"]:
        struck.append(strike(made, chance))
        before = counts(made, job_id)["items_done"]
        until(
            f"it goes on after {struck}",
            lambda seen=before: counts(made, job_id)["items_done"] > seen or not counts(made, job_id)["waiting"],
        )
        time.sleep(chance.uniform(0.0, 0.3))  # the moment of the next one, not a wait for something
    job = made.wait(job_id, {"completed", "failed", "cancelled"}, ENDED_WITHIN_S)
    assert job["status"] == "completed", (struck, job["reason"])
    assert len(struck) >= DEATHS // 2, f"it was over too soon: {struck}"
    check_output(made, job_id)
    judge(made, len(struck)).assert_good()


@pytest.mark.parametrize("made", ["sqlite"], indirect=True)
def test_a_death_around_any_lease_or_commit_costs_nothing(made: World) -> None:
    made.server.start().wait_ready()
    job_id = submitted(made, items=MANY, size=10)
    until("a worker is at work", lambda: counts(made, job_id)["items_done"] > 0)
    made.server.kill()
    for point in SHARDS:
        die_at(made, f"{point}:{1 if 'drain' in point else made.random.randint(1, 4)}")
    made.server.start().wait_ready()
    assert made.wait(job_id, {"completed", "failed", "cancelled"}, ENDED_WITHIN_S)["status"] == "completed"
    check_output(made, job_id, MANY)
    judge(made, len(SHARDS)).assert_good()
