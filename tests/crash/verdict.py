"""What must be true when everything is over, found out from outside: the witness of the jobs themselves, the log as a
client reads it, the database's own tables, the process table."""

import fcntl
import json
import os
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from crash.database import Rows, rows_of
from crash.harness import Told, World, read_witness
from crash.stories import Story
from crucible.core.job import TRANSITIONS
from crucible.model.job import JobStatus

KINDS = {"job": "jobs", "task": "tasks", "attempt": "attempts", "order": "orders", "lease": "leases", "node": "nodes"}
# What nothing may be left in: its phase is not the last one.
OPEN = {
    "jobs": "status NOT IN ('completed', 'failed', 'cancelled')",
    "tasks": "phase NOT IN ('succeeded', 'failed', 'cancelled')",
    "attempts": "phase <> 'ended'",
    "orders": "phase IN ('pending', 'unknown')",
    "leases": "phase <> 'closed'",
    "nodes": "phase <> 'retired'",
}
# What each task counts against its program, beside its attempts.
FAILURES = """
SELECT t.id, t.failures, t.phase, count(a.id) FROM tasks t
LEFT JOIN attempts a ON a.task_id = t.id AND a.outcome = 'failed' GROUP BY t.id, t.failures, t.phase
"""
STOPPED = 143  # a program that was told to stop, and did
# A row is the fold of its log: as many events as its version says, without a gap.
FOLD = """
SELECT e.id, e.version, l.n FROM {table} e LEFT JOIN (
    SELECT entity_id, count(*) AS n, min(version) AS low, max(version) AS high
    FROM events WHERE kind = '{kind}' GROUP BY entity_id
) l ON l.entity_id = e.id
WHERE l.n IS NULL OR l.n <> e.version + 1 OR l.low <> 0 OR l.high <> e.version
"""


@dataclass
class Verdict:
    kills: int
    jobs: int = 0
    machines: int = 0  # bought
    faults: int = 0  # that struck in the Lab
    leaks: list[str] = field(default_factory=list)  # machines, disks, processes
    doubles: list[str] = field(default_factory=list)  # machines beyond an order, programs that ran twice
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # jobs that ended otherwise than their programs, rows out of order
    log_gaps: list[str] = field(default_factory=list)
    billed_microusd: int = 0
    ledger_minus_invoice_microusd: int = 0
    after_the_end_microusd: int = 0  # of disks that outlived their machine: nobody tells when that ended
    recovery_p99_s: float = 0.0

    @property
    def problems(self) -> list[str]:
        money = [f"the ledger says {self.ledger_minus_invoice_microusd:+d} micro-dollars more than the invoice"]
        return [
            *self.leaks,
            *self.doubles,
            *self.lost,
            *self.wrong,
            *self.log_gaps,
            *(money if self.ledger_minus_invoice_microusd else ()),
        ]

    def assert_good(self) -> None:
        """Every problem is told, however many there are."""
        assert not self.problems, "\n".join(self.problems)

    def json(self) -> str:
        return json.dumps({name: len(v) if isinstance(v, list) else v for name, v in asdict(self).items()})


def judge(world: World, kills: int) -> Verdict:
    """Ends the world: the database is read when its server has stopped."""
    found = Verdict(kills, jobs=len(world.told), recovery_p99_s=p99(world.server.recoveries_s))
    found.lost += world.broken
    named = Counter(job["name"] for job in world.insist(lambda c: list(c.all_jobs())))
    found.doubles += [f"{name} was submitted once and is {count} jobs" for name, count in named.items() if count > 1]
    witness = read_witness(world.notes)
    for told in world.told:
        found.lost += [f"{told.story.name} is not listed"] if told.story.name not in named else []
        judge_ending(found, told, witness.get(told.story.name, []))
        judge_log(found, world, told)
        judge_checkpoints(found, world, told, witness.get(told.story.name, []))
    try:
        world.settle()
    except AssertionError as error:
        found.leaks.append(str(error))
        world.server.kill()
    found.leaks += left_alive(world)
    with rows_of(world.data, world.database) as rows:
        if world.database is None:
            assert rows("PRAGMA integrity_check") == [("ok",)]
        judge_database(found, rows)
        judge_attempts(found, world, rows, witness)
        world.judge(found, rows)
    return found


def p99(values: list[float]) -> float:
    return round(sorted(values)[int(len(values) * 0.99)] if values else 0.0, 2)


# --- what the jobs saw themselves ------------------------------------------------------------------------


def judge_ending(found: Verdict, told: Told, facts: list[dict[str, Any]]) -> None:
    story = told.story
    if told.status != story.ends:
        found.wrong.append(f"{story.name} ended {told.status} instead of {story.ends}: {told.reason}")
    found.doubles += [f"{story.name}: {f['what']} of {runs(f)}" for f in facts if f["what"] in ("overlap", "doubled")]
    starts = [runs(fact) for fact in facts if fact["what"] == "start"]
    found.doubles += [f"{story.name}: {run} started {starts.count(run)} times" for run in repeated(starts)]
    attempts = {attempt for attempt, _ in starts}
    if len(attempts) not in story.starts and not (story.is_hunted and len(attempts) >= min(story.starts)):
        found.doubles.append(f"{story.name} started {len(attempts)} attempts instead of {story.starts}: {facts}")
    succeeded = {runs(fact) for fact in facts if fact["what"] == "end" and fact["code"] == 0}
    if story.ends == "completed":
        judge_success(found, story, starts, succeeded)
    elif succeeded and not story.is_hunted:
        found.wrong.append(f"{story.name} ended {story.ends}, but {succeeded} came to their end")


def judge_success(found: Verdict, story: Story, starts: list[tuple[int, int]], succeeded: set[tuple[int, int]]) -> None:
    last = max((attempt for attempt, _ in starts), default=-1)
    if story.is_hunted:  # what came to its end on a machine that died before it could say so is run again
        succeeded = {run for run in succeeded if run[0] == last}
    attempts = {attempt for attempt, _ in succeeded}
    if len(attempts) > 1:
        found.doubles.append(f"{story.name} succeeded {len(attempts)} times")
    if len(succeeded) != story.ranks or attempts != {last}:
        found.wrong.append(f"{story.name} is completed, but of {starts} only {succeeded} came to their end")


def runs(fact: dict[str, Any]) -> tuple[int, int]:
    return fact["attempt"], fact["rank"]


def repeated(items: list[tuple[int, int]]) -> set[tuple[int, int]]:
    return {item for item in items if items.count(item) > 1}


def left_alive(world: World) -> list[str]:
    """By the process table and by locks: what lives holds one."""
    left = [f"process {pid} carries the name of a machine" for pid in world.leaked()]
    locks = [*world.notes.glob("*.alive"), *(path / "lock" for path in world.machines())]
    return left + [f"{path} is locked: its holder lives" for path in locks if is_locked(path)]


def is_locked(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


# --- what a client reads -----------------------------------------------------------------------------------


def judge_log(found: Verdict, world: World, told: Told) -> None:
    records = world.insist(lambda c: list(c.logs(told.job_id)))
    numbers: dict[tuple[int, int], list[int]] = defaultdict(list)
    printed: dict[tuple[int, int], list[str]] = defaultdict(list)
    for record in records:
        numbers[record["attempt"], record["rank"]].append(record["n"])
        if record["s"] == "out":
            printed[record["attempt"], record["rank"]].append(record["x"])
    for run, seen in numbers.items():
        if seen != list(range(len(seen))):
            found.log_gaps.append(f"{told.story.name} {run}: numbers are {seen}")
    if told.story.ends != "completed" or not numbers:
        return
    last = max(attempt for attempt, _ in numbers)
    for rank in range(told.story.ranks):
        if printed[last, rank] != told.story.lines(last, rank):
            found.log_gaps.append(f"{told.story.name} {last}/{rank}: {len(printed[last, rank])} lines, not as printed")


def judge_checkpoints(found: Verdict, world: World, told: Told, facts: list[dict[str, Any]]) -> None:
    """What was saved on a machine that died before it could say so is found by the next attempt, and never told. An
    agent that carries checkpoints elsewhere takes the newest, and storage keeps the last few."""
    expected = told.story.checkpoints()
    if not expected or told.status != "completed":
        return
    steps = sorted(checkpoint["step"] for checkpoint in world.insist(lambda c: c.checkpoints(told.job_id)))
    was_lost = told.story.is_hunted and len({fact["attempt"] for fact in facts}) > 1
    is_good = set(steps) <= set(expected) and (was_lost or steps[-1:] == expected[-1:])
    if steps != expected and not (is_good and (was_lost or world.carries_checkpoints)):
        found.wrong.append(f"{told.story.name} saved {expected}, known are {steps}")


# --- what the database holds -------------------------------------------------------------------------------


def judge_database(found: Verdict, rows: Rows) -> None:
    for table, where in OPEN.items():
        found.wrong += [f"{table}: {row[0]} is still open" for row in rows(f"SELECT id FROM {table} WHERE {where}")]
    for kind, table in KINDS.items():
        broken = rows(FOLD.format(kind=kind, table=table))
        found.wrong += [f"{kind} {row[0]} is at version {row[1]} with {row[2]} events" for row in broken]
    judge_statuses(found, rows)


def judge_attempts(found: Verdict, world: World, rows: Rows, witness: dict[str, list[dict[str, Any]]]) -> None:
    """What a program did, by its own words, is what its attempts say: a machine that went away is nobody's failure, and
    a success stands."""
    said = "SELECT j.name, a.number, a.outcome FROM attempts a JOIN jobs j ON j.id = a.job_id ORDER BY a.number"
    outcomes: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for name, number, outcome in rows(said):
        outcomes[name].append((number, outcome))
    for told in world.told:
        name, ends = told.story.name, witness.get(told.story.name, [])
        failed = {fact["attempt"] for fact in ends if fact["what"] == "end" and fact["code"] not in (0, STOPPED)}
        good = Counter(fact["attempt"] for fact in ends if fact["what"] == "end" and fact["code"] == 0)
        for number, outcome in outcomes[name]:
            is_good = good[number] == told.story.ranks
            if told.story.is_hunted and outcome == "failed" and number not in failed:
                found.wrong.append(f"{name}: attempt {number} counts as failed, its program did not fail")
            if outcome == "succeeded" and not is_good:
                found.wrong.append(f"{name}: attempt {number} counts as succeeded, {good[number]} ranks did")
            if is_good and outcome not in ("succeeded", "lost"):
                found.wrong.append(f"{name}: attempt {number} came to its end and counts as {outcome}")
    for task, failures, phase, attempts in rows(FAILURES):
        if failures + (phase == "failed") < attempts or failures > attempts:
            found.wrong.append(f"task {task} is {phase} with {failures} failures, {attempts} attempts failed")


def judge_statuses(found: Verdict, rows: Rows) -> None:
    """Every job went one legal step at a time, from its beginning to where it stands."""
    steps: dict[str, list[tuple[str | None, str]]] = defaultdict(list)
    for job_id, before, after in rows("SELECT job_id, from_status, to_status FROM job_events ORDER BY id"):
        steps[job_id].append((before, after))
    for job_id, status in rows("SELECT id, status FROM jobs"):
        chain = [after for _, after in steps[job_id]]
        starts = [None, *chain[:-1]]
        legal = all(JobStatus(b) in TRANSITIONS[JobStatus(a)] for a, b in pairwise(chain))
        if [before for before, _ in steps[job_id]] != starts or not legal or chain[-1:] != [status]:
            found.wrong.append(f"job {job_id} is {status} after {steps[job_id]}")
