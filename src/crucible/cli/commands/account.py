"""Which server this person uses, and with which token. The token is read from a prompt or from stdin, never from the
command line, where other users and the shell's history would see it."""

import os
import sys

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible login https://crucible.example", "crucible login URL < token.txt"))
@click.argument("url")
@with_output
def login(url: str, out: Out) -> None:
    """Use a server that runs elsewhere.

    The token is asked for, or read from stdin; it is checked and kept in a file that only you can read.
    """
    from crucible.client import config
    from crucible.client.api import Client
    from crucible.client.endpoint import Endpoint, check_url, is_loopback
    from crucible.client.transport import Transport

    check_url(url, "URL")
    if url.startswith("http://") and not is_loopback(url):
        out.warn("warning: http:// sends your token unencrypted; use https:// outside your own machine")
    endpoint = Endpoint(url.rstrip("/"), _read_token(), "crucible login")
    with Client(Transport(endpoint)) as client:
        me = client.me()
    path = config.config_path(os.environ)
    config.save(path, endpoint)
    who = f"{me.get('name') or me.get('user_id')} ({me.get('role')})"
    out.show({"url": endpoint.url, **me}, lambda: [f"logged in to {endpoint.url} as {who}"])
    out.note(f"kept in {path}; forget it with crucible logout")
    if os.environ.get(config.SERVER):
        out.warn(f"warning: {config.SERVER} is set to {os.environ[config.SERVER]} and goes first")


@click.command(epilog=example("crucible logout"))
@with_output
def logout(out: Out) -> None:
    """Forget that server and use the local one again."""
    from crucible.client import config

    path = config.config_path(os.environ)
    out.note(f"removed {path}" if config.forget(path) else "you were not logged in")


def _read_token() -> str:
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True))
    else:
        token = sys.stdin.readline()
    if not token.strip():
        raise click.UsageError("no token was given; write it to stdin: crucible login URL < token.txt")
    return token.strip()
