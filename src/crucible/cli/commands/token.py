"""Access tokens."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out

GRANTS = ("read", "jobs", "manage", "admin", "metrics")


@click.group(epilog=example("crucible token create laptop", "crucible token ls", "crucible token revoke ID"))
def token() -> None:
    """Make, list and revoke access tokens."""


@token.command(
    epilog=example(
        "crucible token create laptop",
        "crucible token create ci --user vision-ci --grant jobs --expires 30",
        "crucible token create prometheus --grant metrics",
    )
)
@click.argument("name")
@click.option("--user", help="For another user: admins, and managers for services of their team.  [default: yourself]")
@click.option(
    "--grant",
    "grants",
    type=click.Choice(GRANTS),
    multiple=True,
    help="Good for this only; may be given again.  [default: whatever the user may do]",
)
@click.option(
    "--expires", type=click.FloatRange(0, 36_500, min_open=True), metavar="DAYS", help="Not valid after so many days."
)
@with_output
def create(out: Out, name: str, user: str | None, grants: tuple[str, ...], expires: float | None) -> None:
    """Make a token. It is shown once and never again.

    \b
    read      look at jobs, costs, prices, teams
    jobs      submit and change jobs, datasets, templates
    manage    teams, projects, tokens, and what else managers do
    admin     users, hosts, providers
    metrics   collect metrics, and nothing else
    """
    from datetime import UTC, datetime, timedelta

    from crucible.cli.session import connect

    until = None if expires is None else (datetime.now(UTC) + timedelta(days=expires)).isoformat()
    with connect(out) as client:
        made = client.create_token(name, user=user, expires_at=until, grants=grants)
        url = client.endpoint.url
    out.show(made, lambda: [made["token"]])
    if not out.is_for_programs:
        out.note(f"shown once: keep it safe. Use it with crucible login {url}, or as CRUCIBLE_TOKEN")


@token.command("ls", epilog=example("crucible token ls", "crucible token ls --user vision-ci"))
@click.option("--user", help="Those of another user.")
@with_output
def list_tokens(out: Out, user: str | None) -> None:
    """List tokens; the secrets themselves are not kept."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.accounts import token_table

    with connect(out) as client:
        found = client.tokens(user=user)
    out.show({"items": found}, lambda: token_table(found, datetime.now(UTC), out.width))


@token.command(epilog=example("crucible token revoke ID"))
@click.argument("token_id", metavar="ID")
@with_output
def revoke(out: Out, token_id: str) -> None:
    """Make a token useless, at once and for ever."""
    from crucible.cli.session import connect

    with connect(out) as client:
        client.revoke_token(token_id)
    out.show({"revoked": token_id}, lambda: [f"revoked {token_id}"])
