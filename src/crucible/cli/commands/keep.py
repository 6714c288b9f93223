"""Jobs that stay, however old they get."""

import click

from crucible.cli import exits
from crucible.cli.options import example, jobs_argument, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible keep resnet50", "crucible keep", "crucible unkeep resnet50"))
@click.argument("jobs", metavar="[JOB...]", nargs=-1)
@with_output
def keep(out: Out, jobs: tuple[str, ...]) -> int:
    """Keep jobs however old they get; without a JOB, list them.

    Their logs, history, plans and outputs stay until `crucible unkeep`."""
    if jobs:
        return _each(out, jobs, is_kept=True)
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.retention import kept_table

    with connect(out) as client:
        found = client.kept_jobs()
    out.show({"items": found}, lambda: kept_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("no job is kept: crucible keep JOB")
    return exits.OK


@click.command(epilog=example("crucible unkeep resnet50"))
@jobs_argument
@with_output
def unkeep(out: Out, jobs: tuple[str, ...]) -> int:
    """Let kept jobs go when they are old."""
    return _each(out, jobs, is_kept=False)


def _each(out: Out, jobs: tuple[str, ...], *, is_kept: bool) -> int:
    from crucible.cli.session import connect, find_job

    with connect(out) as client:
        changed = [client.keep(find_job(client, job), is_kept=is_kept) for job in jobs]
    word = "kept" if is_kept else "no longer kept"
    out.show({"items": changed}, lambda: [f"{word}: {one['id']}" for one in changed])
    return exits.OK
