"""Tasks, searches and evaluations in the words of wire.tasks, as plain dictionaries."""

from typing import Any

from crucible.core import evaluation
from crucible.core.sweep import finite, worth
from crucible.engine.trial_desk import Standing
from crucible.model.job import Job
from crucible.model.record import Checkpoint
from crucible.model.sweep import Evaluation, Objective
from crucible.model.units import usd
from crucible.ports.trials import LastAttempt, TaskPage, TaskRow


def page(found: TaskPage, objective: Objective | None) -> dict[str, Any]:
    return {"items": [task(row, objective) for row in found.items], "next_cursor": found.next_cursor}


def task(row: TaskRow, objective: Objective | None) -> dict[str, Any]:
    one, said, last = row.task, row.progress, row.attempt
    is_live = not one.phase.is_terminal
    curve = said.curve if said is not None and is_live else None
    return {
        "index": one.index,
        "id": one.id,
        "phase": one.phase,
        "verdict": one.verdict,
        "params": one.params,
        "value": one.value,
        "value_so_far": None if objective is None else worth(curve, objective),
        "metrics": finite(said.metrics) if said is not None and is_live else one.metrics,
        "step": None if said is None else said.step,
        "fraction": None if said is None else said.fraction,
        "attempts": one.attempts,
        "failures": one.failures,
        "losses": one.losses,
        "reason": one.reason,
        "where": where(last),
        "started_at": None if last is None else last.started_at,
        "ended_at": None if last is None else last.ended_at,
    }


def where(last: LastAttempt | None) -> dict[str, Any] | None:
    if last is None or last.place is None:
        return None
    place = last.place
    return {
        "provider": place.target.provider,
        "region": place.target.region,
        "backend": place.target.backend,
        "instance_type": place.instance_type,
        "spot": place.is_spot,
    }


def sweep(job: Job, stands: Standing) -> dict[str, Any]:
    asked, counts = stands.sweep, stands.counts
    return {
        "job_id": job.id,
        "name": job.name,
        "status": job.status,
        "method": asked.method,
        "parameters": [each.name for each in asked.parameters] or list(asked.trials[0] if asked.trials else ()),
        "objective": None if asked.objective is None else objective(asked.objective),
        "trials": {name: getattr(counts, name) for name in counts.__slots__},
        "best": None if stands.best is None else best(stands.best, asked.objective, stands.saved),
        "spent_usd": usd(stands.spent),
        "budget_usd": None if job.budget_microusd is None else usd(job.budget_microusd),
        "drained": job.drained,
        "note": stands.note,
    }


def objective(asked: Objective) -> dict[str, Any]:
    return {"metric": asked.metric, "goal": asked.goal, "reading": asked.reading}


def best(row: TaskRow, asked: Objective | None, saved: Checkpoint | None) -> dict[str, Any]:
    checkpoint = None if saved is None else {"step": saved.step, "uri": saved.uri}
    return {**task(row, asked), "checkpoint": checkpoint}


def evaluated(job: Job, asked: Evaluation, made: evaluation.Table, next_cursor: int | None) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "name": job.name,
        "status": job.status,
        "datasets": list(made.datasets),
        "metrics": list(made.metrics),
        "baseline": asked.baseline,
        "goal": asked.goal,
        "rows": [table_row(row, made.datasets) for row in made.rows],
        "next_cursor": next_cursor,
    }


def table_row(row: evaluation.TableRow, datasets: tuple[str, ...]) -> dict[str, Any]:
    cells = [
        {"dataset": dataset, "phase": cell.phase, "metrics": figures(cell.figures), "reason": cell.reason}
        for dataset, cell in zip(datasets, row.cells, strict=True)
        if cell is not None
    ]
    return {"model": row.model, "cells": cells, "means": figures(row.means)}


def figures(found: Any) -> dict[str, Any]:
    return {name: {"value": one.value, "delta": one.delta, "is_better": one.is_better} for name, one in found.items()}
