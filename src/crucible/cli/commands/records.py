"""What a job has left behind."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible artifacts resnet50"))
@job_argument
@with_output
def artifacts(out: Out, job: str) -> None:
    """Files a job has left behind: checkpoints, logs, outputs."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.records import artifact_table

    with connect(out) as client:
        found = client.artifacts(find_job(client, job))
    out.show({"items": found}, lambda: artifact_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("nothing yet")
