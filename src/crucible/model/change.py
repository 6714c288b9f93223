"""One step of one entity: the row as it was seen, what happened, the row after. A list of changes is committed
whole or not at all, each guarded by the version it read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

from crucible.model.attempt import Attempt, AttemptEvent
from crucible.model.job import Job, JobEvent
from crucible.model.lease import Lease, LeaseEvent, Node, NodeEvent, Order, OrderEvent
from crucible.model.task import Task, TaskEvent

Entity = Job | Task | Attempt | Order | Lease | Node
Event = JobEvent | TaskEvent | AttemptEvent | OrderEvent | LeaseEvent | NodeEvent

E = TypeVar("E", Job, Task, Attempt, Order, Lease, Node)


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None for a new row. `after.version == before.version + len(events)`: state is the fold of its log."""

    before: Entity | None
    after: Entity
    events: tuple[Event, ...]


def born(entity: E, event: Event) -> Change:
    """A new row; its first event is number 0."""
    return Change(None, entity, (event,))


def changed(before: E, events: Sequence[Any], evolve: Callable[[E, Any], E]) -> tuple[E, tuple[Change, ...]]:
    """Fold `events` into `before`; nothing happened means no change."""
    if not events:
        return before, ()
    after = reduce(evolve, events, before)
    return after, (Change(before, after, tuple(events)),)
