"""The tables of reports: what costs are told apart by, sums of each hour and day, and what has to be added to them yet.
All of it follows from `usage` and `postings`."""

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Table, UniqueConstraint

from crucible.model.costs import SUM_NAMES
from crucible.store.columns import Serial, big, key, metadata, moment, word

KEY_NAMES = ("team", "project", "user", "provider", "region", "instance_type", "gpu", "market", "kind")

cost_keys = Table(
    "cost_keys",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    *(word(name) for name in KEY_NAMES),
    UniqueConstraint(*KEY_NAMES, name="uq_cost_keys"),
)


def _number(name: str, *more: Any) -> Column[int]:
    return Column(name, BigInteger, *more, primary_key=True, autoincrement=False)


def _sums(name: str, *columns: Column[Any]) -> Table:
    """Rows lie in the order of their key, which is the order in which they are read."""
    return Table(name, metadata, *columns, *(big(one) for one in SUM_NAMES), sqlite_with_rowid=False)


def _key() -> Column[int]:
    return _number("key_id", ForeignKey("cost_keys.id"))


# `at` is the beginning of the hour or, in UTC, of the day.
cost_hours = _sums("cost_hours", _number("at"), _key())
cost_days = _sums("cost_days", _key(), _number("at"))
cost_job_days = _sums("cost_job_days", _number("at"), key("job_id"), _key())
# What is asked for most, a year of it at a time: one dimension by itself.
cost_day_totals = _sums("cost_day_totals", key("dimension"), _number("at"), key("value"))

# Closed stretches, and postings without a stretch, that are not in the sums yet: written and removed with what they
# are about, so that each is in exactly one of the two.
unsummed_usage = Table(
    "unsummed_usage",
    metadata,
    Column("usage_id", Serial, ForeignKey("usage.id"), primary_key=True, autoincrement=False),
    moment("to_at"),
)
unsummed_postings = Table("unsummed_postings", metadata, key("posting_id", ForeignKey("postings.id")))
