"""What a job costs, as people ask for it: so far, per hour, by kind and by machine, and what is still to come. Figures
of the ledger are exact; those of the future say what they rest on."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from crucible.core.ledger import HOUR_S, accrued, amount
from crucible.core.prediction import Span, covered
from crucible.core.transfers import is_transfer
from crucible.model.attempt import Attempt
from crucible.model.ids import LeaseId, MachineId, OrderId, TaskId
from crucible.model.ledger import ChargeKind, Posting, Usage
from crucible.model.record import Progress
from crucible.model.units import NOTHING, MicroUsd

_HOUR = timedelta(hours=1)
# Before so much is done and has taken so long, progress says nothing of the rest.
_LEAST_DONE = 0.01
_LEAST_RAN_H = 1 / 60


@dataclass(frozen=True, slots=True)
class KindCost:
    kind: ChargeKind
    so_far: MicroUsd
    per_hour: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCost:
    provider: str
    region: str
    machine_id: MachineId
    order_id: OrderId
    lease_id: LeaseId | None
    started_at: datetime
    ended_at: datetime | None  # until when it is charged for; None while it runs
    is_estimate: bool  # nobody told when it ended
    so_far: MicroUsd
    per_hour: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    so_far: MicroUsd
    posted: MicroUsd  # of this: closed and in the ledger
    per_hour: MicroUsd  # of everything that runs now
    kinds: tuple[KindCost, ...]
    machines: tuple[MachineCost, ...]  # oldest first


def costs(usages: Sequence[Usage], now: datetime, postings: Sequence[Posting] = ()) -> Costs:
    """Of all stretches of a job, and of the data that was moved for it; its other postings follow from stretches."""
    moved = moved_for(postings)
    return Costs(
        so_far=MicroUsd(so_far(usages, now) + moved),
        posted=MicroUsd(sum(usage.amount or 0 for usage in usages) + moved),
        per_hour=per_hour(usages),
        kinds=tuple(_kinds(usages, moved, now)),
        machines=_machines(usages, now),
    )


def moved_for(postings: Iterable[Posting]) -> MicroUsd:
    """What moving data has cost, apart from machines."""
    entries = (entry for one in postings if is_transfer(one) for entry in one.entries)
    return MicroUsd(sum(entry.amount for entry in entries if entry.amount > 0))


def _kinds(usages: Sequence[Usage], moved: MicroUsd, now: datetime) -> Iterator[KindCost]:
    for kind in ChargeKind:
        mine = [usage for usage in usages if usage.rate.kind is kind]
        apart = moved if kind is ChargeKind.TRANSFER else NOTHING
        if mine or apart:
            yield KindCost(kind, MicroUsd(so_far(mine, now) + apart), per_hour(mine))


def so_far(usages: Iterable[Usage], now: datetime) -> MicroUsd:
    return MicroUsd(sum(accrued(usage, now) for usage in usages))


def per_hour(usages: Iterable[Usage]) -> MicroUsd:
    return MicroUsd(sum(amount(usage.rate, HOUR_S) for usage in usages if usage.to_at is None))


def _machines(usages: Iterable[Usage], now: datetime) -> tuple[MachineCost, ...]:
    by_machine: dict[tuple[str, MachineId], list[Usage]] = {}
    for usage in usages:
        by_machine.setdefault((usage.provider, usage.machine_id), []).append(usage)
    found = [_machine(mine, now) for mine in by_machine.values()]
    return tuple(sorted(found, key=lambda one: (one.started_at, one.machine_id)))


def _machine(mine: Sequence[Usage], now: datetime) -> MachineCost:
    first = min(mine, key=lambda usage: usage.from_at)
    ends = [usage.to_at for usage in mine]
    last = None if None in ends else max(end for end in ends if end is not None)
    return MachineCost(
        provider=first.provider,
        region=first.region,
        machine_id=first.machine_id,
        order_id=first.order_id,
        lease_id=first.lease_id,
        started_at=first.from_at,
        ended_at=last,
        is_estimate=any(usage.is_estimate and usage.to_at == last for usage in mine),
        so_far=so_far(mine, now),
        per_hour=per_hour(mine),
    )


# --- what is still to come ----------------------------------------------------------------------------------------


class Basis(StrEnum):
    PROGRESS = "progress"  # as fast as it went so far
    PLAN = "plan"  # what was expected when it was planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was planned."""

    hours: float  # most likely
    hours_high: float  # nine of ten such jobs are done by then
    per_hour: MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    basis: Basis
    hours: float
    hours_high: float
    likely: MicroUsd
    high: MicroUsd


@dataclass(frozen=True, slots=True)
class Done:
    """Shares of the whole work: where the job began, and how far it is."""

    began: float = 0.0
    reached: float = 0.0


def remaining(done: Done, ran_h: float, plan: Expected | None, usages: Sequence[Usage]) -> Remaining | None:
    """None where nobody knows. What runs now sets the price; until something does, the plan."""
    is_running = any(usage.to_at is None for usage in usages)
    price = per_hour(usages) if is_running or plan is None else plan.per_hour
    hours = _by_progress(done, ran_h)
    if hours is not None:
        doubt = plan.hours_high / plan.hours if plan is not None and plan.hours > 0 else 1.0
        return _remaining(Basis.PROGRESS, hours, hours * doubt, price)
    if plan is None:
        return None
    return _remaining(Basis.PLAN, max(plan.hours - ran_h, 0.0), plan.hours_high - ran_h, price)


def done_of(
    progress: Sequence[Progress], attempts: Sequence[Attempt], tasks: int, ended: Collection[TaskId] = ()
) -> Done:
    """Of all tasks together: those that have `ended` are done, whatever they told; one that has not told of itself has
    done nothing."""
    told = sum(one.fraction or 0.0 for one in progress if one.task_id not in ended)
    reached = (told + len(ended)) / max(tasks, 1)
    if len(progress) != 1 or not progress[0].total_steps:
        return Done(0.0, reached)
    resumed = min((attempt.resume_step or 0 for attempt in attempts), default=0)
    return Done(min(resumed / progress[0].total_steps, reached), reached)


def ran_hours(attempts: Sequence[Attempt], now: datetime) -> float:
    """In which ranks ran, those that still do included."""
    spans: list[Span] = []
    for attempt in attempts:
        starts = [rank.started_at for rank in attempt.ranks if rank.started_at is not None]
        if starts:
            ends = [rank.ended_at or attempt.ended_at or now for rank in attempt.ranks]
            spans.append((min(starts), max(*ends, min(starts))))
    return covered(spans) / _HOUR


def _by_progress(done: Done, ran_h: float) -> float | None:
    share = done.reached - done.began
    if share < _LEAST_DONE or ran_h < _LEAST_RAN_H:
        return None
    return ran_h * max(1.0 - done.reached, 0.0) / share


def _remaining(basis: Basis, hours: float, hours_high: float, price: MicroUsd) -> Remaining:
    high = max(hours_high, hours)
    return Remaining(
        basis=basis,
        hours=hours,
        hours_high=high,
        likely=MicroUsd(round(price * hours)),
        high=MicroUsd(round(price * high)),
    )
