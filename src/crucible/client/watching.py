"""Staying with a job by asking again and again: until it ends, for its events, for whatever changes. Outlasts restarts
of the server. Shows nothing."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from crucible.client.errors import JobNotOver
from crucible.client.following import OnTrouble, Patience
from crucible.client.shapes import TERMINAL, JobEvent, JobView

# Quick jobs are noticed quickly, long ones are asked about rarely.
FIRST_PAUSE_S, GROWTH, LAST_PAUSE_S = 0.1, 1.3, 2.0


class Jobs(Protocol):
    """What watching needs of a client."""

    def job(self, job_id: str) -> JobView: ...
    def events(self, job_id: str, *, everything: bool = False, after: int = 0) -> list[JobEvent]: ...


class Pace:
    """How long to wait before asking again; with a limit, when to give up."""

    def __init__(self, timeout_s: float | None = None) -> None:
        self._timeout_s = timeout_s
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._pause_s = FIRST_PAUSE_S

    def news(self) -> None:
        """Something happens: ask soon again."""
        self._pause_s = FIRST_PAUSE_S

    def pause(self, job: JobView) -> float:
        """Raises JobNotOver once the limit has passed."""
        left = None if self._deadline is None else self._deadline - time.monotonic()
        if left is not None and left <= 0:
            raise JobNotOver(
                f"job {job['name']} is still {job['status']} after {self._timeout_s:g} s; it goes on", id=job["id"]
            )
        pause_s = self._pause_s
        self._pause_s = min(pause_s * GROWTH, LAST_PAUSE_S)
        return pause_s if left is None else min(pause_s, left)


def wait_for_end(
    client: Jobs, job_id: str, *, timeout_s: float | None = None, on_trouble: OnTrouble | None = None
) -> JobView:
    """The job once it is over. Raises JobNotOver after `timeout_s`."""
    pace, patience = Pace(timeout_s), Patience(on_trouble=on_trouble)
    while True:
        job = patience.insist(lambda: client.job(job_id))
        if job["status"] in TERMINAL:
            return job
        time.sleep(pace.pause(job))


def new_events(
    client: Jobs, job_id: str, *, everything: bool = False, on_trouble: OnTrouble | None = None
) -> Iterator[JobEvent]:
    """Events from the first on, as they come, until the job is over."""
    pace, patience = Pace(), Patience(on_trouble=on_trouble)
    after = 0
    while True:
        # Asked first: its last event must not be missed.
        job = patience.insist(lambda: client.job(job_id))
        found = patience.insist(partial(client.events, job_id, everything=everything, after=after))
        for event in found:
            after = max(after, event.get("seq", after))
            yield event
        if job["status"] in TERMINAL:
            return
        if found:
            pace.news()
        time.sleep(pace.pause(job))


def updates(client: Jobs, job_id: str, *, on_trouble: OnTrouble | None = None) -> Iterator[JobView]:
    """The job now, then each time that something about it has changed; the last one is over."""
    pace, patience = Pace(), Patience(on_trouble=on_trouble)
    last: JobView | None = None
    while True:
        job = patience.insist(lambda: client.job(job_id))
        if job != last:
            yield job
            last = job
        if job["status"] in TERMINAL:
            return
        time.sleep(pace.pause(job))
