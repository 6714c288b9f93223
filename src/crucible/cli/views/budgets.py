"""Budgets as text. Pure: what is shown is a function of what the server said."""

from collections.abc import Sequence
from datetime import tzinfo

from crucible.cli import wording
from crucible.cli.table import Column, draw, pairs
from crucible.client.budget_shapes import Budget

TABLE = (
    Column("BUDGET", shrinks=True),
    Column("LIMIT", is_right=True),
    Column("SPENT", is_right=True),
    Column("", is_right=True),
    Column("RESERVED", is_right=True),
    Column("LEFT", is_right=True),
    Column("PER HOUR", is_right=True),
    Column("LASTS UNTIL"),
)
# Left out where there is no room for everything.
WIDE = ("RESERVED", "PER HOUR")
NARROW = 110
WHEN = {"pause": "jobs save, stop and wait for more", "stop": "jobs save and end"}


def budget_table(found: Sequence[Budget], width: int | None, zone: tzinfo | None = None) -> list[str]:
    if not found:
        return []
    rows = [
        [
            one["id"],
            wording.money(one["limit_usd"]),
            wording.money(one["spent_usd"]),
            share(one),
            wording.money(one["reserved_usd"]),
            wording.money(one["left_usd"]),
            wording.money(one["per_hour_usd"]),
            wording.clock(one["runs_out_at"], zone) if one["runs_out_at"] else wording.NONE,
        ]
        for one in found
    ]
    if width is not None and width < NARROW:
        kept = [place for place, column in enumerate(TABLE) if column.title not in WIDE]
        return draw([TABLE[place] for place in kept], [[row[place] for place in kept] for row in rows], width)
    return draw(TABLE, rows, width)


def budget_page(one: Budget, zone: tzinfo | None = None) -> list[str]:
    out = one["runs_out_at"]
    rows = [
        ("Budget", one["id"]),
        ("Limit", f"{wording.money(one['limit_usd'])}{' each month' if one['period'] == 'month' else ''}"),
        ("Spent", f"{wording.money(one['spent_usd'])} ({share(one)})"),
        (
            "Reserved",
            f"{wording.money(one['reserved_usd'])} to save and stop what runs" if one["jobs"] else wording.NONE,
        ),
        ("Left", f"{wording.money(one['left_usd'])} for new machines"),
        ("Per hour", wording.money(one["per_hour_usd"])),
        ("Runs out", wording.clock(out, zone) if out else wording.NONE),
        (
            "Expected",
            f"{wording.money(one['expected_usd'])} at the end of the month" if one["ends_at"] else wording.NONE,
        ),
        ("When spent", WHEN[one["when_spent"]]),
        ("Tells at", ", ".join(f"{each:.0%}" for each in one["thresholds"]) or wording.NONE),
        ("Counts from", wording.clock(one["counts_from"], zone) if one["counts_from"] else wording.NONE),
        ("Set by", f"{one['created_by']}, {wording.clock(one['created_at'], zone)}"),
        ("Jobs", ", ".join(one["jobs"]) or wording.NONE),
    ]
    return pairs([(label, value) for label, value in rows if value != wording.NONE])


def budget_line(one: Budget) -> str:
    """What was set."""
    limit = f"{wording.money(one['limit_usd'])}{' each month' if one['period'] == 'month' else ''}"
    return f"{one['id']}: {limit}, {wording.money(one['spent_usd'])} spent; then {WHEN[one['when_spent']]}"


def share(one: Budget) -> str:
    return f"{one['spent_usd'] / one['limit_usd']:.0%}" if one["limit_usd"] else wording.NONE
