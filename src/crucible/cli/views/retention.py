"""What is kept for how long, and what was removed, as people read it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.retention_shapes import KeptJob, KeptKind

DAYS_OF_A_YEAR = 365
MEANING = {
    "logs": "what tasks wrote, and their metrics; from the job's end",
    "samples": "what machines were measured at",
    "events": "the history of jobs; from the job's end",
    "plans": "that jobs were submitted with",
    "jobs": "all of a finished job but what it cost",
    "packages": "code that no job has any more",
    "notices": "that people were told",
    "audit": "who changed what",
}


def age_of(days: int | None) -> str:
    if days is None:
        return "for ever"
    if days % DAYS_OF_A_YEAR == 0:
        return wording.plural(days // DAYS_OF_A_YEAR, "year")
    return wording.plural(days, "day")


def retention_table(found: Sequence[KeptKind], now: datetime, width: int | None) -> list[str]:
    columns = [
        Column("KIND"),
        Column("KEPT"),
        Column("SET BY"),
        Column("REMOVED", is_right=True),
        Column("RAN", is_right=True),
        Column("MEANS", shrinks=True),
    ]
    rows = [
        [
            one["what"],
            age_of(one["days"]),
            one["set_by"],
            str(one["removed"]),
            wording.NONE if one["ran_at"] is None else wording.age(one["ran_at"], now),
            MEANING.get(one["what"], ""),
        ]
        for one in found
    ]
    return [*draw(columns, rows, width), "", "What was charged is kept for ever."]


def kept_table(found: Sequence[KeptJob], now: datetime, width: int | None) -> list[str]:
    columns = [Column("JOB"), Column("KEPT BY", shrinks=True), Column("SINCE", is_right=True)]
    rows = [[one["id"], one["user_id"], wording.age(one["at"], now)] for one in found]
    return draw(columns, rows, width) if rows else []


def ran_lines(said: Mapping[str, Any]) -> list[str]:
    counts = {what: count for what, count in said["removed"].items() if count}
    if not counts:
        return ["nothing is old enough"]
    verb = "would be removed" if said["dry_run"] else "removed"
    least = set(said["at_least"])
    lines = [f"{'at least ' if what in least else ''}{counted(what, count)} {verb}" for what, count in counts.items()]
    return lines if said["dry_run"] else [*lines, f"{wording.size(said['freed_bytes'])} given back"]


def counted(what: str, count: int) -> str:
    """Logs and histories are counted by jobs."""
    of_jobs = {"logs": "the logs", "events": "the history"}
    if what in of_jobs:
        return f"{of_jobs[what]} of {wording.plural(count, 'job')}"
    return f"{count} lines of the audit log" if what == "audit" else wording.plural(count, what.removesuffix("s"))
