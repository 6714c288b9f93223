"""What is expected of a job when it is planned, and what came of it when it has ended: two halves of one row. What
nobody knows stays None."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import isnan

from crucible.core.offers import OfferTable
from crucible.core.perf import Origin, SpeedBook, work_hours
from crucible.core.proposal import Candidate
from crucible.core.rules import gang_of
from crucible.core.work import work_of
from crucible.model.attempt import Attempt
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.lease import Lease
from crucible.model.ledger import ChargeKind, Usage
from crucible.model.record import Prediction, Progress
from crucible.model.spec import JobSpec
from crucible.model.units import MicroUsd

_HOUR = timedelta(hours=1)


def expected(spec: JobSpec, way: Candidate, table: OfferTable, shipped: SpeedBook) -> Prediction:
    """Of the way in which a job is to run; whose job it is, is filled in later. `shipped` is the book without
    telemetry: a factor must not be learnt from what the factor itself said."""
    work, first = work_of(spec, shipped), way.first
    gang = gang_of(spec, table)
    hours = work_hours(spec, table, gang.nodes, gang.used, shipped)
    book_hours = float(hours.hours[table.shape[first.row]])
    says_nothing = isnan(book_hours) or hours.origin is Origin.GIVEN
    return Prediction(
        job_id=JobId(""),
        framework=work.framework,
        model_class=work.kind.label,
        team=work.team or None,
        planned_on=machines(way.nodes, first.target.provider, first.instance_type),
        gpu=first.gpu,
        gpus=spec.resources.gpus,
        nodes=way.nodes,
        estimated_hours=running_hours(way),
        estimated_cost=way.cost,
        origin=hours.origin,
        book_hours=None if says_nothing else book_hours,
        estimated_hours_high=high_hours(way),
        estimated_cost_high=high_cost(way),
        provider=first.target.provider,
    )


def running_hours(way: Candidate) -> float | None:
    """Without the start of the machines and the move of the data; with what interruptions cost."""
    if way.expected_h is None:
        return None
    return max(way.expected_h - way.start_s / 3600 - way.staging_h, way.work_h or 0.0)


def high_hours(way: Candidate) -> float | None:
    """Nine of ten such jobs have done their work by then."""
    likely = running_hours(way)
    if likely is None or way.p90_h is None:
        return likely
    return max(way.p90_h - way.start_s / 3600 - way.staging_h, likely)


def high_cost(way: Candidate) -> MicroUsd | None:
    """Nine of ten such jobs cost no more. What rarely happens and costs much may lift the mean above that."""
    if way.cost is None or way.cost_p90 is None:
        return way.cost_p90
    return max(way.cost_p90, way.cost)


def machines(count: int, provider: str, instance_type: str) -> str:
    return f"{count} × {provider}/{instance_type}"


# --- what came of it --------------------------------------------------------------------------------------


def came_of(
    job: Job,
    attempts: Sequence[Attempt],
    leases: Iterable[Lease],
    progress: Sequence[Progress],
    now: datetime,
    charged: MicroUsd | None = None,
    paid_h: float | None = None,
) -> Prediction:
    """`job` has ended. Asked again it says the same, but for machines that are not given back yet: they are paid until
    `now`. `charged` is what the ledger says, and `paid_h` how long a machine of it is paid for; None, where its
    sellers charge nothing."""
    ran = [(span, attempt) for attempt in attempts if (span := ran_during(attempt)) is not None]
    hours = covered([span for span, _ in ran]) / _HOUR if ran else None
    steps = progress[0].step if len(progress) == 1 else None
    first = min((attempt.resume_step or 0 for _, attempt in ran), default=0)
    is_placed = job.selected_provider is not None and job.selected_instance_type is not None
    return Prediction(
        job_id=job.id,
        status=job.status,
        ran_on=machines(job.selected_count or 1, str(job.selected_provider), str(job.selected_instance_type))
        if is_placed
        else None,
        attempts=len(ran),
        actual_hours=hours,
        actual_cost=paid(leases, now) if charged is None else charged,
        steps=steps,
        rate=(steps - first) / (hours * 3600) if steps is not None and hours else None,
        ended_at=job.finished_at,
        paid_hours=paid_h,
    )


def paid_hours(usages: Iterable[Usage], machines: int, now: datetime) -> float | None:
    """Of each of so many machines at a time, those that took the place of others included."""
    spans = [(usage.to_at or now) - usage.from_at for usage in usages if usage.rate.kind is ChargeKind.COMPUTE]
    return sum(spans, timedelta(0)) / _HOUR / max(machines, 1) if spans else None


Span = tuple[datetime, datetime]


def ran_during(attempt: Attempt) -> Span | None:
    """From the first rank's start to the last one's end, as their machines saw it; a rank that was lost ran until its
    attempt was given up."""
    starts = [rank.started_at for rank in attempt.ranks if rank.started_at is not None]
    ends = [end for rank in attempt.ranks if (end := rank.ended_at or attempt.ended_at) is not None]
    return (min(starts), max(*ends, min(starts))) if starts and ends else None


def covered(spans: Iterable[Span]) -> timedelta:
    """The time in which at least one of them was."""
    total, reached = timedelta(0), None
    for start, end in sorted(spans):
        begin = start if reached is None else max(start, reached)
        total += max(end - begin, timedelta(0))
        reached = end if reached is None else max(end, reached)
    return total


def paid(leases: Iterable[Lease], now: datetime) -> MicroUsd:
    """At the prices that were frozen when the machines were bought."""
    held = (
        ((lease.ended_at or now) - lease.started_at) / _HOUR * lease.price_per_hour
        for lease in leases
        if lease.started_at is not None
    )
    return MicroUsd(round(sum(max(cost, 0.0) for cost in held)))
