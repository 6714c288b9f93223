"""Waiting for a job."""

import click

from crucible.cli import exits
from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible wait resnet50 && ./deploy", "crucible wait b6b0d3d6 --timeout 3600"))
@job_argument
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Give up after that; exit code 8.")
@with_output
def wait(out: Out, job: str, timeout: float | None) -> int:
    """Wait for a job; the exit code says how it ended.

    0 completed, 100 failed, 103 cancelled, 8 still running when the time was up. The job does not mind.
    """
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.accuracy import against_estimate
    from crucible.cli.watching import leaving, wait_for_end

    with connect(out) as client:
        job_id = find_job(client, job)
        with leaving(out, job_id):
            ended = wait_for_end(client, job_id, timeout_s=timeout, on_trouble=out.trouble)
    reason = f": {ended['reason']}" if ended.get("reason") else ""
    out.show(ended, lambda: [] if out.quiet else [f"{ended['name']} {out.status(ended['status'])}{reason}"])
    if not out.is_for_programs and (compared := against_estimate(ended)):
        out.note(compared)
    return exits.of_job(ended["status"])
