"""Why a job is as it is."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible why resnet50"))
@job_argument
@with_output
def why(out: Out, job: str) -> None:
    """Why a job is in the state it is in, and what to do about it."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.reasons import explain

    with connect(out) as client:
        job_id = find_job(client, job)
        view, attempts, waits = client.job(job_id), client.attempts(job_id), client.why(job_id)
    said = explain(view, attempts, waits)
    out.show({"id": job_id, "status": view["status"], **said._asdict()}, said.lines)
