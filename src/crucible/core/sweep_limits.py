"""When no further trial of a job is begun, and when all of them are given up: its time, its money, its failures."""

from dataclasses import dataclass
from datetime import datetime

from crucible.model.job import Job
from crucible.model.spec import JobSpec
from crucible.model.units import NOTHING, MicroUsd, usd


@dataclass(frozen=True, slots=True)
class Ran:
    """How long the trials of a job took: those that have ended, and each of those that run."""

    ended: int = 0
    ended_s: float = 0.0  # together
    live_s: tuple[float, ...] = ()


def drain_reason(job: Job, spec: JobSpec, ran: Ran, spent: MicroUsd, trials: int, now: datetime) -> str | None:
    """Why no further trial is begun; None: they are."""
    limit = spec.sweep.max_time if spec.sweep is not None else None
    if limit is not None and job.started_at is not None and now - job.started_at >= limit:
        return f"no trial begins later than {limit} after the first"
    budget = spec.constraints.budget
    if budget is None or spent == 0:
        return None
    coming = still_to_come(job, ran, spent, trials)
    if spent + coming < budget:
        return None
    running = f", and those that run are expected to take {dollars(coming)} more" if coming else ""
    return f"the budget of {dollars(budget)} is used up: trials have cost {dollars(spent)}{running}"


def still_to_come(job: Job, ran: Ran, spent: MicroUsd, trials: int) -> MicroUsd:
    """What the trials that run are likely to cost until their end: each as long as the mean of those that have ended,
    at what an hour of them has cost so far. Before any has ended, what the plan expected of each."""
    used_s = ran.ended_s + sum(ran.live_s)
    if not ran.ended or used_s <= 0:
        each = (job.cost_estimated_microusd or 0) / max(trials, 1)
        return MicroUsd(max(NOTHING, round(each * len(ran.live_s)) - spent))
    mean_s = ran.ended_s / ran.ended
    left_s = sum(max(0.0, mean_s - each) for each in ran.live_s)
    return MicroUsd(round(spent * left_s / used_s))


def failed_reason(spec: JobSpec, failed: int) -> str | None:
    """Why all of it is given up; None: it is not."""
    many = spec.sweep or spec.evaluation
    if many is None or many.max_failures is None or failed <= many.max_failures:
        return None
    return f"more tasks failed than max_failures allows ({many.max_failures})"


def dollars(amount: MicroUsd) -> str:
    return f"${usd(amount):,.2f}" if amount >= 100_000 else f"${usd(amount):.4f}"
