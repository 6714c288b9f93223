"""What a job wrote."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, job_argument, task_option, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crucible.client.api import Client
    from crucible.client.shapes import LogRecord


def since_when(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The moment meant by a time or by how long ago: 90s, 10m, 2h, 1d, 2026-01-17T10:00:00Z."""
    if value is None:
        return None
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    try:
        if value[-1:] in units:
            return (datetime.now(UTC) - timedelta(**{units[value[-1]]: float(value[:-1])})).isoformat()
        return datetime.fromisoformat(value).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        wrong = f"{value!r} is neither a duration like 10m nor a time like 2026-01-17T10:00:00Z"
        raise click.BadParameter(wrong, ctx, param) from None


@click.command(
    epilog=example(
        "crucible logs -f resnet50",
        "crucible logs b6b0d3d6 --tail 50",
        "crucible logs b6b0d3d6 --previous",
        "crucible logs nightly --step train",
        "crucible logs ring-sweep --task 11",
    )
)
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Stay until the job has ended; Ctrl-C leaves it running.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Begin with the last N lines.")
@click.option("--since", callback=since_when, metavar="TIME", help="Begin at that time, or so long ago: 10m, 2h.")
@click.option("--rank", type=click.IntRange(0), metavar="N", help="Only that rank.")
@click.option("--attempt", type=click.IntRange(0), metavar="N", help="Only that attempt; the first is 0.")
@click.option("--previous", is_flag=True, help="Only the attempt before the newest.")
@task_option
@click.option("--step", metavar="NAME", help="Of a workflow: only that step; otherwise one after the other.")
@click.option("--timestamps", is_flag=True, help="Begin each line with its time.")
@with_output
def logs(
    out: Out,
    job: str,
    follow: bool,
    tail: int | None,
    since: str | None,
    rank: int | None,
    attempt: int | None,
    previous: bool,
    task: int | None,
    step: str | None,
    timestamps: bool,
) -> None:
    """Print or follow what a job wrote.

    A line that begins with "crucible:" is the agent's, not the job's. With several ranks, each begins with its rank.
    """
    from crucible.cli.logprint import LogPrinter
    from crucible.cli.session import connect, find_job
    from crucible.cli.step_logs import StepLogs
    from crucible.cli.watching import count_ranks, leaving

    if previous and attempt is not None:
        raise click.UsageError("--previous and --attempt exclude each other")
    with connect(out) as client:

        def show(of_job: str, records: "Iterator[LogRecord]") -> None:
            ranks = (lambda: 1) if rank is not None else (lambda: count_ranks(client, of_job))
            printer = LogPrinter(out, ranks=ranks, has_times=timestamps, is_live=follow)
            for record in records:
                out.record(record) if out.is_for_programs else printer.print(record)
            printer.end()

        job_id = find_job(client, job)
        steps = StepLogs(out, client, job_id)
        if step is None and _is_workflow(client, job_id, tail, since, rank, attempt, previous, task):
            with leaving(out, job_id):
                steps.print(show, is_followed=follow)
            return
        job_id = job_id if step is None else steps.job_of(step)
        wanted = _previous(client, job_id) if previous else attempt
        with leaving(out, job_id):
            show(
                job_id,
                client.logs(
                    job_id,
                    follow=follow,
                    tail=tail,
                    since=since,
                    rank=rank,
                    attempt=wanted,
                    task=task,
                    on_trouble=out.trouble,
                ),
            )


def _is_workflow(client: "Client", job_id: str, *options: object) -> bool:
    from crucible.model.errors import InvalidRequest

    if not client.job(job_id).get("steps"):
        return False
    if any(option not in (None, False) for option in options):
        raise InvalidRequest(f"job {job_id} is a workflow: say which step's log is meant, with --step NAME")
    return True


def _previous(client: "Client", job_id: str) -> int:
    from crucible.model.errors import NotFound

    numbers = sorted(attempt.get("number", 0) for attempt in client.attempts(job_id))
    if len(numbers) < 2:
        raise NotFound(f"job {job_id} has had no attempt before this one", hint="leave out --previous")
    return numbers[-2]
