"""Teams and who is in them."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

ROLES = ("viewer", "member", "manager")


@click.group(
    epilog=example(
        "crucible team create vision",
        "crucible team add vision ada --role manager",
        "crucible team ls",
    )
)
def team() -> None:
    """Who works together, and pays together."""


@team.command("ls", epilog=example("crucible team ls"))
@with_output
def list_teams(out: Out) -> None:
    """List the teams that you are in; all for an admin."""
    from crucible.cli.session import connect
    from crucible.cli.views.accounts import team_table

    with connect(out) as client:
        found = client.teams()
    out.show({"items": found}, lambda: team_table(found, out.width))
    if not found:
        out.note("you are in no team; an admin makes one: crucible team create NAME")


@team.command(epilog=example("crucible team create vision"))
@click.argument("name")
@with_output
def create(out: Out, name: str) -> None:
    """Make a team (admins). Then say who is in it: crucible team add TEAM USER."""
    from crucible.cli.session import connect

    with connect(out) as client:
        made = client.create_team(name)
    out.show(made, lambda: [made["name"]])


@team.command("rm", epilog=example("crucible team rm vision"))
@click.argument("name")
@with_output
def remove(out: Out, name: str) -> None:
    """Remove a team with its projects (admins); refused while jobs of it are not over.

    What it has cost stays in the books.
    """
    from crucible.cli.session import connect

    with connect(out) as client:
        client.remove_team(name)
    out.show({"removed": name}, lambda: [f"removed {name}"])


@team.command(epilog=example("crucible team members vision"))
@click.argument("name", metavar="TEAM")
@with_output
def members(out: Out, name: str) -> None:
    """List who is in a team, and what they may do there."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.accounts import member_table

    with connect(out) as client:
        found = client.members(name)
    out.show({"items": found}, lambda: member_table(found, datetime.now(UTC), out.width))


@team.command("add", epilog=example("crucible team add vision ada", "crucible team add vision ada --role manager"))
@click.argument("name", metavar="TEAM")
@click.argument("user")
@click.option("--role", type=click.Choice(ROLES), default="member", show_default=True)
@with_output
def add_member(out: Out, name: str, user: str, role: str) -> None:
    """Take somebody into a team, or give them another role there (managers).

    \b
    viewer    looks at its jobs and costs
    member    runs jobs for it, and changes their own
    manager   changes everybody's jobs there, its members and projects
    """
    from crucible.cli.session import connect

    with connect(out) as client:
        after = client.set_member(name, user, role=role)
    out.show(after, lambda: [f"{after['user_id']} ({after['role']} of {name})"])


@team.command("kick", epilog=example("crucible team kick vision ada"))
@click.argument("name", metavar="TEAM")
@click.argument("user")
@with_output
def remove_member(out: Out, name: str, user: str) -> None:
    """Take somebody out of a team (managers). Their jobs go on."""
    from crucible.cli.session import connect

    with connect(out) as client:
        client.remove_member(name, user)
    out.show({"removed": user, "team": name}, lambda: [f"{user} is not in {name} any more"])
