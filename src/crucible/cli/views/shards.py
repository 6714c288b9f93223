"""Work on many items: how far it is, in a line, and its shards as a table. Pure."""

from collections.abc import Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, draw, pairs, printable
from crucible.client.shard_shapes import ShardCounts, ShardItem

# Below a millionth of a dollar nobody reckons.
LEAST_USD = 1e-6


def items_line(counts: ShardCounts) -> str:
    """4,213 of 10,000 items (42%), 12 failed, 35.1/s, $0.00031 an item, 2m 44s left"""
    parts = [f"{counts['items_done']:,} of {counts['items']:,} items ({wording.percent(counts['fraction'])})"]
    if counts["items_failed"]:
        parts.append(f"{counts['items_failed']:,} failed")
    if counts["items_per_s"] is not None:
        parts.append(f"{rate(counts['items_per_s'])}/s")
    if counts["usd_per_item"] is not None and counts["usd_per_item"] >= LEAST_USD:
        parts.append(f"${counts['usd_per_item']:.2g} an item")
    if counts["eta_s"] is not None and counts["items_done"] < counts["items"]:
        parts.append(f"{wording.duration(counts['eta_s'])} left")
    return ", ".join(parts)


def rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}"


def shard_page(counts: ShardCounts, shards: Sequence[ShardItem], now: datetime, width: int | None) -> list[str]:
    by_state = [f"{counts[name]:,} {name}" for name in ("done", "leased", "waiting") if counts[name]]
    rows = [
        ("Items", items_line(counts)),
        ("Shards", f"{counts['shards']:,}: {', '.join(by_state)}"),
        ("Output", wording.size(counts["output_bytes"])),
        *([("First error", printable(counts["first_error"]))] if counts["first_error"] else []),
    ]
    return [*pairs(rows), "", *shard_table(shards, now, width)] if shards else pairs(rows)


def shard_table(shards: Sequence[ShardItem], now: datetime, width: int | None) -> list[str]:
    columns = [
        Column("SHARD", is_right=True),
        Column("ITEMS"),
        Column("STATE"),
        Column("FAILED", is_right=True),
        Column("TOOK", is_right=True),
        Column("SIZE", is_right=True),
        Column("TRIES", is_right=True),
        Column("ERROR", shrinks=True),
    ]
    return draw(columns, [_row(one, now) for one in shards], width)


def _row(one: ShardItem, now: datetime) -> list[str]:
    is_done = one["state"] == "done"
    last = one["first"] + one["items"] - 1
    took = wording.duration(one["seconds"]) if is_done else wording.span(one["leased_at"], None, now)
    return [
        str(one["number"]),
        str(one["first"]) if one["items"] == 1 else f"{one['first']}-{last}",
        one["state"],
        str(one["failed"]) if is_done else wording.NONE,
        wording.NONE if one["state"] == "waiting" else took,
        wording.size(one["size_bytes"]) if is_done else wording.NONE,
        str(one["tries"]) if one["tries"] else wording.NONE,
        one["errors"][0]["reason"] if one["errors"] else "",
    ]
