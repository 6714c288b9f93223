"""The log of who changed what."""

import click

from crucible.cli import exits
from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(
    epilog=example(
        "crucible audit",
        "crucible audit --team vision --user ada",
        "crucible audit --subject job:0198c2…",
        "crucible audit --verify",
    )
)
@click.option("--team", help="What concerns this team.")
@click.option("--user", help="What this user did.")
@click.option("--subject", help="What was done to this, such as team:vision or job:ID.")
@click.option("--before", type=click.IntRange(1), metavar="LINE", help="Older lines than this one.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--verify", is_flag=True, help="Read the whole log: was a line altered or removed? (admins)")
@with_output
def audit(
    out: Out, team: str | None, user: str | None, subject: str | None, before: int | None, limit: int, verify: bool
) -> None:
    """Who changed what, newest first: everything for admins, what concerns their teams for managers.

    A line is written with the change itself, seals all lines before it, and is never touched again.
    """
    from crucible.cli.session import connect
    from crucible.cli.views.accounts import audit_table, seal_lines

    with connect(out) as client:
        if verify:
            seal = client.audit_seal()
            out.show(seal, lambda: seal_lines(seal))
            if seal["broken"] is not None:
                raise SystemExit(exits.ERROR)
            return
        page = client.audit(team=team, user=user, subject=subject, before=before, limit=limit)
    out.show(page, lambda: audit_table(page["items"], out.width))
    if not page["items"]:
        out.note("nothing of that was changed by anybody")
    if page["next_before"] is not None:
        out.note(f"there is more: --before {page['next_before']}")
