"""From columns to one candidate, and what is said about it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from crucible.core import cost, risk
from crucible.core.candidates import Ways
from crucible.core.offers import UNKNOWN, Bools, Floats, Ints, OfferTable, on_demand_sibling
from crucible.core.perf import Hours
from crucible.core.proposal import Candidate, Part
from crucible.core.rules import Ruling, home_of
from crucible.model.offer import Market
from crucible.model.spec import JobSpec, Replication, Strategy
from crucible.model.units import MICRO, MicroUsd

CONFIDENCE = ("low", "medium", "high")
# Narrowings of a quantile that is only shown: to three thousandths of what interruptions are expected to cost.
SHOWN_EXACT = 3
# Differences below this are noise to a person.
NOTABLE = 0.01
MANIFOLD = 2.0  # from here on a share of a hundred reads badly


def candidates_of(
    table: OfferTable, hours: Hours, ways: Ways, reliability: Floats, score: Floats, is_enabled: Bools
) -> list[Candidate]:
    """One for each way."""
    p50, p90 = quantiles(ways)
    cost_p50, cost_p90 = cost_of(table, ways, p50), cost_of(table, ways, p90)
    before = ways.start_h + ways.staging_h
    return [
        timed(
            hours,
            int(table.shape[ways.row[i]]),
            Candidate(
                parts=parts_of(table, ways, i),
                is_enabled=bool(is_enabled[i]),
                price_per_hour=MicroUsd(int(ways.price[i])),
                start_s=float(ways.start_h[i]) * 3600,
                staging_h=float(ways.staging_h[i]),
                work_h=float(ways.work_h[i]),
                expected_h=float(ways.wall_h[i]),
                p50_h=float(p50[i] + before[i]),
                p90_h=float(p90[i] + before[i]),
                cost=MicroUsd(int(ways.cost[i])),
                cost_p50=MicroUsd(int(cost_p50[i])),
                cost_p90=MicroUsd(int(cost_p90[i])),
                egress=MicroUsd(int(ways.egress[i])),
                interruptions=float(ways.course.interruptions[i]),
                interval_s=interval_s(ways, i),
                reliability=float(reliability[i]),
                confidence="",
                usd_per_step=None,
                usd_per_token=None,
                on_demand_cost=on_demand_cost(table, ways, i),
                score=float(score[i]),
                why="",
            ),
        )
        for i in range(len(ways))
    ]


def timed(hours: Hours, shape: int, one: Candidate) -> Candidate:
    """With what follows from the hours of work, or without everything that does if nobody knows them."""
    sure = CONFIDENCE[int(hours.confidence[shape])]
    if np.isnan(hours.hours[shape]):
        return replace(one, confidence=sure, **NO_TIMES)
    work_h, total = one.work_h or 0.0, one.cost or MicroUsd(0)
    return replace(
        one,
        confidence=sure,
        usd_per_step=per_unit(total, float(hours.steps_per_hour[shape]), work_h),
        usd_per_token=per_unit(total, float(hours.tokens_per_hour[shape]), work_h),
    )


NO_TIMES: Mapping[str, Any] = dict.fromkeys(
    ("work_h", "expected_h", "p50_h", "p90_h", "cost", "cost_p50", "cost_p90", "interruptions", "interval_s",
     "on_demand_cost")
)  # fmt: skip


def parts_of(table: OfferTable, ways: Ways, i: int) -> tuple[Part, ...]:
    taken, firm = int(ways.nodes[i] - ways.firm[i]), int(ways.firm[i])
    first = Part(table.listing(int(ways.row[i])), taken)
    return (first,) if not firm else (first, Part(table.listing(int(ways.firm_row[i])), firm))


def interval_s(ways: Ways, i: int) -> float | None:
    """None where no checkpoint is worth its time."""
    interval_h = float(ways.course.interval_h[i])
    return interval_h * 3600 if ways.hazard[i] > 0 and interval_h < ways.work_h[i] else None


def quantiles(ways: Ways) -> tuple[Floats, Floats]:
    """Hours of half and of nine in ten, from the first moment of work. Machines are paid for all of them: bills have
    the same quantiles."""
    p50, p90 = ways.course.wall_h.copy(), ways.course.wall_h.copy()
    risky = np.flatnonzero(ways.hazard > 0)
    if len(risky):
        twice = ways.take(np.concatenate([risky, risky]))
        q = np.repeat([0.5, 0.9], len(risky))
        p50[risky], p90[risky] = np.split(risk.wall_quantile(twice.exposure, twice.course, q, SHOWN_EXACT), 2)
    return p50, p90


def cost_of(table: OfferTable, ways: Ways, worked_h: Floats) -> Ints:
    seller = table.seller[ways.row]
    billed = cost.billed_hours(ways.start_h + worked_h, table.sellers.unit_s[seller], table.sellers.minimum_s[seller])
    return cost.machine_cost(ways.price, np.ones(len(ways), dtype=np.int64), billed) + ways.egress


def on_demand_cost(table: OfferTable, ways: Ways, i: int) -> MicroUsd | None:
    """What the same machines cost where they cannot be taken away."""
    row = int(ways.row[i])
    sibling = on_demand_sibling(table, row) if table.market[row] == Market.SPOT else UNKNOWN
    if sibling == UNKNOWN:
        return None
    price = int(table.price[sibling]) * int(ways.nodes[i])
    return MicroUsd(round(price * float(ways.start_h[i] + ways.work_h[i])) + int(ways.egress[i]))


def per_unit(total: MicroUsd, per_hour: float, hours: float) -> float | None:
    units = per_hour * hours
    return None if np.isnan(units) or units <= 0 else total / MICRO / units


# --- why ---------------------------------------------------------------------------------------------------

_AIMS = {
    Strategy.BALANCED: "best balance",
    Strategy.CHEAPEST: "cheapest",
    Strategy.FASTEST: "fastest",
    Strategy.RELIABLE: "most reliable",
    Strategy.NEAR_DATA: "best where the data is",
    Strategy.SPREAD: "cheapest, spread",
    Strategy.OWN_FIRST: "best of your own machines",
}


def chosen_why(chosen: Candidate, objective: Strategy) -> str:
    if chosen.price_per_hour == 0:
        return "your own, free of charge"
    return _AIMS[objective]


def other_why(other: Candidate, chosen: Candidate) -> str:
    """Against the choice: what it costs more, and what one gets for it."""
    said = [money_words(other, chosen), time_words(other, chosen), risk_words(other, chosen)]
    if other.cost is None and other.price_per_hour != chosen.price_per_hour and chosen.price_per_hour:
        ratio = other.price_per_hour / chosen.price_per_hour
        said.append(f"{ratio:.1f}× per hour" if ratio >= MANIFOLD else f"{ratio - 1:+.0%} per hour")
    return ", ".join(filter(None, said)) or "as good in cost, time and risk"


def money_words(other: Candidate, chosen: Candidate) -> str | None:
    if other.cost is None or chosen.cost is None:
        return None
    if not chosen.cost:
        return f"costs ${other.cost / MICRO:,.2f}" if other.cost else None
    ratio = other.cost / chosen.cost
    if ratio >= MANIFOLD:
        return f"{ratio:.1f}× cost"
    return None if abs(ratio - 1) < NOTABLE else f"{ratio - 1:+.0%} cost"


def time_words(other: Candidate, chosen: Candidate) -> str | None:
    if not other.expected_h or not chosen.expected_h:
        return None
    ratio = other.expected_h / chosen.expected_h
    if ratio >= MANIFOLD:
        return f"{ratio:.1f}× hours"
    if abs(ratio - 1) < NOTABLE:
        return None
    return f"{abs(ratio - 1):.0%} {'slower' if ratio > 1 else 'faster'}"


def risk_words(other: Candidate, chosen: Candidate) -> str | None:
    difference = other.reliability - chosen.reliability
    if abs(difference) < NOTABLE:
        return None
    return f"{abs(difference):.0%} {'more' if difference > 0 else 'less'} likely within the limits"


def notes_of(spec: JobSpec, hours: Hours, ruling: Ruling) -> tuple[str, ...]:
    """What a person should know before believing the figures."""
    notes = []
    limits = spec.constraints
    if np.isnan(hours.hours).all():
        notes.append("no estimate of the hours: give resources.estimated_hours or workload to see totals")
        if limits.budget is not None or limits.deadline is not None:
            notes.append("budget and deadline cannot be checked before the job runs")
    else:
        notes.append(hours.basis)
    home = home_of(spec)
    if home is not None and ruling.moves is None and spec.data.replication_policy is not Replication.NONE:
        notes.append("what moving the data costs is not counted: give data.size and data.region")
    return tuple(notes)
