"""How long things are kept, and what is removed; for admins."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(
    epilog=example(
        "crucible retention show",
        "crucible retention set logs 30d",
        "crucible retention set jobs never",
        "crucible retention run --dry-run",
    )
)
def retention() -> None:
    """How long things are kept, and what is removed (admins).

    Logs, the history of jobs, jobs, code, notices, the audit log. What was charged is kept for ever."""


@retention.command(epilog=example("crucible retention show", "crucible retention show -o json"))
@with_output
def show(out: Out) -> None:
    """Every kind, how long it is kept, who said so, and what was removed so far."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.retention import retention_table

    with connect(out) as client:
        found = client.retention()
    out.show({"items": found}, lambda: retention_table(found, datetime.now(UTC), out.width))


@retention.command(
    "set",
    epilog=example(
        "crucible retention set logs 30d", "crucible retention set events 2y", "crucible retention set jobs default"
    ),
)
@click.argument("what", metavar="KIND")
@click.argument("age", metavar="AGE")
@with_output
def set_age(out: Out, what: str, age: str) -> None:
    """Keep a KIND for an AGE: 90d, 12w, 2y, never (for ever) or default."""
    from crucible.cli.session import connect
    from crucible.cli.views.retention import age_of

    with connect(out) as client:
        kind = client.set_retention(what, age)
    out.show(kind, lambda: [f"{kind['what']} are kept {age_of(kind['days'])}"])


@retention.command(epilog=example("crucible retention run --dry-run", "crucible retention run"))
@click.option("--dry-run", is_flag=True, help="Count what is old enough; remove nothing.")
@with_output
def run(out: Out, dry_run: bool) -> None:
    """Remove now what is old enough; the server does so every hour."""
    from collections import Counter

    from crucible.cli.session import connect
    from crucible.cli.views.retention import ran_lines

    removed: Counter[str] = Counter()
    freed = 0
    with connect(out) as client:
        said = client.run_retention(dry_run=dry_run)
        removed.update(said["removed"])
        freed += said["freed_bytes"]
        while not dry_run and not said["is_done"]:
            out.note(f"{removed.total()} so far …")
            said = client.run_retention()
            removed.update(said["removed"])
            freed += said["freed_bytes"]
    total = {**said, "removed": dict(removed), "freed_bytes": freed}
    out.show(total, lambda: ran_lines(total))
