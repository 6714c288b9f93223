"""Users: people, and services that act like them."""

import click

from crucible.cli.commands.user_data import delete, export
from crucible.cli.options import example, with_output
from crucible.cli.output import Out

ROLES = ("viewer", "member", "admin")


@click.group(
    epilog=example(
        "crucible user create ada",
        "crucible token create laptop --user ada",
        "crucible user create vision-ci --service --team vision",
    )
)
def user() -> None:
    """Make, list and disable users; managers make services for their team."""


@user.command(
    epilog=example(
        "crucible user create ada",
        "crucible user create eve --role viewer --team vision",
        "crucible user create vision-ci --service --team vision",
    )
)
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True)
@click.option("--service", is_flag=True, help="A program, not a person: continuous integration, a scheduler.")
@click.option("--team", help="That they are in from the start.")
@with_output
def create(out: Out, name: str, role: str, service: bool, team: str | None) -> None:
    """Make a user. A token for them: crucible token create NAME --user USER.

    \b
    viewer    looks at what their teams do
    member    runs jobs, and changes their own
    admin     everything
    """
    from crucible.cli.session import connect

    with connect(out) as client:
        made = client.create_user(name, role=role, kind="service" if service else "person", team=team)
    out.show(made, lambda: [f"{made['name']} ({made['role']})"])


@user.command("ls", epilog=example("crucible user ls"))
@with_output
def list_users(out: Out) -> None:
    """List users; managers see those of their teams."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.accounts import user_table

    with connect(out) as client:
        found = client.users()
    out.show({"items": found}, lambda: user_table(found, datetime.now(UTC), out.width))


@user.command("role", epilog=example("crucible user role ada admin"))
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@with_output
def set_role(out: Out, name: str, role: str) -> None:
    """Give a user another role on the server. The last admin stays one."""
    _change(out, name, role=role)


@user.command(epilog=example("crucible user disable ada"))
@click.argument("name")
@with_output
def disable(out: Out, name: str) -> None:
    """None of their tokens opens anything any more. Their jobs go on."""
    _change(out, name, disabled=True)


@user.command(epilog=example("crucible user enable ada"))
@click.argument("name")
@with_output
def enable(out: Out, name: str) -> None:
    """Their tokens open what they opened before."""
    _change(out, name, disabled=False)


def _change(out: Out, name: str, *, role: str | None = None, disabled: bool | None = None) -> None:
    from crucible.cli.session import connect

    with connect(out) as client:
        after = client.change_user(name, role=role, disabled=disabled)
    state = "disabled" if after["disabled_at"] else "active"
    out.show(after, lambda: [f"{after['name']} ({after['role']}, {state})"])


user.add_command(export)
user.add_command(delete)
