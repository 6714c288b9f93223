"""The history of a job."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible events resnet50", "crucible events b6b0d3d6 --all -f"))
@job_argument
@click.option("--all", "everything", is_flag=True, help="Also of its tasks, attempts, leases and nodes.")
@click.option("-f", "--follow", is_flag=True, help="Stay until the job has ended.")
@with_output
def events(out: Out, job: str, everything: bool, follow: bool) -> None:
    """What happened to a job, and when."""
    from crucible.cli.session import connect, find_job
    from crucible.cli.views.events import event_line, event_lines
    from crucible.cli.watching import leaving, new_events

    with connect(out) as client:
        job_id = find_job(client, job)
        if not follow:
            found = client.events(job_id, everything=everything)
            out.show({"items": found}, lambda: event_lines(found))
            return
        with leaving(out, job_id):
            for event in new_events(client, job_id, everything=everything, on_trouble=out.trouble):
                out.record(event) if out.is_for_programs else out.live(event_line(event) + "\n")
