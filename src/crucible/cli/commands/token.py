"""Access tokens."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(epilog=example("crucible token create laptop", "crucible token ls", "crucible token revoke ID"))
def token() -> None:
    """Make, list and revoke access tokens."""


@token.command(epilog=example("crucible token create laptop", "crucible token create ci --user ada --expires 30"))
@click.argument("name")
@click.option("--user", help="For another user; admins only.  [default: yourself]")
@click.option(
    "--expires", type=click.FloatRange(0, min_open=True), metavar="DAYS", help="Not valid after so many days."
)
@with_output
def create(out: Out, name: str, user: str | None, expires: float | None) -> None:
    """Make a token. It is shown once and never again."""
    from datetime import UTC, datetime, timedelta

    from crucible.cli.session import connect

    until = None if expires is None else (datetime.now(UTC) + timedelta(days=expires)).isoformat()
    with connect(out) as client:
        made = client.create_token(name, user=user, expires_at=until)
        url = client.endpoint.url
    out.show(made, lambda: [made["token"]])
    if not out.is_for_programs:
        out.note(f"shown once: keep it safe. Use it with crucible login {url}, or as CRUCIBLE_TOKEN")


@token.command("ls", epilog=example("crucible token ls"))
@with_output
def list_tokens(out: Out) -> None:
    """List tokens; the secrets themselves are not kept."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.records import token_table

    with connect(out) as client:
        found = client.tokens()
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
