"""What would make a job possible: every change of one field is tried, and what is told has been planned and works."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil

from crucible.core.proposal import Candidate, Proposal, Rule
from crucible.model.spec import Constraints, JobSpec, Locality, Replication, Resources, Strategy
from crucible.model.units import MICRO, MicroUsd

Try = Callable[[JobSpec, Strategy], Candidate | None]

# A suggestion that is a little too small is tried again a little larger.
TRIES = 6
GROWTH = 1.05


@dataclass(frozen=True, slots=True)
class Remedy:
    field: str
    change: str  # what to write instead, for a person


def remedies(spec: JobSpec, plan: Try, now: datetime) -> tuple[Remedy, ...]:
    """Each alone is enough. Limits of money and time come first: they are the cheapest to change."""
    return tuple(found for find in FINDERS for found in find(spec, plan, now))


def blocking(made: Proposal, providers: frozenset[str]) -> Rule:
    """The rule that turned down what came furthest: rules are asked in order, so the last one is the nearest miss."""
    near = [r.rule for r in made.refusals if r.example.target.provider in providers] or [r.rule for r in made.refusals]
    return max(near, default=Rule.NONE)


def enough_budget(spec: JobSpec, plan: Try, now: datetime) -> Iterator[Remedy]:
    if spec.constraints.budget is None:
        return
    best = plan(limited(spec, budget=None), Strategy.CHEAPEST)
    if best is None or best.cost is None:
        return
    cents = ceil(max(best.cost, best.cost_p50 or 0) / MICRO * 100)
    for _ in range(TRIES):
        budget = MicroUsd(cents * MICRO // 100)
        if plan(limited(spec, budget=budget), Strategy.CHEAPEST):
            yield Remedy("constraints.budget", f"a budget of ${cents / 100:,.2f} or more")
            return
        cents = ceil(cents * GROWTH)


def later_deadline(spec: JobSpec, plan: Try, now: datetime) -> Iterator[Remedy]:
    best = plan(limited(spec, deadline=None), Strategy.FASTEST)
    if spec.constraints.deadline is None or best is None or best.p50_h is None:
        return
    minutes = ceil(best.p50_h * 60)
    for _ in range(TRIES):
        deadline = now + timedelta(minutes=minutes)
        if plan(limited(spec, deadline=deadline), Strategy.FASTEST):
            yield Remedy("constraints.deadline", f"a deadline of {deadline:%Y-%m-%dT%H:%M}Z or later")
            return
        minutes = ceil(minutes * GROWTH)


def one_rule_less(spec: JobSpec, plan: Try, now: datetime) -> Iterator[Remedy]:
    """Fields that are simply dropped or allowed."""
    limits, need, data = spec.constraints, spec.resources, spec.data
    changes: list[tuple[bool, str, str, JobSpec]] = [
        (not limits.allow_spot, "constraints.allow_spot", "allow_spot: true", limited(spec, allow_spot=True)),
        (limits.min_reliability > 0, "constraints.min_reliability", "a lower min_reliability", bold(spec)),
        (bool(limits.providers), "constraints.providers", "other providers", limited(spec, providers=())),
        (limits.max_price_per_hour is not None, "constraints.max_price_per_hour", "a higher max_price_per_hour",
         limited(spec, max_price_per_hour=None)),
        (limits.max_price_age is not None, "constraints.max_price_age", "older prices",
         limited(spec, max_price_age=None)),
        (data.locality is Locality.REQUIRED, "data.locality", "locality: prefer with replication_policy: pre-stage",
         replicated(spec)),
        (data.dataset is not None and data.replication_policy is Replication.NONE, "data.replication_policy",
         "replication_policy: pre-stage", replicated(spec)),
        (need.max_gpus_per_node is not None, "resources.max_gpus_per_node", "no max_gpus_per_node",
         sized(spec, max_gpus_per_node=None)),
        (need.requires_multi_node, "resources.requires_multi_node", "one machine",
         sized(spec, requires_multi_node=False)),
        (bool(need.gpu_types), "resources.gpu_type", "another gpu_type", sized(spec, gpu_types=())),
        (need.cpu_memory_gib > 0, "resources.cpu_memory", "less cpu_memory", sized(spec, cpu_memory_gib=0)),
        (need.cpus > 0, "resources.cpus", "fewer cpus", sized(spec, cpus=0)),
        (need.storage_gib > 0, "resources.storage", "less storage", sized(spec, storage_gib=0)),
    ]  # fmt: skip
    for applies, field, words, changed in changes:
        if applies and plan(changed, Strategy.BALANCED):
            yield Remedy(field, words)


def smaller(spec: JobSpec, plan: Try, now: datetime) -> Iterator[Remedy]:
    """The most GPUs, or the most memory of each, that can be had."""
    gpus = largest(spec.resources.gpus, lambda n: plan(sized(spec, gpus=n), Strategy.BALANCED) is not None)
    if gpus:
        yield Remedy("resources.gpus", f"at most {gpus} GPUs")
    memory = largest(
        int(spec.resources.gpu_memory_gib), lambda n: plan(sized(spec, gpu_memory_gib=n), Strategy.BALANCED) is not None
    )
    if memory:
        yield Remedy("resources.gpu_memory", f"at most {memory} GB per GPU")


def largest(asked: int, is_possible: Callable[[int], bool]) -> int:
    """The largest number below `asked` that is possible, by halving; 0 if none is."""
    if asked <= 1 or not is_possible(1):
        return 0
    low, high = 1, asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_possible(middle) else (low, middle)
    return low


FINDERS = (enough_budget, later_deadline, one_rule_less, smaller)


def limited(spec: JobSpec, **changes: object) -> JobSpec:
    limits: Constraints = replace(spec.constraints, **changes)  # type: ignore[arg-type]
    return replace(spec, constraints=limits)


def sized(spec: JobSpec, **changes: object) -> JobSpec:
    resources: Resources = replace(spec.resources, **changes)  # type: ignore[arg-type]
    return replace(spec, resources=resources)


def bold(spec: JobSpec) -> JobSpec:
    return limited(spec, min_reliability=0.0)


def replicated(spec: JobSpec) -> JobSpec:
    data = replace(spec.data, locality=Locality.PREFER, replication_policy=Replication.PRE_STAGE)
    return replace(spec, data=data)
