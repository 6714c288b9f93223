"""Datasets: to add a folder, to look, to remove."""

import click

from crucible.cli.options import example, with_output
from crucible.cli.output import Out


@click.group(
    epilog=example(
        "crucible dataset add imagenet ./imagenet",
        "crucible dataset ls",
        "crucible dataset show imagenet",
        "crucible dataset rm imagenet",
    )
)
def dataset() -> None:
    """Add, list, show and remove datasets. A job reads one with `data: {dataset: dataset://NAME}`, and finds its folder
    in $DATASET."""


@dataset.command(
    epilog=example(
        "crucible dataset add imagenet ./imagenet", "crucible dataset add imagenet ./imagenet --region aws/us-east-1"
    )
)
@click.argument("name")
@click.argument("path", type=click.Path())
@click.option("--region", metavar="PROVIDER/REGION", help="Where the server's storage is, for the planner.")
@click.option("--resend", is_flag=True, help="Send also what storage has: it mends objects that were damaged there.")
@with_output
def add(out: Out, name: str, path: str, region: str | None, resend: bool) -> None:
    """Hash the folder PATH, send what is new of it, and call it NAME.

    Broken off, it leaves no dataset; run again, it goes on. The same folder again sends nothing. A name that is given
    to another tree keeps the former one as NAME@DIGEST: jobs that were given it go on with it."""
    from crucible.cli.session import connect
    from crucible.cli.views.datasets import added, progress_note

    with connect(out) as client:
        made = client.add_dataset(
            name,
            path,
            region=region,
            resend=resend,
            on_sent=lambda sent: out.note_once(progress_note(sent.objects, sent.of_objects, sent.sent_bytes)),
        )
    out.show(made, lambda: added(made))


@dataset.command("ls", epilog=example("crucible dataset ls", "crucible dataset ls -o json"))
@with_output
def list_datasets(out: Out) -> None:
    """All of them; NAME@DIGEST is what a name meant before."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.datasets import dataset_table

    with connect(out) as client:
        found = client.datasets()
    out.show({"items": found}, lambda: dataset_table(found, datetime.now(UTC), out.width))
    if not found and not out.is_for_programs:
        out.note("no dataset yet: crucible dataset add NAME PATH")


@dataset.command(epilog=example("crucible dataset show imagenet"))
@click.argument("name")
@with_output
def show(out: Out, name: str) -> None:
    """One of them: its digest, where it is, its copies, and the jobs that need it."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect
    from crucible.cli.views.datasets import dataset_page

    with connect(out) as client:
        found = client.dataset(name)
    out.show(found, lambda: dataset_page(found, datetime.now(UTC)))


@dataset.command(epilog=example("crucible dataset rm imagenet"))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@with_output
def rm(out: Out, names: tuple[str, ...]) -> None:
    """Remove datasets for good, with their copies in regions. Refused while a job needs one of them."""
    from crucible.cli.session import connect

    with connect(out) as client:
        removed = [gone for name in names for gone in client.remove_dataset(name)]
    out.show({"removed": removed}, lambda: [f"removed {name}" for name in removed])
