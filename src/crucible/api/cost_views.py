"""Costs in the words of wire.costs, as plain dictionaries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from crucible.core.costs import Costs, KindCost, MachineCost, Remaining
from crucible.core.ledger import accrued
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
