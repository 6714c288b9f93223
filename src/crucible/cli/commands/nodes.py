"""Machines."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible nodes"))
@with_output
def nodes(out: Out) -> None:
    """Machines that work or could work."""
    from crucible.cli.session import connect
    from crucible.cli.views.records import node_table

    with connect(out) as client:
        found = client.nodes()
    out.show({"items": found}, lambda: node_table(found, out.width))
    if not found and not out.is_for_programs:
        out.note("no machine is held; one is found when a job needs it")
