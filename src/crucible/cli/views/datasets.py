"""Datasets as text. Pure: what is shown is a function of what the server said."""

from collections.abc import Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, draw, pairs
from crucible.client.dataset_shapes import Dataset, DatasetView

SHOWN_DIGEST = 12
TABLE = (
    Column("NAME", shrinks=True),
    Column("DIGEST"),
    Column("FILES", is_right=True),
    Column("SIZE", is_right=True),
    Column("REGION"),
    Column("USER"),
    Column("AGE", is_right=True),
)


def dataset_table(found: Sequence[Dataset], now: datetime, width: int | None) -> list[str]:
    rows = [
        [
            one["name"] if width is None else short(one["name"]),
            one["digest"][:SHOWN_DIGEST],
            str(one["files"]),
            wording.size(one["size_bytes"]),
            one["region"] or wording.NONE,
            one["user"],
            wording.age(one["created_at"], now),
        ]
        for one in found
    ]
    return draw(TABLE, rows, width) if rows else []


def dataset_page(one: DatasetView, now: datetime) -> list[str]:
    copies = [f"{copy['place']} ({copy['uri']})" for copy in one["copies"]]
    return pairs(
        [
            ("Name", one["name"]),
            ("Digest", one["digest"]),
            ("Files", str(one["files"])),
            ("Size", wording.size(one["size_bytes"])),
            ("Home", one["uri"]),
            ("Region", one["region"] or wording.NONE),
            ("Copies", ", ".join(copies) or wording.NONE),
            ("Jobs", ", ".join(one["jobs"]) or wording.NONE),
            ("Added", f"{wording.when(one['created_at'], now)} by {one['user']}"),
        ]
    )


def added(one: Dataset) -> list[str]:
    return [
        f"{one['name']}: {wording.plural(one['files'], 'file')}, {wording.size(one['size_bytes'])}, "
        f"{one['digest'][:SHOWN_DIGEST]}"
    ]


def progress_note(objects: int, of_objects: int, sent_bytes: int) -> str:
    """Whole tenths, so that a large one is not many lines."""
    share = 1.0 if not of_objects else objects / of_objects
    tenths = int(10 * share) * 10
    return f"{tenths}% stored" + (f", {wording.size(sent_bytes)} sent" if tenths == 100 else "")


def short(name: str) -> str:
    """NAME@DIGEST with as much of the digest as tells them apart."""
    plain, at, digest = name.partition("@")
    return f"{plain}{at}{digest[:SHOWN_DIGEST]}"
