"""What is stored about a person, and their end here."""

from pathlib import Path

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.command(epilog=example("crucible user export ada", "crucible user export ada --logs --to ada.tar"))
@click.argument("user")
@click.option("--logs", is_flag=True, help="With what their jobs wrote; it may be much.")
@click.option(
    "--to", "target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="[default: USER.tar]"
)
@with_output
def export(out: Out, user: str, logs: bool, target: Path | None) -> None:
    """Everything that is stored about a person, as a tar archive of JSON lines. Your own; an admin may have anybody's.

    Account, tokens without their secrets, teams, jobs with their specs, history and costs, datasets, templates, notices
    and lines of the audit log. A file that breaks off is removed again."""
    from crucible.cli.session import connect
    from crucible.cli.wording import size

    path = target or Path(f"{user}.tar")
    try:
        with connect(out) as client, path.open("xb") as file:
            written = sum(file.write(block) for block in client.export_user(user, logs=logs))
    except FileExistsError:
        raise click.UsageError(f"{path} is there already; name another file with --to") from None
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    out.show({"file": str(path), "size_bytes": written}, lambda: [f"{path}: {size(written)}"])


@click.command(epilog=example("crucible user delete ada", "crucible user delete ada --keep-jobs --yes"))
@click.argument("user")
@click.option("--keep-jobs", is_flag=True, help="Their jobs stay, under a pseudonym; their history goes.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_output
def delete(out: Out, user: str, keep_jobs: bool, yes: bool) -> None:
    """Forget a person (admins): tokens, memberships, and all their jobs left and wrote. What was charged stays, under a
    pseudonym. Refused while jobs of theirs are not over. It cannot be undone."""
    import sys

    from crucible.cli.session import connect
    from crucible.model.errors import NotFound

    if not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise click.UsageError("this cannot be undone: give --yes")
        click.confirm(f"Forget {user} for good?", default=False, abort=True, err=True)
    with connect(out) as client:
        done = client.delete_user(user, keep_jobs=keep_jobs)
        while not done["is_done"]:
            out.note_once("removing what they left …")
            try:
                done = client.delete_user(user, keep_jobs=keep_jobs)
            except NotFound:  # since we asked
                done = {**done, "is_done": True}
    out.show(done, lambda: [f"{user} is forgotten; what was charged is {done['pseudonym']}'s"])
