"""The table of budgets. What is spent of one stands nowhere: it follows from the ledger."""

from sqlalchemy import CheckConstraint, Table

from crucible.model.budget import Period, Scope
from crucible.model.spec import WhenSpent
from crucible.store.columns import dollars, key, known, metadata, moment, money, whole, word

budgets = Table(
    "budgets",
    metadata,
    key(),
    word("scope"),
    word("name"),
    word("period"),
    money("limit_microusd"),
    dollars("limit_usd", "limit_microusd"),
    word("when_spent"),
    word("thresholds"),
    moment("starts_at", null=True),
    word("created_by"),
    moment("created_at"),
    whole("version"),
    known("scope", Scope),
    known("period", Period),
    known("when_spent", WhenSpent),
    CheckConstraint("limit_microusd >= 0", name="limit"),
)
