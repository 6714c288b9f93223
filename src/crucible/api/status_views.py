"""A job's status in the words of wire.status, as plain dictionaries."""

from typing import Any

from crucible.api.cost_views import money
from crucible.api.views import selected
from crucible.core.status import CostNow, Eta, Figure, ProgressNow, Status, Utilisation
from crucible.model.health import Finding

FIGURES = (
    "cpu",
    "memory",
    "gpu",
    "gpu_memory",
    "disk",
    "network_received_bytes_per_s",
    "network_sent_bytes_per_s",
)


def status(found: Status) -> dict[str, Any]:
    job = found.job
    return {
        "job_id": job.id,
        "name": job.name,
        "job_type": job.job_type,
        "execution_mode": job.execution_mode,
        "phase": job.status,
        "desired": job.desired,
        "reason": job.reason,
        "at": found.at,
        "place": selected(job),
        "progress": progress(found.progress),
        "eta": None if found.eta is None else eta(found.eta),
        "cost": cost(found.cost),
        "health": health(found),
        "utilisation": utilisation(found.utilisation),
        "unknown": found.unknown,
    }


def progress(now: ProgressNow) -> dict[str, Any]:
    return {
        "step": now.step,
        "total_steps": now.total_steps,
        "fraction": now.fraction,
        "steps_per_s": now.steps_per_s,
        "at": now.at,
    }


def eta(found: Eta) -> dict[str, Any]:
    return {
        "basis": found.basis,
        "at": found.at,
        "latest_at": found.latest_at,
        "seconds": found.seconds,
        "seconds_high": found.seconds_high,
    }


def cost(now: CostNow) -> dict[str, Any]:
    return (
        money("so_far", now.so_far)
        | money("per_hour", now.per_hour)
        | money("remaining", now.remaining)
        | money("remaining_high", now.remaining_high)
        | money("at_risk", now.at_risk)
    )


def health(found: Status) -> dict[str, Any]:
    return {"status": found.health, "findings": [finding(one) for one in found.findings]}


def finding(one: Finding) -> dict[str, Any]:
    return {
        "code": one.code,
        "severity": one.severity,
        "words": one.words,
        "advice": one.advice,
        "since": one.opened_at,
        "until": one.closed_at,
        "job_id": one.job_id,
        "details": one.details,
    }


def utilisation(use: Utilisation) -> dict[str, Any]:
    counts = {"machines": use.machines, "heard": use.heard, "gpus": use.gpus}
    return counts | {name: figure(getattr(use, name)) for name in FIGURES}


def figure(one: Figure | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"mean": one.mean, "low": one.low, "high": one.high, "worst_rank": one.worst_rank}
