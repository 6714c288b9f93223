"""Steps of workflows: which comes after which, and what the task of a step says of the job that works for it. Steps are
their names here; `needs` has for each of them those that it needs."""

from collections.abc import Mapping, Sequence

from crucible.model.job import JobStatus
from crucible.model.task import TaskPhase

# A step waits until its job has a place; from then on it has the job's word.
PHASES = {
    JobStatus.PENDING: TaskPhase.WAITING,
    JobStatus.SCHEDULED: TaskPhase.SCHEDULED,
    JobStatus.PROVISIONING: TaskPhase.PROVISIONING,
    JobStatus.RUNNING: TaskPhase.RUNNING,
    JobStatus.CHECKPOINTING: TaskPhase.CHECKPOINTING,
    JobStatus.COMPLETED: TaskPhase.SUCCEEDED,
    JobStatus.FAILED: TaskPhase.FAILED,
    JobStatus.CANCELLED: TaskPhase.CANCELLED,
}

Needs = Mapping[str, Sequence[str]]


def above(name: str, needs: Needs) -> frozenset[str]:
    """All that come before it. What nobody knows needs nothing."""
    found: set[str] = set()
    waiting = list(needs.get(name, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += needs.get(one, ())
    return frozenset(found)


def below(name: str, needs: Needs) -> frozenset[str]:
    """All that come after it."""
    return frozenset(other for other in needs if name in above(other, needs))


def layers(needs: Needs) -> list[list[str]]:
    """Each as early as what it needs allows, otherwise in the order of `needs`. What is in a circle, or behind one, is
    left out."""
    left, found = dict(needs), []
    while ready := [name for name, before in left.items() if left.keys().isdisjoint(before)]:
        found.append(ready)
        for name in ready:
            del left[name]
    return found


def circle(needs: Needs) -> tuple[str, ...]:
    """Steps of which each needs the next, and the last the first; empty if there are none."""
    free = {name for layer in layers(needs) for name in layer}
    stuck = {name: [one for one in before if one in needs and one not in free] for name, before in needs.items()}
    at = next((name for name in needs if name not in free), None)
    way: list[str] = []
    while at is not None and at not in way:
        way.append(at)
        at = stuck[at][0]
    return tuple(way[way.index(at) :]) if at is not None else ()
