"""Costs in the words of wire.costs, as plain dictionaries."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crucible.core.costs import Costs, KindCost, MachineCost, Remaining
from crucible.core.ledger import accrued
from crucible.core.unit_costs import Saved, UnitCosts
from crucible.core.uses import Use
from crucible.model.job import Job
from crucible.model.ledger import Posting, Usage
from crucible.model.units import MicroUsd, usd


def job_costs(
    job: Job,
    found: Costs,
    rest: Remaining | None,
    usages: Sequence[Usage],
    postings: Sequence[Posting],
    now: datetime,
) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "at": now,
        **charged(found),
        **money("posted", found.posted),
        **money("budget", job.budget_microusd),
        "remaining": None if rest is None else remaining(rest),
        "by_kind": [{"kind": one.kind, **charged(one)} for one in found.kinds],
        "machines": [machine(one) for one in found.machines],
        "intervals": [interval(one, now) for one in usages],
        "postings": [posting(one) for one in postings],
    }


def spent_on(uses: Mapping[Use, int]) -> dict[str, Any]:
    """What was useful, what was idle and why: together what was charged."""
    idle = {use: part for use, part in uses.items() if use is not Use.USEFUL}
    return {
        **money("useful", MicroUsd(uses.get(Use.USEFUL, 0))),
        **money("idle", MicroUsd(sum(idle.values()))),
        "idle_by": [{"use": use, **money("amount", MicroUsd(idle[use]))} for use in Use if use in idle],
    }


def units(found: UnitCosts) -> dict[str, Any]:
    return {
        "per_step_usd": found.per_step,
        "per_sample_usd": found.per_sample,
        "per_token_usd": found.per_token,
    }


def saved(found: Saved) -> dict[str, Any]:
    return money("saved", found.saved) | money("unpriced", found.unpriced)


def money(name: str, amount: MicroUsd | None) -> dict[str, Any]:
    return {f"{name}_microusd": amount, f"{name}_usd": None if amount is None else usd(amount)}


def charged(one: Costs | KindCost | MachineCost) -> dict[str, Any]:
    return money("so_far", one.so_far) | money("per_hour", one.per_hour)


def machine(one: MachineCost) -> dict[str, Any]:
    return {
        "machine_id": one.machine_id,
        "provider": one.provider,
        "region": one.region,
        "order_id": one.order_id,
        "lease_id": one.lease_id,
        "started_at": one.started_at,
        "ended_at": one.ended_at,
        "is_estimate": one.is_estimate,
        **charged(one),
    }


def interval(one: Usage, now: datetime) -> dict[str, Any]:
    return {
        "machine_id": one.machine_id,
        "provider": one.provider,
        "kind": one.rate.kind,
        "lease_id": one.lease_id,
        "from_at": one.from_at,
        "to_at": one.to_at,
        **money("rate", one.rate.amount),
        "per_s": one.rate.per_s,
        **money("amount", accrued(one, now)),
        "is_estimate": one.is_estimate,
    }


def posting(one: Posting) -> dict[str, Any]:
    entries = [{"account": entry.account, **money("amount", entry.amount)} for entry in one.entries]
    return {"id": one.id, "at": one.at, "memo": one.memo, "kind": one.kind, "entries": entries}


def remaining(rest: Remaining) -> dict[str, Any]:
    return {
        "basis": rest.basis,
        "hours": rest.hours,
        "hours_high": rest.hours_high,
        **money("likely", rest.likely),
        **money("high", rest.high),
    }
