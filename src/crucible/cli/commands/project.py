"""Projects: what costs are counted under."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(epilog=example("crucible project create imagenet --team vision", "crucible project ls"))
def project() -> None:
    """What costs are counted under. A project belongs to one team."""


@project.command("ls", epilog=example("crucible project ls", "crucible project ls --team vision"))
@click.option("--team", help="Only those of this team.")
@with_output
def list_projects(out: Out, team: str | None) -> None:
    """List the projects of your teams; all for an admin."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.accounts import project_table

    with connect(out) as client:
        found = client.projects(team=team)
    out.show({"items": found}, lambda: project_table(found, datetime.now(UTC), out.width))


@project.command(epilog=example("crucible project create imagenet --team vision"))
@click.argument("name")
@click.option("--team", required=True, help="Whose it is.")
@with_output
def create(out: Out, name: str, team: str) -> None:
    """Make a project (managers). A job names it as job.project; its team follows."""
    from crucible.cli.session import connect

    with connect(out) as client:
        made = client.create_project(name, team=team)
    out.show(made, lambda: [f"{made['name']} ({made['team']})"])


@project.command("rm", epilog=example("crucible project rm imagenet"))
@click.argument("name")
@with_output
def remove(out: Out, name: str) -> None:
    """Remove a project (managers); refused while jobs of it are not over."""
    from crucible.cli.session import connect

    with connect(out) as client:
        client.remove_project(name)
    out.show({"removed": name}, lambda: [f"removed {name}"])
