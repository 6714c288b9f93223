"""Staying with a job until it ends: its events, its log, or just its end. The job never notices."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from crucible.cli import exits
from crucible.cli.logprint import LogPrinter
from crucible.cli.output import Out
from crucible.cli.step_logs import StepLogs
from crucible.cli.views.events import what
from crucible.client.api import Client
from crucible.client.shapes import JobView, LogRecord
from crucible.client.watching import new_events, wait_for_end
from crucible.model.errors import PlatformError

__all__ = ["count_ranks", "follow", "leaving", "new_events", "wait_for_end"]

# The newest events after a job's end are at most one poll away.
NARRATOR_ENDS_WITHIN_S = 10.0


def follow(out: Out, connect: Callable[[], Client], job_id: str, *, is_told: bool = True) -> JobView:
    """The log on stdout and, if `is_told`, each change of status on stderr, until the job is over."""
    with connect() as client, connect() as second:
        narrator = threading.Thread(target=_narrate, args=(second, job_id, out), daemon=True)
        if is_told and not out.quiet:
            narrator.start()
        _print_log(out, client, job_id)
        job = wait_for_end(client, job_id, on_trouble=out.trouble)
        if narrator.is_alive():
            narrator.join(NARRATOR_ENDS_WITHIN_S)
        return job


def _print_log(out: Out, client: Client, job_id: str) -> None:
    def show(of_job: str, records: Iterator[LogRecord]) -> None:
        printer = LogPrinter(out, ranks=lambda: count_ranks(client, of_job), is_live=True)
        for record in records:
            printer.print(record)
        printer.end()

    job = client.job(job_id)
    if job.get("steps"):
        StepLogs(out, client, job_id).print(show, is_followed=True)
        return
    if job["execution_mode"] == "multi_task" and len(client.tasks(job_id, limit=2)["items"]) > 1:
        out.note(f"this is the log of task 0; another one's: crucible logs -f {job['name']} --task N")
    show(job_id, client.logs(job_id, follow=True, on_trouble=out.trouble))


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
