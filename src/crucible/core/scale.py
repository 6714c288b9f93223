"""How many machines an elastic job should have: what it lost comes back, and it grows where that helps and is paid for.
Jobs that cannot change their size while they run have all their machines or none."""

from dataclasses import dataclass, replace
from math import ceil

from crucible.core.cycle import shape
from crucible.model.spec import ELASTIC, JobSpec
from crucible.model.units import MicroUsd

# Past this share of the budget nothing more is bought: what is left must see the job to its end.
SPENT_TOO_MUCH = 0.8
# A job that is late grows by so many GPUs at a time, or by one machine where it has none.
GPUS_MORE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a job gets on."""

    spent: MicroUsd
    is_late: bool  # at its present pace it would miss its deadline


def least_nodes(spec: JobSpec) -> int | None:
    """With so many machines an elastic job goes on; None: it is not elastic."""
    given = spec.execution.min_nodes, spec.execution.max_nodes
    if spec.framework not in ELASTIC or given == (None, None):
        return None
    return spec.execution.min_nodes or 1


def is_elastic(spec: JobSpec) -> bool:
    return least_nodes(spec) is not None


def most_nodes(spec: JobSpec) -> int:
    return spec.execution.max_nodes or shape(spec.resources).nodes


def sizes(spec: JobSpec) -> tuple[int, ...]:
    """The numbers of machines to begin with, the best first."""
    nodes, least = shape(spec.resources).nodes, least_nodes(spec)
    return (nodes,) if least is None else tuple(range(max(nodes, least), least - 1, -1))


def resized(spec: JobSpec, nodes: int, gpus_per_node: int | None = None) -> JobSpec:
    """The same job on so many machines of the same size: the spec's own, or that of what was bought."""
    per_node = shape(spec.resources).gpus_per_node if gpus_per_node is None else gpus_per_node
    return replace(spec, resources=replace(spec.resources, nodes=nodes, gpus=per_node * nodes))


def wanted_nodes(spec: JobSpec, members: int, course: Course) -> int:
    """How many machines it should have by now. Who has neither deadline nor budget takes what can be had."""
    nodes, most, limits = shape(spec.resources).nodes, most_nodes(spec), spec.constraints
    if limits.budget is not None and course.spent >= SPENT_TOO_MUCH * limits.budget:
        return members
    if limits.deadline is None and limits.budget is None:
        return most
    if not course.is_late:
        return max(members, min(nodes, most))
    return min(most, max(nodes, members + step(spec)))


def step(spec: JobSpec) -> int:
    per_node = shape(spec.resources).gpus_per_node
    return ceil(GPUS_MORE / per_node) if per_node else 1
