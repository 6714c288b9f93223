"""Checkpoints, artifacts, metrics, nodes and tokens as tables."""

from collections.abc import Sequence
from datetime import datetime

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.price_shapes import CapacityPool
from crucible.client.shapes import Artifact, Checkpoint, MetricPoint, Node, Verified


def checkpoint_table(found: Sequence[Checkpoint], now: datetime, width: int | None) -> list[str]:
    """The last is what the next attempt begins with."""
    columns = [
        Column("STEP", is_right=True),
        Column("SIZE", is_right=True),
        Column("SHARDS", is_right=True),
        Column("ATTEMPT", is_right=True),
        Column("AGE", is_right=True),
        Column("IN"),
        Column("URI", shrinks=True),
    ]
    rows = [
        [
            str(one["step"]),
            wording.size(one["size_bytes"]),
            str(one.get("shards", 1)),
            wording.NONE if one.get("attempt") is None else str(one.get("attempt")),
            wording.age(one["created_at"], now),
            one.get("kept_in", wording.NONE),
            one["uri"],
        ]
        for one in found
    ]
    return draw(columns, rows, width) if rows else []


def progress_note(said: Verified) -> str:
    """Whole tenths, so that a large one is not many lines."""
    share = said["checked_bytes"] / said["size_bytes"] if said["size_bytes"] else 1.0
    return f"step {said['step']}: {int(10 * share) * 10}% of {wording.size(said['size_bytes'])}"


def verdict(said: Verified) -> list[str]:
    if said.get("is_valid"):
        return [f"step {said['step']}: every byte is right ({wording.size(said['checked_bytes'])})"]
    return [f"step {said['step']}: not usable", *(f"  {problem}" for problem in said.get("problems", ()))]


def artifact_table(found: Sequence[Artifact], now: datetime, width: int | None) -> list[str]:
    columns = [Column("TYPE"), Column("AGE", is_right=True), Column("URI")]
    rows = [[one["type"], wording.age(one["created_at"], now), one["uri"]] for one in found]
    return draw(columns, rows, width) if rows else []


def metric_table(points: Sequence[MetricPoint], now_ms: int, width: int | None) -> list[str]:
    """A row per point, a column per measure, in the order in which the job first wrote them."""
    names = list(dict.fromkeys(name for point in points for name in point["values"]))
    has_ranks = len({point["rank"] for point in points}) > 1
    lead = [Column("STEP", is_right=True), Column("AGE", is_right=True)]
    columns = [
        *lead,
        *([Column("RANK", is_right=True)] if has_ranks else []),
        *(Column(n, is_right=True) for n in names),
    ]
    rows = [
        [
            "-" if point["step"] is None else str(point["step"]),
            wording.duration(max(0, now_ms - point["t"]) / 1000),
            *([str(point["rank"])] if has_ranks else []),
            *(wording.number(point["values"].get(name)) for name in names),
        ]
        for point in points
    ]
    return draw(columns, rows, width) if rows else []


def pool_table(pools: Sequence[CapacityPool], width: int | None) -> list[str]:
    """Where GPUs are counted: "14 of 16" are free."""
    columns = [Column("WHERE"), Column("ZONE"), Column("GPU"), Column("FREE", is_right=True)]
    rows = [
        [f"{one['provider']}/{one['region']}", one["zone"] or "-", one["gpu"], f"{one['free']} of {one['gpus']}"]
        for one in pools
    ]
    return draw(columns, rows, width) if rows else []


def node_table(nodes: Sequence[Node], width: int | None) -> list[str]:
    columns = [Column("NODE"), Column("WHERE"), Column("STATE"), Column("DEVICES"), Column("JOB")]
    rows = [
        [
            node.get("id", "-"),
            f"{node.get('provider', '-')}/{node.get('region', '-')}",
            node.get("state", "-"),
            ",".join(node.get("devices", [])) or "-",
            node.get("job_id", "-"),
        ]
        for node in nodes
    ]
    return draw(columns, rows, width) if rows else []
