"""The tables of money: what a seller charges for, the ledger that follows from it, and offers that are left alone for a
while. What is closed or posted never changes; triggers see to that."""

from sqlalchemy import CheckConstraint, Column, ForeignKey, Index, Integer, Table, UniqueConstraint

from crucible.model.ledger import ChargeKind
from crucible.store.columns import (
    Serial,
    dollars,
    flag,
    key,
    known,
    metadata,
    moment,
    money,
    partial_index,
    whole,
    word,
)

usage = Table(
    "usage",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("provider"),
    word("region"),
    word("machine_id"),
    word("order_id", ForeignKey("orders.id")),
    word("job_id", ForeignKey("jobs.id")),
    word("lease_id", ForeignKey("leases.id"), null=True),
    word("kind"),
    money("rate_microusd"),
    whole("per_s"),
    moment("from_at"),
    moment("to_at", null=True),
    money("amount_microusd", null=True),
    dollars("amount_usd", "amount_microusd"),
    flag("is_estimate"),
    known("kind", ChargeKind),
    CheckConstraint("rate_microusd >= 0 AND per_s > 0", name="rate"),
    CheckConstraint("to_at >= from_at", name="to_at"),
    CheckConstraint("(to_at IS NULL) = (amount_microusd IS NULL)", name="amount"),
    UniqueConstraint("provider", "machine_id", "kind", "from_at"),
)
Index("ix_usage_of_job", usage.c.job_id, usage.c.from_at)
partial_index("ix_usage_open", usage.c.provider, usage.c.machine_id, usage.c.kind, where="to_at IS NULL", unique=True)
partial_index("ix_usage_open_of_region", usage.c.provider, usage.c.region, where="to_at IS NULL")
partial_index("ix_usage_open_of_job", usage.c.job_id, where="to_at IS NULL")

postings = Table(
    "postings",
    metadata,
    key(),
    moment("at"),
    word("memo"),
    word("job_id", ForeignKey("jobs.id")),
    word("kind"),
    known("kind", ChargeKind),
)
Index("ix_postings_of_job", postings.c.job_id, postings.c.at)

ledger = Table(
    "ledger",
    metadata,
    key("posting_id", ForeignKey("postings.id")),
    Column("number", Integer, primary_key=True, autoincrement=False),
    word("account"),
    money("amount_microusd"),
    dollars("amount_usd", "amount_microusd"),
)
# The amount is there for the sums, which then read no row.
Index("ix_ledger_of_account", ledger.c.account, ledger.c.amount_microusd)

cooldowns = Table(
    "cooldowns",
    metadata,
    key("provider"),
    key("region"),
    key("zone"),
    key("instance_type"),
    key("market"),
    moment("until"),
    word("reason"),
)
Index("ix_cooldowns_until", cooldowns.c.until)
