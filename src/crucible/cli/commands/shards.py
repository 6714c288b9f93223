"""Work on many items: how far it is, what came of it, and what failed."""

from typing import TYPE_CHECKING

import click

from crucible.cli.options import example, job_argument, with_output
from crucible.cli.output import Out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crucible.client.api import Client
    from crucible.client.shard_shapes import ItemError

STATES = ("waiting", "leased", "done")


@click.command(epilog=example("crucible shards captions", "crucible shards captions --state leased -o json"))
@job_argument
@click.option("--state", type=click.Choice(STATES), help="Only those.")
@click.option("--after", type=click.IntRange(-1), default=-1, metavar="N", help="Only those above this number.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many.")
@with_output
def shards(out: Out, job: str, state: str | None, after: int, limit: int) -> None:
    """How far a job is with its items, shard by shard."""
    from datetime import UTC, datetime

    from crucible.cli.session import connect, find_job
    from crucible.cli.views.shards import shard_page

    with connect(out) as client:
        page = client.shards(find_job(client, job), after=after, limit=limit, state=state)
    out.show(page, lambda: shard_page(page["counts"], page["items"], datetime.now(UTC), out.width))
    if page["next_after"] is not None and not out.is_for_programs:
        out.note(f"more: --after {page['next_after']}")


@click.command(
    epilog=example(
        "crucible results captions > captions.jsonl",
        "crucible results captions -o captions.jsonl",
        "crucible results captions --errors",
    )
)
@job_argument
@click.option("-o", "--output", "target", metavar="FILE", type=click.Path(dir_okay=False), help="Instead of stdout.")
@click.option("--errors", is_flag=True, help="The items that failed, a JSON line each.")
@click.option("-q", "--quiet", is_flag=True, help="No notes.")
def results(job: str, target: str | None, errors: bool, quiet: bool) -> None:
    """What came of a job's items, in their order; or what failed.

    Of a job that still runs, as far as it is.
    """
    from crucible.cli.session import connect, find_job

    out = Out(quiet=quiet)
    with connect(out) as client:
        job_id = find_job(client, job)
        note_if_unfinished(client, job_id, out)
        pieces = map(json_line, client.item_errors(job_id)) if errors else client.results(job_id)
        if target is None:
            out.bytes(pieces)
        else:
            write_whole(target, pieces)


def note_if_unfinished(client: "Client", job_id: str, out: Out) -> None:
    counts = client.shards(job_id, limit=1)["counts"]
    if counts["done"] < counts["shards"]:
        out.note(f"not everything yet: {counts['items_done']:,} of {counts['items']:,} items")


def json_line(said: "ItemError") -> bytes:
    import json

    return json.dumps(said, ensure_ascii=False).encode() + b"\n"


def write_whole(target: str, pieces: "Iterable[bytes]") -> None:
    """A file that is there is whole."""
    from pathlib import Path

    draft = Path(f"{target}.part")
    try:
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        draft.replace(target)
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from None
