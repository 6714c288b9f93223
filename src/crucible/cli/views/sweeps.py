"""A search for people: how it stands, its trials, the best of them."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal

from crucible.cli import wording
from crucible.cli.csv_lines import csv_line
from crucible.cli.table import Column, draw, pairs, printable
from crucible.cli.views.tasks import given, shown, state, where
from crucible.client.trial_shapes import BestTrial, Sweep, Task
from crucible.model.sweep import as_text, variable

_Count = Literal["completed", "pruned", "failed", "running", "waiting", "skipped", "cancelled"]
_COUNTED: tuple[tuple[_Count, str], ...] = (
    ("completed", "completed"),
    ("pruned", "stopped early"),
    ("failed", "failed"),
    ("running", "running"),
    ("waiting", "waiting"),
    ("skipped", "skipped"),
    ("cancelled", "cancelled"),
)


def standing(sweep: Sweep) -> list[str]:
    """A few lines over the table."""
    counts = sweep["trials"]
    parts = [f"{counts[name]} {word}" for name, word in _COUNTED if counts[name]]
    trials = wording.plural(counts["total"], "trial")
    lines = [f"{printable(sweep['name'])} is {sweep['status']}: {trials} by {sweep['method']}, {', '.join(parts)}"]
    best = sweep["best"]
    if best is not None and sweep["objective"] is not None:
        metric, value = sweep["objective"]["metric"], wording.number(best["value"])
        lines.append(f"best is trial {best['index']} with {printable(metric)} {value}: {printable(given(best))}")
    if sweep["note"]:
        lines.append(printable(sweep["note"]))
    if sweep["drained"]:
        lines.append(f"no further trial begins: {printable(sweep['drained'])}")
    if sweep["budget_usd"] is not None:
        lines.append(f"spent {wording.money(sweep['spent_usd'])} of {wording.money(sweep['budget_usd'])}")
    return lines


def trial_table(
    sweep: Sweep,
    trials: Sequence[Task],
    now: datetime,
    width: int | None,
    paint: Callable[[str], str] = lambda word: word,
) -> list[str]:
    names = sweep["parameters"]
    metric = sweep["objective"]["metric"] if sweep["objective"] is not None else None
    columns = [
        Column("TRIAL", is_right=True),
        Column("STATE", paint=paint),
        *([Column(printable(metric).upper(), is_right=True)] if metric is not None else []),
        *(Column(printable(name).upper(), is_right=True, shrinks=True) for name in names),
        Column("STEP", is_right=True),
        Column("RAN", is_right=True),
        Column("REASON", shrinks=True),
    ]
    rows = [
        [
            str(one["index"]),
            state(one),
            *([value(one)] if metric is not None else []),
            *(shown((one["params"] or {}).get(name, wording.NONE)) for name in names),
            wording.NONE if one.get("step") is None else str(one.get("step")),
            wording.span(one.get("started_at"), one.get("ended_at"), now),
            one["reason"] or "",
        ]
        for one in trials
    ]
    return draw(columns, rows, width) if rows else []


def value(trial: Task) -> str:
    """`~`: so far."""
    so_far = trial.get("value_so_far")
    if trial["value"] is None and so_far is not None:
        return f"~{wording.number(so_far)}"
    return wording.number(trial["value"])


def best_page(sweep: Sweep, best: BestTrial) -> list[str]:
    objective = sweep["objective"]
    metric = objective["metric"] if objective is not None else "value"
    rows = [("Trial", str(best["index"])), (printable(metric), wording.number(best["value"]))]
    rows += [(printable(name), printable(shown(one))) for name, one in (best["params"] or {}).items()]
    others = {name: one for name, one in best["metrics"].items() if name != metric}
    if others:
        rows.append(("Also", ", ".join(f"{printable(name)} {wording.number(one)}" for name, one in others.items())))
    rows.append(("Ran", f"{wording.span(best.get('started_at'), best.get('ended_at'), _LONG_AGO)} on {where(best)}"))
    saved = best["checkpoint"]
    rows.append(("Checkpoint", f"step {saved['step']}: {printable(saved['uri'])}" if saved else "none"))
    return pairs(rows)


_LONG_AGO = datetime.fromisoformat("1970-01-01T00:00:00+00:00")  # what has ended needs no clock


def as_variables(best: BestTrial) -> list[str]:
    """Lines that a shell reads: `eval "$(crucible sweep best JOB --env)"`."""
    return [f"export {variable(name)}={shlex.quote(as_text(one))}" for name, one in (best["params"] or {}).items()]


def as_csv(sweep: Sweep, trials: Iterable[Task]) -> Iterable[str]:
    """With a line of titles; every parameter and every metric of the first trials has its column."""
    found = list(trials)
    metrics = sorted({name for one in found for name in one["metrics"]})
    lead = ["trial", "state", "value"]
    tail = ["attempts", "started_at", "ended_at", "provider", "region", "instance_type", "reason"]
    titles = [*lead, *sweep["parameters"], *(f"metric.{name}" for name in metrics), *tail]
    yield csv_line(titles)
    for one in found:
        place = one.get("where")
        params, measured = one["params"] or {}, one["metrics"]
        yield csv_line(
            [
                one["index"],
                state(one),
                one["value"],
                *(params.get(name) for name in sweep["parameters"]),
                *(measured.get(name) for name in metrics),
                one["attempts"],
                one.get("started_at"),
                one.get("ended_at"),
                *((place["provider"], place["region"], place["instance_type"]) if place else (None,) * 3),
                one["reason"],
            ]
        )
