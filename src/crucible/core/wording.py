"""From columns to one candidate, and what is said about it."""

import numpy as np

from crucible.core import cost, risk
from crucible.core.candidates import Ways, on_demand_sibling
from crucible.core.offers import UNKNOWN, OfferTable
from crucible.core.perf import Hours
from crucible.core.proposal import Candidate, Part
from crucible.core.rules import Ruling, home_of
from crucible.model.offer import Market
from crucible.model.spec import JobSpec, Replication, Strategy
from crucible.model.units import MICRO, MicroUsd

CONFIDENCE = ("low", "medium", "high")
# Differences below this are noise to a person.
NOTABLE = 0.01


def candidate_of(
    table: OfferTable, hours: Hours, one: Ways, reliability: float, score: float, is_enabled: bool
) -> Candidate:
    """`one` has a single entry."""
    shape = int(table.shape[one.row[0]])
    is_timed = not np.isnan(hours.hours[shape])
    expected, p50, p90 = spans(one)
    total = MicroUsd(int(one.cost[0]))
    steps, tokens = float(hours.steps_per_hour[shape]), float(hours.tokens_per_hour[shape])
    work_h = float(one.work_h[0])
    interval_h = float(one.course.interval_h[0])
    is_risky = bool(one.hazard[0] > 0)
    return Candidate(
        parts=parts_of(table, one),
        is_enabled=is_enabled,
        price_per_hour=MicroUsd(int(one.price[0])),
        start_s=float(one.start_h[0]) * 3600,
        staging_h=float(one.staging_h[0]),
        work_h=work_h if is_timed else None,
        expected_h=expected if is_timed else None,
        p50_h=p50 if is_timed else None,
        p90_h=p90 if is_timed else None,
        cost=total if is_timed else None,
        cost_p50=cost_at(table, one, 0.5) if is_timed else None,
        cost_p90=cost_at(table, one, 0.9) if is_timed else None,
        egress=MicroUsd(int(one.egress[0])),
        interruptions=float(one.course.interruptions[0]) if is_timed else None,
        interval_s=interval_h * 3600 if is_risky and is_timed and interval_h < work_h else None,
        reliability=reliability,
        confidence=CONFIDENCE[int(hours.confidence[shape])],
        usd_per_step=per_unit(total, steps, work_h) if is_timed else None,
        usd_per_token=per_unit(total, tokens, work_h) if is_timed else None,
        on_demand_cost=on_demand_cost(table, one) if is_timed else None,
        score=score,
        why="",
    )


def parts_of(table: OfferTable, one: Ways) -> tuple[Part, ...]:
    taken, firm = int(one.nodes[0] - one.firm[0]), int(one.firm[0])
    first = Part(table.listing(int(one.row[0])), taken)
    return (first,) if not firm else (first, Part(table.listing(int(one.firm_row[0])), firm))


def spans(one: Ways) -> tuple[float, float, float]:
    before = float(one.start_h[0] + one.staging_h[0])
    p50, p90 = (float(risk.wall_quantile(one.exposure, one.course, q)[0]) + before for q in (0.5, 0.9))
    return float(one.wall_h[0]), p50, p90


def cost_at(table: OfferTable, one: Ways, q: float) -> MicroUsd:
    seller = table.shapes.seller[table.shape[one.row]]
    billed = cost.billed_hours(
        one.start_h + risk.billed_quantile(one.exposure, one.course, q),
        table.sellers.unit_s[seller],
        table.sellers.minimum_s[seller],
    )
    return MicroUsd(int((cost.machine_cost(one.price, np.ones(1, dtype=np.int64), billed) + one.egress)[0]))


def on_demand_cost(table: OfferTable, one: Ways) -> MicroUsd | None:
    """What the same machines cost where they cannot be taken away."""
    row = int(one.row[0])
    sibling = on_demand_sibling(table, row) if table.market[row] == Market.SPOT else UNKNOWN
    if sibling == UNKNOWN:
        return None
    price = int(table.price[sibling]) * int(one.nodes[0])
    return MicroUsd(round(price * float(one.start_h[0] + one.work_h[0])) + int(one.egress[0]))


def per_unit(total: MicroUsd, per_hour: float, hours: float) -> float | None:
    units = per_hour * hours
    return None if np.isnan(units) or units <= 0 else total / MICRO / units


# --- why ---------------------------------------------------------------------------------------------------

_AIMS = {
    Strategy.BALANCED: "best balance of cost, time and risk",
    Strategy.CHEAPEST: "cheapest",
    Strategy.FASTEST: "fastest",
    Strategy.RELIABLE: "most reliable",
    Strategy.NEAR_DATA: "best where the data is",
    Strategy.SPREAD: "cheapest",
    Strategy.OWN_FIRST: "best of your own machines",
}


def chosen_why(chosen: Candidate, objective: Strategy, fits: int) -> str:
    if chosen.price_per_hour == 0:
        return "your own machine, free of charge"
    return f"{_AIMS[objective]} of {fits:,} that fit"


def other_why(other: Candidate, chosen: Candidate) -> str:
    """Against the choice: what it costs more, and what one gets for it."""
    said = [money_words(other, chosen), time_words(other, chosen), risk_words(other, chosen)]
    if other.cost is None and other.price_per_hour != chosen.price_per_hour and chosen.price_per_hour:
        said.append(f"{other.price_per_hour / chosen.price_per_hour - 1:+.0%} per hour")
    return ", ".join(filter(None, said)) or "equal; its id comes later"


def money_words(other: Candidate, chosen: Candidate) -> str | None:
    if other.cost is None or chosen.cost is None:
        return None
    if not chosen.cost:
        return f"costs ${other.cost / MICRO:,.2f}" if other.cost else None
    share = other.cost / chosen.cost - 1
    return None if abs(share) < NOTABLE else f"{share:+.0%} cost"


def time_words(other: Candidate, chosen: Candidate) -> str | None:
    if not other.expected_h or not chosen.expected_h:
        return None
    share = other.expected_h / chosen.expected_h - 1
    if abs(share) < NOTABLE:
        return None
    return f"{abs(share):.0%} {'slower' if share > 0 else 'faster'}"


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
