"""How the system is."""

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible health", "crucible health -o json | jq .system.status"))
@with_output
def health(out: Out) -> int:
    """How the system is: providers, loops, queues, ledger, database, logs, prices, agents.

    The exit code is 1 if something is critical. `crucible doctor` checks this computer's side, `crucible doctor
    PROVIDER` asks a provider what is missing.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.status import health_lines

    with connect(out) as client:
        said = client.health()
    out.show(said, lambda: health_lines(said, out.paint))
    return exits.ERROR if said["system"]["status"] == "critical" else exits.OK
