"""A job's state in words: what it waits for or how it ended, and the command that goes on from there."""

import signal
from collections.abc import Sequence
from typing import NamedTuple

from crucible.cli.table import printable
from crucible.cli.wording import clock
from crucible.client.shapes import Attempt, JobView, Rank, WaitingTask, Why

_WAITS = {
    "pending": "waits for a place to run",
    "scheduled": "has a place; machines are being ordered",
    "provisioning": "waits for its machines to report",
    "running": "is running",
    "checkpointing": "is writing a checkpoint",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "was cancelled",
}


class Explanation(NamedTuple):
    what: str
    reason: str
    details: list[str]
    next: list[str]

    def lines(self) -> list[str]:
        first = f"{self.what}: {self.reason}" if self.reason else self.what
        shown = [printable(first), *(f"  {printable(line)}" for line in self.details)]
        return [*shown, *(f"→ {line}" for line in self.next)]


def explain(job: JobView, attempts: Sequence[Attempt], waits: Why) -> Explanation:
    state = _WAITS.get(job["status"], job["status"])
    if is_held(job):
        state = "is held"
    reason = job.get("reason") or ""
    details = [_task(task) for task in waits.get("tasks", []) if task.get("reason") not in (None, "", reason)]
    if job["status"] != "completed":
        details += [line for attempt in attempts[-1:] for line in _ranks(attempt)]
    return Explanation(f"{job['name']} {state}", reason, details, _next(job))


def is_held(job: JobView) -> bool:
    return job.get("desired") == "hold" and job["status"] not in ("completed", "failed", "cancelled")


def _task(task: WaitingTask) -> str:
    later = task.get("not_before")
    return f"{task.get('reason')}" + (f", not before {clock(later)}" if later else "")


def _ranks(attempt: Attempt) -> list[str]:
    ended = [rank for rank in attempt.get("ranks", []) if rank.get("state") == "exited" and rank.get("exit_code") != 0]
    return [f"attempt {attempt.get('number')}, rank {rank.get('rank')} {how_it_ended(rank)}" for rank in ended]


def how_it_ended(rank: Rank) -> str:
    number = rank.get("signal")
    if number is not None:
        return f"was killed by {signal_name(number)}" + (f" ({rank['reason']})" if rank.get("reason") else "")
    if rank.get("exit_code") is None:
        return f"ended: {rank.get('reason') or 'nobody knows how'}"
    return f"exited with {rank.get('exit_code')}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _next(job: JobView) -> list[str]:
    job_id = job["id"]
    if is_held(job):
        return [f"crucible release {job_id}"]
    return {
        "running": [f"crucible logs -f {job_id}"],
        "checkpointing": [f"crucible logs -f {job_id}"],
        "failed": [f"crucible logs {job_id} --tail 50", f"crucible resume {job_id}    (or retry)"],
        "cancelled": [f"crucible resume {job_id}    (or retry)"],
        "completed": [f"crucible artifacts {job_id}"],
    }.get(job["status"], [f"crucible events {job_id} -f"])
