"""Users, for admins."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(epilog=example("crucible user create ada", "crucible token create laptop --user ada"))
def user() -> None:
    """Make and list users (admins)."""


@user.command(epilog=example("crucible user create ada", "crucible user create ops --role admin"))
@click.argument("name")
@click.option("--role", type=click.Choice(("member", "admin")), default="member", show_default=True)
@with_output
def create(out: Out, name: str, role: str) -> None:
    """Make a user. A token for them: crucible token create NAME --user USER."""
    from crucible.cli.session import connect

    with connect(out) as client:
        made = client.create_user(name, role=role)
    out.show(made, lambda: [f"{made['name']} ({made['role']})"])


@user.command("ls", epilog=example("crucible user ls"))
@with_output
def list_users(out: Out) -> None:
    """List users."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.records import user_table

    with connect(out) as client:
        found = client.users()
    out.show({"items": found}, lambda: user_table(found, datetime.now(UTC), out.width))
