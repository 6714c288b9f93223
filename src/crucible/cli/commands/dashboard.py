"""The page, opened in a browser."""

import os
import sys

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible dashboard", "crucible dashboard --no-browser"))
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@with_output
def dashboard(out: Out, no_browser: bool) -> None:
    """Open the page in a browser, signed in.

    The session is yours and lasts half a day. Without a screen or a terminal the address is printed, and how to sign
    in there.
    """
    import webbrowser

    from crucible.cli.session import connect
    from crucible.client import config, page

    is_wanted = not no_browser and page.can_open(os.environ, is_terminal=sys.stdin.isatty())
    with connect(out) as client:
        address = page.address_of(client.endpoint.url)
        way_in = page.way_in(client, config.embedded(os.environ).home) if is_wanted else None
    is_opened = way_in is not None and webbrowser.open(way_in.as_uri())
    out.show({"url": address, "opened": is_opened}, lambda: [address])
    if not is_opened:
        out.note("open it in a browser and sign in with a token; this makes one: crucible token create page")
