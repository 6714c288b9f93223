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
    from crucible.cli.views.workflows import step_table

    with connect(out) as client:
        job_id = find_job(client, job)
        view, attempts, events = client.job(job_id), client.attempts(job_id), client.events(job_id)
        steps = client.workflow(job_id)["steps"] if view.get("steps") else []

    def draw() -> list[str]:
        now = datetime.now(UTC)
        page = job_page(view, attempts, now, out.status)
        if steps:
            page += ["", *step_table(steps, now, width=out.width, paint=out.status)]
        return [*page, "", "Events:", *(f"  {line}" for line in event_lines(events[-EVENTS:]))]

    more = {"workflow": steps} if steps else {}
    out.show({**view, "attempts": attempts, "events": events, **more}, draw)
