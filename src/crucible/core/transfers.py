"""What moving data costs, as it is charged: the bytes that moved times the lane, by the function that plans are made
with. Pure."""

from dataclasses import dataclass
from datetime import datetime

from crucible.core.cost import transfer_cost
from crucible.core.ledger import job_account
from crucible.core.offers import OfferTable
from crucible.model.ids import JobId
from crucible.model.ledger import TRANSFER, ChargeKind, Entry, Posting
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """Bytes that went from one "provider/region" to another. `name` is its own for ever: charged twice, it is charged
    once."""

    name: str
    what: str
    source: str
    target: str
    size_bytes: int


def charge(table: OfferTable, moved: Transfer, job_id: JobId, now: datetime) -> tuple[Posting, ...]:
    """Nothing for a lane that is free, or whose price nobody knows."""
    cost = transfer_cost(table, moved.source, moved.target, moved.size_bytes)
    if not cost:
        return ()
    provider = moved.source.partition("/")[0]
    posting = Posting(
        id=f"{TRANSFER}{moved.name}",
        at=now,
        memo=f"{moved.what}: {moved.size_bytes} bytes from {moved.source} to {moved.target}",
        job_id=job_id,
        kind=ChargeKind.TRANSFER,
        entries=(Entry(job_account(job_id), cost), Entry(f"provider:{provider}", MicroUsd(-cost))),
    )
    return (posting,)


def is_transfer(posting: Posting) -> bool:
    """Of its own, as opposed to what a machine's meter counts."""
    return posting.id.startswith(TRANSFER)
