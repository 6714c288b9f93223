"""A world to look at, for `make demo`: two teams, days of history, jobs in every state, a cloud on this computer. Stays
up until Ctrl-C, then stops everything that it started."""

import fcntl
import json
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType

import click
from examples.demo.present import Present
from examples.demo.present_jobs import ALL, SMALL
from examples.demo.site import REGIONS, Site, an_inbox
from examples.telling import say

from crucible.client import page
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from crucible.home import write_private
from crucible.model.errors import PlatformError

PORT = 8788  # where it is looked for first
DAYS = 8
FOLDER = Path("build/demo")
FILE = "demo.json"  # where it is, and what is in it: there while it is ready


class Busy(click.ClickException):
    """Somebody else has what this demo needs."""


class Interrupts:
    """Ctrl-C and SIGTERM. What is being started is found by what it writes once it stands, so nobody is interrupted
    meanwhile; nor while the demo is taken down, however often somebody asks."""

    def __init__(self) -> None:
        self._is_held = self._is_asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._hear)

    @contextmanager
    def held(self) -> Iterator[None]:
        self._is_held = True
        yield
        self._is_held = False
        if self._is_asked:
            raise KeyboardInterrupt

    def ignore(self) -> None:
        self._is_held = True

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._is_asked = True
        if not self._is_held:
            raise KeyboardInterrupt


@click.command()
@click.option("--port", type=click.IntRange(1, 65535), help=f"Of the page.  [default: {PORT}, or any free one]")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), default=FOLDER, show_default=True)
@click.option("--small", "is_small", is_flag=True, help="One day and few jobs: ready sooner.")
@click.option("--open/--no-open", "is_wanted", default=True, help="In a browser, signed in, where there is one.")
def main(port: int | None, folder: Path, is_small: bool, is_wanted: bool) -> None:
    """A Crucible with two teams, days of history and jobs in every state. Costs nothing; Ctrl-C ends it."""
    site, interrupts = Site(folder.absolute()), Interrupts()
    with alone(site.folder) as written, ExitStack() as stack:
        try:
            site.stop()  # what one that was killed has left
            site.clear()
            wanted = free(port)
            stack.callback(end, site)
            inbox = stack.enter_context(an_inbox())
            client = stack.enter_context(Client(Transport(begin(site, wanted, inbox, interrupts, is_small=is_small))))
            present = Present(client, SMALL if is_small else ALL, inbox)
            say("People submit jobs, a machine is taken away, a budget runs out …")
            present.make()
            write_private(written, json.dumps({"url": client.endpoint.url, "jobs": present.ids}))
            stack.callback(written.unlink, missing_ok=True)
            show(site, client, present.tokens, is_wanted=is_wanted)
            threading.Event().wait()
        except KeyboardInterrupt:
            interrupts.ignore()
            say("Stopping …")
        except PlatformError as error:
            interrupts.ignore()
            raise click.ClickException(error.message) from error


def begin(site: Site, port: int, inbox: str, interrupts: Interrupts, *, is_small: bool) -> Endpoint:
    say(f"A cloud starts on this computer, and {'a day' if is_small else f'{DAYS} days'} of work pass in seconds …")
    with interrupts.held():
        site.start_lab()
    # The whole server comes with it: whoever is refused must not wait for that.
    from examples.demo.past import make_past
    from examples.demo.past_jobs import a_short_day, days

    make_past(site.home, REGIONS, a_short_day() if is_small else days(DAYS))
    say("A server goes on from there.")
    with interrupts.held():
        return site.start_server(port, inbox)


def end(site: Site) -> None:
    site.stop()
    say("Everything that the demo started is gone.")


def show(site: Site, client: Client, tokens: dict[str, str], *, is_wanted: bool) -> None:
    folder = site.home / "tokens"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, token in tokens.items():
        write_private(folder / name, token)
    say(f"The demo is ready: {page.address_of(client.endpoint.url)}")
    print(f"  signed in as admin   CRUCIBLE_HOME={site.home} {command()} dashboard")
    print(f"  with a token         {site.home / 'admin-token'}")
    print(f"  as somebody else     {folder}/: ada and dora manage a team, finance only looks")
    print("  Ctrl-C ends it, and everything in it.", flush=True)
    if is_wanted and page.can_open(os.environ, is_terminal=sys.stdin.isatty()):
        webbrowser.open(page.way_in(client, site.home).as_uri())


def command() -> str:
    """As a person would type it here."""
    path = Path(sys.executable).with_name("crucible")
    with suppress(ValueError):
        path = path.relative_to(Path.cwd())
    return str(path)


@contextmanager
def alone(folder: Path) -> Iterator[Path]:
    """One demo at a time in a folder. Raises Busy, with where the other is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = folder / FILE
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            where = (
                f"at {page.address_of(json.loads(written.read_text())['url'])}" if written.exists() else "and begins"
            )
            raise Busy(f"a demo runs already {where}; end it with Ctrl-C where it was started") from None
        written.unlink(missing_ok=True)
        yield written


def free(wanted: int | None) -> int:
    """A port that can be had: the one that was asked for, or the usual one, or any. Raises Busy."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or PORT))
            return wanted or PORT
        except OSError as error:
            if wanted:
                raise Busy(f"port {wanted} cannot be had ({error.strerror}); name another, or none") from error
    return 0


if __name__ == "__main__":
    main()
