"""A plan as text: what was chosen, what else there is, and why the rest was not."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, Row, draw, printable
from crucible.client.shapes import Plan

# Reasons that a person reads; more is for -o json.
SHOWN_REJECTIONS = 5


def plan_lines(plan: Plan, *, width: int | None, tick: str = "✓") -> list[str]:
    chosen, others = plan["chosen"], plan["alternatives"]
    rows = [_row(tick, chosen)] if chosen else []
    rows += [_row("", option) for option in others]
    lines = draw(_COLUMNS, rows, width) if rows else []
    if not chosen:
        lines.append(printable(f"no place now: {plan.get('reason') or 'nothing fits'}; the job would wait"))
    return [*lines, *_rejections(plan["rejections"]), *(f"warning: {printable(w)}" for w in plan.get("warnings", []))]


_COLUMNS = (
    Column(""),
    Column("WHERE"),
    Column("INSTANCE"),
    Column("GPUS", is_right=True),
    Column("SPOT"),
    Column("$/H", is_right=True),
    Column("HOURS", is_right=True),
    Column("TOTAL", is_right=True),
    Column("WHY", shrinks=True),
)


def _row(mark: str, option: Mapping[str, Any]) -> Row:
    count = int(option.get("count") or 1)
    price = option.get("price_per_hour_usd")
    hours = option.get("estimated_hours")
    return [
        mark,
        f"{option.get('provider')}/{option.get('region')}",
        f"{count} × {option.get('instance_type')}",
        f"{count * int(option.get('gpus') or 0)} {option.get('gpu') or ''}".rstrip(),
        "spot" if option.get("is_spot") else "-",
        wording.money(None if price is None else price * count),
        wording.NONE if hours is None else f"{hours:g}",
        wording.money(option.get("estimated_cost_usd")),
        str(option.get("why") or ""),
    ]


def _rejections(rejections: Sequence[Mapping[str, Any]]) -> list[str]:
    shown = [
        printable(f"not {one.get('provider')}/{one.get('region')} {one.get('instance_type')}: {one.get('reason')}")
        for one in rejections[:SHOWN_REJECTIONS]
    ]
    more = len(rejections) - SHOWN_REJECTIONS
    return [*shown, f"and {wording.plural(more, 'more offer')} that do not fit: -o json"] if more > 0 else shown
