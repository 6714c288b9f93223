"""What a step, a sample or a token of a job has cost so far, and what its machines would have cost on demand. Pure;
what nobody told is None."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from crucible.core.ledger import HOUR_S, accrued, amount
from crucible.core.uses import epoch_s
from crucible.model.attempt import Attempt
from crucible.model.ids import TaskId
from crucible.model.lease import Order
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.record import Progress
from crucible.model.units import MICRO, MicroUsd

# Metrics that count what a task has worked on since it began.
SAMPLES, TOKENS = "samples", "tokens"


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Dollars; fractions of a micro-dollar count here."""

    per_step: float | None = None
    per_sample: float | None = None
    per_token: float | None = None


def unit_costs(so_far: MicroUsd, progress: Sequence[Progress], attempts: Iterable[Attempt]) -> UnitCosts:
    """Of all tasks together: everything that was paid, idle time too, over everything that was done. Steps that a
    checkpoint of another job brought along were paid for there."""
    brought = _brought(attempts)
    steps = sum(max((one.step or 0) - brought.get(one.task_id, 0), 0) for one in progress)
    return UnitCosts(
        per_step=_each(so_far, steps),
        per_sample=_each(so_far, _counted(progress, SAMPLES)),
        per_token=_each(so_far, _counted(progress, TOKENS)),
    )


def _brought(attempts: Iterable[Attempt]) -> Mapping[TaskId, int]:
    """The step with which the first attempt of each task began."""
    first = sorted(attempts, key=lambda attempt: -attempt.number)
    return {attempt.task_id: attempt.resume_step or 0 for attempt in first}


def _counted(progress: Iterable[Progress], name: str) -> float:
    return sum(max(one.metrics.get(name, 0.0), 0.0) for one in progress)


def _each(cost: MicroUsd, count: float) -> float | None:
    return cost / MICRO / count if count > 0 and cost > 0 else None


@dataclass(frozen=True, slots=True)
class Saved:
    """Against prices on demand when the machines were bought; `unpriced` was paid where nobody knew that price."""

    saved: MicroUsd
    unpriced: MicroUsd


def saved_on(usages: Iterable[Usage], orders: Iterable[Order], now: datetime) -> Saved:
    firm = {order.id: order.on_demand_per_hour for order in orders}
    saved = unpriced = 0
    for usage in usages:
        if usage.rate.kind is ChargeKind.COMPUTE:
            price, paid = firm.get(usage.order_id), accrued(usage, now)
            unpriced += paid if price is None else 0
            saved += 0 if price is None else _on_demand(usage, price, now) - paid
    return Saved(MicroUsd(saved), MicroUsd(unpriced))


def _on_demand(usage: Usage, price: MicroUsd, now: datetime) -> MicroUsd:
    seconds = max(epoch_s(usage.to_at or now) - epoch_s(usage.from_at), 0)
    return amount(Rate(ChargeKind.COMPUTE, price, HOUR_S), seconds)
