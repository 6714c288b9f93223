"""Secrets: to set one, to see which there are, to remove one. A value is never an argument: those are seen by everybody
on a computer, and kept by shells."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

# What is shorter is not taken out of logs.
LEAST_HIDDEN = 8
MOST_BYTES = 64 << 10


@click.group(
    epilog=example(
        "crucible secret set HF_TOKEN",
        "crucible secret set GCP_KEY --from-file key.json --team vision",
        "crucible secret ls",
        "crucible secret rm HF_TOKEN",
    )
)
def secret() -> None:
    """Set, list and remove secrets that jobs use. A job gets one by naming it under `secrets`."""


def owned(command: Callable[..., Any]) -> Callable[..., Any]:
    """--team and --project."""
    command = click.option("--team", metavar="T", help="A secret of this team, for the jobs of its members.")(command)
    return click.option("--project", metavar="P", help="A secret of this project.")(command)


@secret.command(
    "set",
    epilog=example(
        "crucible secret set HF_TOKEN",
        "pass show hf | crucible secret set HF_TOKEN",
        "crucible secret set GCP_KEY --from-file key.json --project imagenet",
    ),
)
@click.argument("name")
@click.option("--from-file", "path", type=click.Path(path_type=Path), metavar="FILE", help="All of it, to the byte.")
@owned
@with_output
def set_secret(out: Out, name: str, path: Path | None, team: str | None, project: str | None) -> None:
    """Set the secret NAME, or give it a new value, which the next attempt of every job gets.

    The value is asked for and not shown; or read from standard input, without the line break at its end."""
    from crucible.cli.session import connect
    from crucible.cli.views.secrets import was_set

    value = from_file(path) if path is not None else asked_for(name)
    with connect(out) as client:
        made = client.set_secret(name, value, team=team, project=project)
    out.show(made, lambda: was_set(made))
    if len(value) < LEAST_HIDDEN and not out.is_for_programs:
        out.note(f"shorter than {LEAST_HIDDEN} bytes: it is not hidden where a job prints it")


@secret.command("ls", epilog=example("crucible secret ls", "crucible secret ls --team vision -o json"))
@owned
@with_output
def list_secrets(out: Out, team: str | None, project: str | None) -> None:
    """Yours, and those of your teams and their projects: names, never values."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.secrets import secret_table

    with connect(out) as client:
        found = client.secrets(team=team, project=project)
    out.show({"items": found}, lambda: secret_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("no secret yet: crucible secret set NAME")


@secret.command(epilog=example("crucible secret rm HF_TOKEN", "crucible secret rm GCP_KEY --team vision"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@owned
@with_output
def rm(out: Out, names: tuple[str, ...], team: str | None, project: str | None) -> None:
    """Remove secrets for good. Programs that run keep what they were given; later attempts fail."""
    from crucible.cli.session import connect

    with connect(out) as client:
        for name in names:
            client.remove_secret(name, team=team, project=project)
    out.show({"removed": list(names)}, lambda: [f"removed {name}" for name in names])


@secret.command("rotate-key", epilog=example("crucible secret rotate-key"))
@with_output
def rotate_key(out: Out) -> None:
    """Seal every secret with a new key of the server (admins). The old one is forgotten when nothing needs it."""
    from crucible.cli.session import connect
    from crucible.cli.views.secrets import rotated

    with connect(out) as client:
        done = client.rotate_secrets_key()
    out.show(done, lambda: rotated(done))


def asked_for(name: str) -> bytes:
    """From a person, twice and unseen; from a pipe, all of it."""
    if sys.stdin.isatty():
        return str(click.prompt(f"value of {name}", hide_input=True, confirmation_prompt=True, err=True)).encode()
    value = sys.stdin.buffer.read(MOST_BYTES + 2)
    return value.removesuffix(b"\n").removesuffix(b"\r")


def from_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}") from error
