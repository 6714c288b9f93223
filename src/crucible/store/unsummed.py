"""What is closed and not in the sums of costs yet: noted in the transaction that closes it."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import bindparam, insert, select

from crucible.model.ledger import TRANSFER
from crucible.store import cost_tables as c
from crucible.store.mapping import micros
from crucible.store.money_tables import usage
from crucible.store.sql import Sql, Transaction

_U = usage.c
_IS_CLOSED = Sql(
    insert(c.unsummed_usage).from_select(
        ["usage_id", "to_at"],
        select(_U.id, _U.to_at).where(
            _U.provider == bindparam("provider"),
            _U.machine_id == bindparam("machine_id"),
            _U.kind == bindparam("kind"),
            _U.from_at == bindparam("since"),
        ),
    )
)
_IS_POSTED = Sql(insert(c.unsummed_postings).values(posting_id=bindparam("posting_id")))


def note_closed(tx: Transaction, meter: Mapping[str, str], from_at: datetime) -> None:
    tx.run(_IS_CLOSED, {**meter, "since": micros(from_at)})


def note_posting(tx: Transaction, posting_id: str) -> None:
    """Those that follow from stretches are counted with them."""
    if posting_id.startswith(TRANSFER):
        tx.run(_IS_POSTED, {"posting_id": posting_id})
