"""The list of jobs, once or live."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

STATUSES = ("pending", "scheduled", "provisioning", "running", "checkpointing", "completed", "failed", "cancelled")


@click.command(
    epilog=example("crucible ps", "crucible ps -a --status failed", "crucible ps --team vision", "crucible ps -w")
)
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that have ended.")
@click.option("-w", "--watch", is_flag=True, help="Stay, and show what changes; Ctrl-C leaves.")
@click.option("--status", type=click.Choice(STATUSES), multiple=True, help="Only these; may be given again.")
@click.option("--all-jobs", "with_steps", is_flag=True, help="Also jobs that work for steps of workflows.")
@click.option("--team", help="Only jobs of this team.")
@click.option("--project", help="Only jobs of this project.")
@click.option("--user", help="Only jobs of this user.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many, newest first.")
@with_output
def ps(
    out: Out, everything: bool, watch: bool, status: tuple[str, ...], with_steps: bool, limit: int, **of: str | None
) -> None:
    """List jobs, yours and those of your teams: what waits or runs, newest first."""
    from crucible.cli.listing import Listing, show, watch_changes, watch_screen
    from crucible.cli.session import connect

    wanted = status or (() if everything else STATUSES[:5])
    with connect(out) as client:
        listing = Listing(client, wanted, limit, with_steps, of)
        if not watch:
            show(out, listing.read(), is_everything=everything or bool(status))
        elif out.is_terminal and not out.is_for_programs:
            watch_screen(out, listing)
        else:
            watch_changes(out, listing)
