"""Machines."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible nodes", "crucible nodes --free"))
@click.option("--free", "is_free", is_flag=True, help="GPUs of this computer, own hosts and Slurm: how many are free.")
@with_output
def nodes(out: Out, is_free: bool) -> None:
    """Machines that work or could work."""
    from crucible.cli.session import connect
    from crucible.cli.views.records import node_table, pool_table

    with connect(out) as client:
        if is_free:
            pools = client.capacity()
            out.show({"items": pools}, lambda: pool_table(pools, out.width))
            return
        found = client.nodes()
    out.show({"items": found}, lambda: node_table(found, out.width))
    if not found and not out.is_for_programs:
        out.note("no machine is held; one is found when a job needs it")
