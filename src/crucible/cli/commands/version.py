"""Which versions talk to each other."""

import click

from crucible import __version__
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible version", "crucible version -o json"))
@with_output
def version(out: Out) -> None:
    """Versions of this client and its server.

    Asks the configured server, or the local one if it runs; starts nothing.
    """
    from crucible.cli.session import running_server

    with running_server() as client:
        server = None if client is None else dict(client.version())
    value = {"client": __version__, "server": server}
    said = "not running" if server is None else str(server.get("version"))
    out.show(value, lambda: [f"client {__version__}", f"server {said}"])
