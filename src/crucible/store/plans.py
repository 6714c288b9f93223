"""Plans as they were shown, and what came of them."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.ids import JobId
from crucible.model.record import Prediction
from crucible.ports.store import PredictionQuery
from crucible.store.mapping import Rows, micros, to_json
from crucible.store.record_tables import plans as plan_table
from crucible.store.record_tables import predictions as prediction_table
from crucible.store.sql import Sql, Transaction

PREDICTIONS = Rows(Prediction, prediction_table)

# --- plans ----------------------------------------------------------------------------------------------------------

_NEW_PLAN = upsert(plan_table).values({column.name: bindparam(column.name) for column in plan_table.columns})
_SAVE_PLAN = Sql(
    _NEW_PLAN.on_conflict_do_update(
        index_elements=["job_id"],
        set_={"body": _NEW_PLAN.excluded.body, "created_at": _NEW_PLAN.excluded.created_at},
    )
)
_PLAN = Sql(select(plan_table.c.body).where(plan_table.c.job_id == bindparam("job_id")))


def save_plan(tx: Transaction, job_id: JobId, body: Mapping[str, Any], now: datetime) -> None:
    save_plan_text(tx, job_id, to_json(body), now)


def save_plan_text(tx: Transaction, job_id: JobId, text: str, now: datetime) -> None:
    tx.run(_SAVE_PLAN, {"job_id": job_id, "body": text, "created_at": micros(now)})


def plan(tx: Transaction, job_id: JobId) -> Mapping[str, Any] | None:
    row = tx.row(_PLAN, job_id=job_id)
    found: Mapping[str, Any] | None = None if row is None else json.loads(row[0])
    return found


# --- predictions ----------------------------------------------------------------------------------------------------

_NEW = upsert(prediction_table).values(PREDICTIONS.parameters())
_SAVE = Sql(
    _NEW.on_conflict_do_update(
        index_elements=["job_id"],
        set_={
            column.name: func.coalesce(_NEW.excluded[column.name], column)
            for column in PREDICTIONS.columns
            if column.name != "job_id"
        },
    )
)
_ONE = Sql(select(*PREDICTIONS.columns).where(prediction_table.c.job_id == bindparam("job_id")))


def save_prediction(tx: Transaction, prediction: Prediction) -> None:
    """What is None is left as it was."""
    tx.run(_SAVE, PREDICTIONS.pack(prediction))


def prediction(tx: Transaction, job_id: JobId) -> Prediction | None:
    row = tx.row(_ONE, job_id=job_id)
    return None if row is None else PREDICTIONS.unpack(row)


def predictions(tx: Transaction, query: PredictionQuery) -> Sequence[Prediction]:
    names = ("framework", "model_class", "gpu", "team", "provider", "status")
    given = {name: value for name in names if (value := getattr(query, name)) is not None}
    return PREDICTIONS.unpack_all(tx.rows(_ended(frozenset(given), query.teaches), limit=query.limit, **given))


@cache
def _ended(given: frozenset[str], teaches: bool) -> Sql:
    columns = prediction_table.c
    query = select(*PREDICTIONS.columns).where(columns.ended_at.is_not(None))
    if teaches:
        query = query.where(columns.book_hours.is_not(None))
    for name in sorted(given):
        query = query.where(columns[name] == bindparam(name))
    return Sql(query.order_by(columns.ended_at.desc(), columns.job_id).limit(bindparam("limit")))
