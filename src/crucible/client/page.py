"""Opening the page in a browser, signed in, without a secret in a command line or an address that servers see: the
browser opens a file that only its owner can read, and that leads it on with a code good for one session."""

import html
import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from crucible.client.api import Client
from crucible.client.sign_in import challenge_of

FILE = "open-page.html"


def address_of(server: str) -> str:
    return f"{server.rstrip('/')}/ui/"


def can_open(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Whether a person sits before a screen. A browser that the environment names is always meant."""
    if environ.get("BROWSER"):
        return True
    has_screen = sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
    return is_terminal and has_screen


def way_in(client: Client, home: Path) -> Path:
    """The file to open. Its code is good for one session and for two minutes."""
    verifier = secrets.token_urlsafe(48)
    code = client.sign_in_ticket(challenge_of(verifier))["code"]
    carried = urlencode({"code": code, "verifier": verifier})  # behind the #: no server, proxy or log sees it
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(_leading_to(f"{address_of(client.endpoint.url)}sign-in#{carried}"))
    return path


def _leading_to(address: str) -> str:
    shown = html.escape(address)
    return (
        '<!doctype html><meta charset="utf-8"><title>Crucible</title><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={shown}"><p><a href="{shown}">Go to the page</a>\n'
    )
