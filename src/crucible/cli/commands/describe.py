"""One job in full."""

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out

# The newest events: what usually explains the state. `crucible events` has them all.
EVENTS = 10


@click.command(epilog=example("crucible describe resnet50", "crucible describe b6b0d3d6 -o json"))
@job_argument
@with_output
def describe(out: Out, job: str) -> None:
    """Everything about one job: state, place, cost, attempts, newest events."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.events import event_lines
    from crucible.cli.views.jobs import job_page

    with connect(out) as client:
        job_id = find_job(client, job)
        view, attempts, events = client.job(job_id), client.attempts(job_id), client.events(job_id)

    def draw() -> list[str]:
        page = job_page(view, attempts, datetime.now(UTC), out.status)
        return [*page, "", "Events:", *(f"  {line}" for line in event_lines(events[-EVENTS:]))]

    out.show({**view, "attempts": attempts, "events": events}, draw)
