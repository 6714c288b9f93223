"""A proposal as JSON: dollars, hours and words, for people and programs."""

from datetime import datetime, timedelta
from typing import Any

from crucible.core.offers import Listing
from crucible.core.proposal import Candidate, Part, Proposal, Refusal
from crucible.model.offer import Market
from crucible.model.units import MICRO, MicroUsd

PlanView = dict[str, Any]

# A price older than this is used, and flagged.
STALE = timedelta(hours=1)


def plan_view(made: Proposal, now: datetime, cpu_ms: float, dead_man: timedelta | None = None) -> PlanView:
    """`dead_man`: after so long without a word from any server, the machines that would be bought end themselves."""
    ages = [(now - part.listing.as_of).total_seconds() for part in made.chosen.parts] if made.chosen else []
    return {
        "chosen": candidate_view(made.chosen, now),
        "alternatives": [candidate_view(one, now) for one in made.alternatives],
        "others": [candidate_view(one, now) for one in made.others],
        "runnable": candidate_view(made.runnable, now),
        "rejections": [refusal_view(one) for one in made.refusals],
        "reason": None if made.chosen else why_nothing(made),
        "strategy": made.strategy,
        "tasks": made.tasks,
        "considered": made.considered,
        "feasible": made.feasible,
        "bound": made.bound,
        "price_age_s": round(max(ages)) if ages else None,
        "is_price_stale": bool(ages) and max(ages) > STALE.total_seconds(),
        "catalog_rows": made.considered,
        "plan_cpu_ms": round(cpu_ms, 2),
        "dead_man_s": None if dead_man is None else round(dead_man.total_seconds()),
        "notes": [*made.notes, *dead_man_note(dead_man)],
    }


def dead_man_note(dead_man: timedelta | None) -> list[str]:
    if dead_man is None:
        return []
    minutes = dead_man.total_seconds() / 60
    return [f"machines that hear from no server for {minutes:g} min write a checkpoint and end themselves"]


def candidate_view(one: Candidate | None, now: datetime) -> dict[str, Any] | None:
    if one is None:
        return None
    first = one.first
    return {
        **listing_view(first),
        "count": one.nodes,
        "parts": [part_view(part) for part in one.parts],
        "is_enabled": one.is_enabled,
        "total_per_hour_usd": one.price_per_hour / MICRO,
        "start_s": round(one.start_s),
        "staging_hours": rounded(one.staging_h),
        "work_hours": rounded(one.work_h),
        "estimated_hours": rounded(one.expected_h),
        "hours_p50": rounded(one.p50_h),
        "hours_p90": rounded(one.p90_h),
        "estimated_cost_usd": dollars(one.cost),
        "cost_p50_usd": dollars(one.cost_p50),
        "cost_p90_usd": dollars(one.cost_p90),
        "egress_usd": dollars(one.egress),
        "on_demand_cost_usd": dollars(one.on_demand_cost),
        "saving": saving(one),
        "interruptions": rounded(one.interruptions),
        "checkpoint_interval_s": None if one.interval_s is None else round(one.interval_s),
        "reliability": round(one.reliability, 4),
        "confidence": one.confidence,
        "usd_per_step": one.usd_per_step,
        "usd_per_token": one.usd_per_token,
        "price_age_s": round((now - first.as_of).total_seconds()),
        "score": rounded(one.score),
        "why": one.why,
    }


def part_view(part: Part) -> dict[str, Any]:
    return {**listing_view(part.listing), "count": part.count}


def listing_view(one: Listing) -> dict[str, Any]:
    return {
        "offer": one.id,
        "provider": one.target.provider,
        "region": one.target.region,
        "zone": one.zone,
        "backend": one.target.backend,
        "instance_type": one.instance_type,
        "gpu": one.gpu,
        "gpus": one.gpus,
        "gpu_memory_gb": one.gpu_memory_gib,
        "market": one.market.name.lower().replace("_", "-"),
        "is_spot": one.market is Market.SPOT,
        "price_per_hour_usd": dollars(one.price),
        "interruptions_per_hour": one.hazard_per_hour,
        "availability": one.availability,
        "as_of": one.as_of,
        "source": one.source,
        "free_gpus": one.free_gpus,
    }


def refusal_view(one: Refusal) -> dict[str, Any]:
    """Flat, so that a list of them reads like a list of offers."""
    return {
        **listing_view(one.example),
        "rule": one.rule.code,
        "field": one.rule.field,
        "offers": one.count,
        "reason": one.reason,
    }


def why_nothing(made: Proposal) -> str:
    if not made.considered:
        return "nothing is for sale: no provider is enabled and the catalog is empty"
    nearest = max(made.refusals, key=lambda refusal: refusal.rule)
    where = f"{nearest.example.target.provider}/{nearest.example.target.region} {nearest.example.instance_type}"
    return f"no offer fits; the nearest, {where}: {nearest.reason}"


def saving(one: Candidate) -> float | None:
    """Against the same machines on demand, as a share."""
    if one.on_demand_cost is None or one.cost is None or not one.on_demand_cost:
        return None
    return round(1 - one.cost / one.on_demand_cost, 4)


def dollars(amount: MicroUsd | None) -> float | None:
    return None if amount is None else amount / MICRO


def rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
