"""One job in full."""

from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.status_shapes import JobStatus

# The newest events: what usually explains the state. `crucible events` has them all.
EVENTS = 10


@click.command(epilog=example("crucible describe resnet50", "crucible describe b6b0d3d6 -o json"))
@job_argument
@with_output
def describe(out: Out, job: str) -> None:
    """Everything about one job: state, place, cost, health, attempts, newest events."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.events import event_lines
    from crucible.cli.views.jobs import job_page
    from crucible.cli.views.status import finding_lines, status_rows
    from crucible.cli.views.workflows import step_table

    with connect(out) as client:
        job_id = find_job(client, job)
        view, attempts, events = client.job(job_id), client.attempts(job_id), client.events(job_id)
        steps = client.workflow(job_id)["steps"] if view.get("steps") else []
        status = _status(client, job_id)

    def draw() -> list[str]:
        now = datetime.now(UTC)
        page = job_page(view, attempts, now, out.status, status_rows(status, now, out.paint) if status else ())
        if status and status["health"]["findings"]:
            page += ["", "Findings:", *finding_lines(status["health"]["findings"], now, out.paint)]
        if steps:
            page += ["", *step_table(steps, now, width=out.width, paint=out.status)]
        return [*page, "", "Events:", *(f"  {line}" for line in event_lines(events[-EVENTS:]))]

    more = {**({"workflow": steps} if steps else {}), **({"now": status} if status else {})}
    out.show({**view, "attempts": attempts, "events": events, **more}, draw)


def _status(client: "Client", job_id: str) -> "JobStatus | None":
    """None: the server is too old to say it in one answer."""
    from crucible.model.errors import NotFound

    try:
        return client.status(job_id)
    except NotFound:
        return None
