"""The tasks of a job as a table, and the words for how they stand."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.trial_shapes import Task

# Where a task stands, in one word; a verdict says more than a phase.
_VERDICTS = {"pruned": "stopped", "skipped": "skipped", "reused": "reused"}


def state(task: Task) -> str:
    if task["verdict"] is not None and task["phase"] in ("succeeded", "cancelled"):
        return _VERDICTS.get(task["verdict"], task["verdict"])
    return "completed" if task["phase"] == "succeeded" else task["phase"]


def task_table(
    tasks: Sequence[Task], now: datetime, width: int | None, paint: Callable[[str], str] = lambda word: word
) -> list[str]:
    columns = [
        Column("TASK", is_right=True),
        Column("STATE", paint=paint),
        Column("DONE", is_right=True),
        Column("TRIES", is_right=True),
        Column("RAN", is_right=True),
        Column("WHERE"),
        Column("GIVEN", shrinks=True),
        Column("REASON", shrinks=True),
    ]
    rows = [
        [
            str(task["index"]),
            state(task),
            done(task),
            str(task["attempts"]),
            wording.span(task.get("started_at"), task.get("ended_at"), now),
            where(task),
            given(task),
            task["reason"] or "",
        ]
        for task in tasks
    ]
    return draw(columns, rows, width) if rows else []


def done(task: Task) -> str:
    fraction = task.get("fraction")
    return wording.percent(fraction) if fraction is not None else wording.NONE


def where(task: Task) -> str:
    place = task.get("where")
    return wording.NONE if place is None else f"{place['provider']}/{place['region']}"


def given(task: Task) -> str:
    return " ".join(f"{name}={shown(value)}" for name, value in (task["params"] or {}).items())


def shown(value: Any) -> str:
    """A parameter or metric as people write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return wording.number(value)
    return value if isinstance(value, str) else json.dumps(value)
