"""Which server this person uses, and with which token. The token is read from a prompt or from stdin, never from the
command line, where other users and the shell's history would see it."""

import os
import sys

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example(
        "crucible login https://crucible.example", "crucible login URL < token.txt", "crucible login URL --sso"
    )
)
@click.argument("url")
@click.option("--sso", "is_sso", is_flag=True, help="Sign in with a browser, where your company does.")
@click.option("--no-browser", is_flag=True, help="With --sso: only print the address to open.")
@with_output
def login(url: str, is_sso: bool, no_browser: bool, out: Out) -> None:
    """Use a server that runs elsewhere.

    The token is asked for, or read from stdin; it is checked and kept in a file that only you can read. With --sso a
    browser signs you in, and the token is good for half a day.
    """
    from crucible.client import config
    from crucible.client.api import Client
    from crucible.client.endpoint import Endpoint, check_url, is_loopback
    from crucible.client.transport import Transport

    check_url(url, "URL")
    if url.startswith("http://") and not is_loopback(url):
        out.warn("warning: http:// sends your token unencrypted; use https:// outside your own machine")
    place = url.rstrip("/")
    token = _signed_in(place, out, opens_browser=not no_browser) if is_sso else _read_token()
    endpoint = Endpoint(place, token, "crucible login")
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


def _signed_in(url: str, out: Out, *, opens_browser: bool) -> str:
    import webbrowser

    from crucible.client.api import Client
    from crucible.client.endpoint import Endpoint
    from crucible.client.sign_in import Visit
    from crucible.client.transport import Transport

    with Client(Transport(Endpoint(url, None, "crucible login"))) as client:
        if "oidc" not in client.sign_in_ways()["ways"]:
            raise click.UsageError(f"{url} knows no single sign-on; log in with a token: crucible login {url}")
        visit = Visit(url)
        if not opens_browser or not webbrowser.open(visit.address):
            out.note(f"open this address in a browser on this computer:\n  {visit.address}")
        else:
            out.note("sign in with the browser that has just opened")
        return str(client.exchange_sign_in(visit.wait(), visit.verifier)["token"])


def _read_token() -> str:
    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True))
    else:
        token = sys.stdin.readline()
    if not token.strip():
        raise click.UsageError("no token was given; write it to stdin: crucible login URL < token.txt")
    return token.strip()
