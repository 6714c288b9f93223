"""Own hosts: computers that the server reaches over SSH."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from crucible.client.api import Client
    from crucible.client.shapes import Host
    from crucible.model.errors import HostKeyRefused

# What a person at a terminal is asked about; without one it is an error with the flag to give.
MAX_QUESTIONS = 200
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def fingerprint_of(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None or FINGERPRINT.fullmatch(value):
        return value
    raise click.BadParameter("it is SHA256: and 43 characters, as `ssh-keygen -lf KEY.pub` prints it on the host")


@click.group(
    epilog=example(
        "crucible hosts add gpu1 ann@10.0.0.7",
        "crucible hosts add --file hosts.yaml",
        "crucible hosts list",
        "crucible hosts drain gpu1",
    )
)
def hosts() -> None:
    """Your own computers, reached over SSH: add, list, check, drain, remove."""


@hosts.command(
    epilog=example(
        "crucible hosts add gpu1 ann@10.0.0.7",
        "crucible hosts add gpu2 10.0.1.9:2222 --jump ann@gate.example --zone rack-2 --shared",
        "crucible hosts add gpu3 10.0.0.8 --fingerprint SHA256:…",
        "crucible hosts add --file hosts.yaml",
    )
)
@click.argument("name", required=False)
@click.argument("place", metavar="[USER@]ADDRESS[:PORT]", required=False)
@click.option("-f", "--file", "file", metavar="FILE", help="Several at once, all or none: a YAML list of hosts.")
@click.option("--zone", help="Hosts of one zone reach each other: a gang stands in one.  [default: default]")
@click.option("--jump", metavar="HOSTS", help="Through these, with commas: user@host:port.")
@click.option("--identity-file", metavar="PATH", help="A private key on the server, without passphrase.")
@click.option("--internal-address", metavar="ADDRESS", help="Where the other hosts reach it, if elsewhere.")
@click.option("--python", metavar="PATH", help="That runs our agent there.  [default: python3]")
@click.option("--shared", is_flag=True, help="Several machines at once, each with its own GPUs.")
@click.option(
    "--fingerprint",
    metavar="SHA256:…",
    callback=fingerprint_of,
    help="Of the key that it must show.  [default: known_hosts]",
)
@with_output
def add(out: Out, name: str | None, place: str | None, file: str | None, shared: bool, **given: str | None) -> None:
    """Register hosts. The server reaches each and looks what it has; if one fails, none is registered."""
    from crucible.cli.session import connect
    from crucible.cli.views.hosts import host_table

    named = {**{key: value for key, value in given.items() if value}, **({"use": "shared"} if shared else {})}
    wanted = wished(name, place, file, named)
    with connect(out) as client:
        found = registered(client, wanted, out)
    out.show({"items": found}, lambda: host_table(found, out.width))


@hosts.command("list", epilog=example("crucible hosts list", "crucible hosts list -o json"))
@with_output
def list_hosts(out: Out) -> None:
    """All hosts: what they have, and how they are."""
    from crucible.cli.session import connect
    from crucible.cli.views.hosts import host_table

    with connect(out) as client:
        found = client.hosts()
    out.show({"items": found}, lambda: host_table(found, out.width))
    if not found and not out.is_for_programs:
        out.note("no host yet: crucible hosts add NAME user@address")


@hosts.command(epilog=example("crucible hosts check", "crucible hosts check gpu1"))
@click.argument("name", required=False)
@with_output
def check(out: Out, name: str | None) -> None:
    """Look what a host has now, or all of them. Well again, one leaves its quarantine."""
    from crucible.cli.session import connect
    from crucible.cli.views.hosts import host_table
    from crucible.model.errors import InvalidRequest, Unreachable

    failed = False
    with connect(out) as client:
        for each in [name] if name else [host["name"] for host in client.hosts()]:
            try:
                client.check_host(each)
            except (Unreachable, InvalidRequest) as error:
                if name is not None:
                    raise
                failed = True
                out.warn(f"{each}: {error.message}")
        found = [client.host(name)] if name else client.hosts()
    out.show({"items": found}, lambda: host_table(found, out.width))
    if failed:
        raise click.exceptions.Exit(exits.PROVIDER)


@hosts.command(epilog=example("crucible hosts drain gpu1", "crucible hosts drain gpu1 --reason 'new fans'"))
@click.argument("name")
@click.option("--reason", help="For whoever looks at the list.")
@with_output
def drain(out: Out, name: str, reason: str | None) -> None:
    """Start nothing new on a host; what runs there ends in its own time."""
    from crucible.cli.session import connect

    with connect(out) as client:
        host = client.drain_host(name, reason)
    running = host["machines"]
    left = f"{running} machine{'s' if running != 1 else ''} still run there" if running else "nothing runs there"
    out.show(host, lambda: [f"{name} is draining: {left}"])


@hosts.command(epilog=example("crucible hosts resume gpu1"))
@click.argument("name")
@with_output
def resume(out: Out, name: str) -> None:
    """Use a host again that was drained or in quarantine."""
    from crucible.cli.session import connect

    with connect(out) as client:
        host = client.resume_host(name)
    out.show(host, lambda: [f"{name} is ready"])


@hosts.command(epilog=example("crucible hosts remove gpu1", "crucible hosts remove gpu1 --force"))
@click.argument("name")
@click.option("--force", is_flag=True, help="Drain it first; let one go that has not answered for very long.")
@with_output
def remove(out: Out, name: str, force: bool) -> None:
    """Forget a host. Refused while machines run there."""
    from crucible.cli.session import connect

    with connect(out) as client:
        client.remove_host(name, force=force)
    out.show({"removed": name}, lambda: [f"removed {name}"])


# --- what is asked for ----------------------------------------------------------------------------------


def wished(name: str | None, place: str | None, file: str | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    from crucible.cli.hostfile import host_of, read

    if file is not None:
        if name is not None or given:
            raise click.UsageError("--file says everything about its hosts: give no name and no other option")
        return read(file)
    if name is None or place is None:
        raise click.UsageError("name a host and where it is: crucible hosts add NAME [USER@]ADDRESS[:PORT]")
    return [host_of(name, place, given)]


def registered(client: "Client", wanted: Sequence[dict[str, Any]], out: Out) -> "list[Host]":
    """A host that nobody knows yet is shown to the person, who compares its fingerprint."""
    from crucible.model.errors import HostKeyRefused

    for _ in range(MAX_QUESTIONS):
        try:
            return client.add_hosts(wanted)
        except HostKeyRefused as error:
            host = next((one for one in wanted if one["name"] == error.details.get("host")), None)
            if host is None or error.details.get("expected") is not None or not error.details.get("fingerprint"):
                raise
            host["fingerprint"] = accepted(error)
    raise click.UsageError("too many hosts that nobody knows")


def accepted(error: "HostKeyRefused") -> str:
    """The fingerprint, if the person says so. Raises the error with what to do where nobody can be asked."""
    import sys

    from crucible.model.errors import HostKeyRefused

    fingerprint = str(error.details["fingerprint"])
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        hint = f"then give --fingerprint {fingerprint} (in a file: fingerprint: {fingerprint})"
        raise HostKeyRefused(f"{error.message}; {hint}", **error.details) from None
    if not click.confirm(f"{error.message}. Is it the same there?", default=False, err=True):
        raise HostKeyRefused("not registered: its key was not accepted", **error.details) from None
    return fingerprint
