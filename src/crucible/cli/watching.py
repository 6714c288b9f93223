"""Staying with a job until it ends: its events, its log, or just its end. The job never notices."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import click

from crucible.cli import exits
from crucible.cli.logprint import LogPrinter
from crucible.cli.output import Out
from crucible.cli.views.events import what
from crucible.client.api import TERMINAL, Client
from crucible.client.errors import JobNotOver
from crucible.client.following import OnTrouble, Patience
from crucible.client.shapes import JobEvent, JobView
from crucible.model.errors import PlatformError

# Quick jobs are noticed quickly, long ones are asked about rarely.
FIRST_PAUSE_S, GROWTH, LAST_PAUSE_S = 0.1, 1.3, 2.0
# The newest events after a job's end are at most one poll away.
NARRATOR_ENDS_WITHIN_S = 10.0


def wait_for_end(
    client: Client, job_id: str, *, timeout_s: float | None = None, on_trouble: OnTrouble | None = None
) -> JobView:
    """The job once it is over. Raises JobNotOver after `timeout_s`."""
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    patience = Patience(on_trouble=on_trouble)
    pause = FIRST_PAUSE_S
    while True:
        job = patience.insist(lambda: client.job(job_id))
        if job["status"] in TERMINAL:
            return job
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise JobNotOver(f"job {job['name']} is still {job['status']} after {timeout_s:g} s; it goes on", id=job_id)
        time.sleep(pause if left is None else min(pause, left))
        pause = min(pause * GROWTH, LAST_PAUSE_S)


def new_events(
    client: Client, job_id: str, *, everything: bool = False, on_trouble: OnTrouble | None = None
) -> Iterator[JobEvent]:
    """Events from the first on, as they come, until the job is over."""
    patience = Patience(on_trouble=on_trouble)
    after = 0
    pause = FIRST_PAUSE_S
    while True:
        is_over = patience.insist(lambda: client.is_over(job_id))  # asked first: its last event must not be missed
        found = patience.insist(partial(client.events, job_id, everything=everything, after=after))
        for event in found:
            after = max(after, event.get("seq", after))
            yield event
        if is_over:
            return
        pause = FIRST_PAUSE_S if found else min(pause * GROWTH, LAST_PAUSE_S)
        time.sleep(pause)


def follow(out: Out, connect: Callable[[], Client], job_id: str, *, is_told: bool = True) -> JobView:
    """The log on stdout and, if `is_told`, each change of status on stderr, until the job is over."""
    with connect() as client, connect() as second:
        narrator = threading.Thread(target=_narrate, args=(second, job_id, out), daemon=True)
        if is_told and not out.quiet:
            narrator.start()
        printer = LogPrinter(out, ranks=lambda: count_ranks(client, job_id), is_live=True)
        for record in client.logs(job_id, follow=True, on_trouble=out.trouble):
            printer.print(record)
        printer.end()
        job = wait_for_end(client, job_id, on_trouble=out.trouble)
        if narrator.is_alive():
            narrator.join(NARRATOR_ENDS_WITHIN_S)
        return job


@contextmanager
def leaving(out: Out, job_id: str) -> Iterator[None]:
    """Ctrl-C within it leaves the job alone and says how to come back."""
    try:
        yield
    except KeyboardInterrupt:
        out.warn(
            "\ndetached; the job goes on\n"
            f"  come back: crucible logs -f {job_id}\n"
            f"  stop it:   crucible cancel {job_id}"
        )
        raise click.exceptions.Exit(exits.INTERRUPTED) from None


def count_ranks(client: Client, job_id: str) -> int:
    return max((len(attempt.get("ranks", [])) for attempt in client.attempts(job_id)), default=1)


def _narrate(client: Client, job_id: str, out: Out) -> None:
    try:
        for event in new_events(client, job_id):
            reason = event.get("reason")
            out.note(f"» {what(event)}" + (f": {reason}" if reason else ""))
    except (PlatformError, OSError):
        pass  # whoever reads the log says what is wrong with the server, or that nobody listens
