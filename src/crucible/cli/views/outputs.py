"""What tasks left behind, as text. Pure: what is shown is a function of what the server said."""

from collections.abc import Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.cli.views.datasets import SHOWN_DIGEST
from crucible.client.output_shapes import Output
from crucible.client.tree_download import Got

# Columns of a terminal that shows all of a digest.
WIDE = 100
TABLE = (
    Column("TASK", is_right=True),
    Column("FILES", is_right=True),
    Column("SIZE", is_right=True),
    Column("AGE", is_right=True),
    Column("DIGEST"),
)


def output_table(found: Sequence[Output], now: datetime, width: int | None) -> list[str]:
    """The whole digest where there is room: it names the tree for other jobs."""
    rows = [
        [
            str(one["task"]),
            str(one["files"]),
            wording.size(one["size_bytes"]),
            wording.age(one["created_at"], now),
            one["digest"] if width is None or width >= WIDE else one["digest"][:SHOWN_DIGEST],
        ]
        for one in found
    ]
    return draw(TABLE, rows, width) if rows else []


def progress_note(task: int, got: Got) -> str:
    """Whole tenths, so that a large one is not many lines."""
    share = got.objects / got.of_objects if got.of_objects else 1.0
    return f"task {task}: {int(10 * share) * 10}% of {wording.size(got.size_bytes)}"
