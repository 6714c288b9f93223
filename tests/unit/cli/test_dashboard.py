"""`crucible dashboard`: what reaches a browser, and what is said where there is none."""

import html
import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from crucible.client.page import can_open
from crucible.client.sign_in import challenge_of

from .conftest import Crucible, Serve

TICKET = {"POST /v1/login/ticket": {"code": "crt.one.two", "expires_at": "2026-01-01T00:02:00Z"}}


def test_without_a_browser_the_address_is_printed_and_how_to_sign_in(crucible: Crucible, serve: Serve) -> None:
    server = serve({})
    ran = crucible("dashboard", "--no-browser")
    assert (ran.code, ran.out) == (0, f"{server.url}/ui/\n")
    assert "crucible token create page" in ran.err


def test_a_browser_opens_a_private_file_that_leads_to_the_page(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own: which browser there is, is asked once."""
    server, seen = serve(TICKET), tmp_path / "argv"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    argv = [sys.executable, "-m", "crucible.cli.entry", "dashboard"]
    ran = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (ran.returncode, ran.stdout) == (0, f"{server.url}/ui/\n"), ran.stderr
    path = Path(urlsplit(seen.read_text().strip()).path)
    assert seen.read_text().startswith("file://")
    assert path == tmp_path / "data" / "open-page.html"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = re.search(r'url=([^"]+)"', path.read_text())
    assert found is not None
    address = urlsplit(html.unescape(found[1]))
    assert (address.path, address.query) == ("/ui/sign-in", "")
    carried = parse_qs(address.fragment)
    assert carried["code"] == ["crt.one.two"]
    (asked,) = server.requests
    assert json.loads(asked.body) == {"challenge": challenge_of(carried["verifier"][0])}
    assert "s3cret-token" not in path.read_text() + seen.read_text() + ran.stdout + ran.stderr


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="there is always a screen")
def test_a_browser_needs_a_person_before_a_screen() -> None:
    assert can_open({"DISPLAY": ":0"}, is_terminal=True)
    assert not can_open({"DISPLAY": ":0"}, is_terminal=False)
    assert not can_open({}, is_terminal=True)
    assert can_open({"BROWSER": "firefox"}, is_terminal=False)
