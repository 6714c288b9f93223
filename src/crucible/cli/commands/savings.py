"""What was saved, and what could be."""

from datetime import UTC, datetime

import click

from crucible.cli.cost_options import wanted, with_period
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example(
        "crucible savings", "crucible savings --by team --for 2026-11", "crucible savings --realised -o json"
    )
)
@click.option("--by", default="market", show_default=True, metavar="WHAT[,WHAT]", help="As in crucible costs.")
@with_period
@click.option("--realised", "is_realised", is_flag=True, help="Only what was saved, not what could be.")
@with_output
def savings(out: Out, by: str, span: str | None, tz: str, is_realised: bool, **only: str | None) -> None:
    """What was saved against prices on demand; below it, what could be saved on what runs or waits now.

    Saved is what the same seconds would have cost on demand, at the price of the moment when they were bought, less
    what was paid. What could be saved is the planner's estimate: of one job take one, and never add it to the rest.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.cost_reports import idea_table, savings_notes, savings_table

    asked = wanted(span, tz, only, datetime.now(UTC))
    with connect(out) as client:
        said = client.savings(by=by, available=not is_realised, **asked.query)
    out.show(said, lambda: [*savings_table(said, out.width), *idea_table(said, out.width)])
    if not out.is_for_programs:
        for note in savings_notes(said, asked.tz):
            out.note(note)
