"""Everything that runs, live."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.status_shapes import JobStatus, ServerHealth

AT_WORK = "scheduled,provisioning,running,checkpointing"
# Waiting jobs are only counted; more than so many are "many".
WAITING = 1000


@click.command(epilog=example("crucible top", "crucible top --limit 5", "crucible top -o json | jq .jobs[].name"))
@click.option(
    "--every", type=click.FloatRange(0.5, 3600), default=2.0, show_default=True, help="Seconds between looks."
)
@click.option("--limit", type=click.IntRange(1, 200), default=30, show_default=True, help="At most so many jobs.")
@with_output
def top(out: Out, every: float, limit: int) -> None:
    """Everything that runs, live: progress, use, cost, what is wrong.

    q or Ctrl-C leaves. In a pipe, or with -o json, it is shown once.
    """
    from crucible.cli.session import connect

    with connect(out) as client:
        if not out.is_terminal or out.is_for_programs:
            _once(out, client, limit)
        else:
            _live(out, client, limit, every)


class Looked:
    """What one look found."""

    def __init__(self, client: "Client", limit: int) -> None:
        from crucible.model.errors import NotFound

        self.jobs: list[JobStatus] = []
        for job in client.all_jobs(status=AT_WORK, limit=limit):
            try:
                self.jobs.append(client.status(job["id"]))
            except NotFound:
                continue  # removed meanwhile
        self.waiting = sum(1 for _ in client.all_jobs(status="pending", limit=WAITING))
        self.system: ServerHealth | None = client.health()

    def lines(self, width: int | None) -> list[str]:
        from crucible.cli.views.status import top_page

        return top_page(self.jobs, self.waiting, self.system, datetime.now(UTC).astimezone(), width)


def _once(out: Out, client: "Client", limit: int) -> None:
    found = Looked(client, limit)
    said = {"jobs": found.jobs, "waiting": found.waiting, "system": found.system}
    out.show(said, lambda: found.lines(None))


def _live(out: Out, client: "Client", limit: int, every: float) -> None:
    from crucible.cli.keys import key_within, one_by_one
    from crucible.cli.screen import whole_screen
    from crucible.client.following import Patience

    patience = Patience(on_trouble=out.trouble)
    with whole_screen(sys.stdout) as draw, one_by_one(sys.stdin):
        while True:
            draw(patience.insist(lambda: Looked(client, limit)).lines(out.width))
            if key_within(sys.stdin, every) in ("q", "Q"):
                return
