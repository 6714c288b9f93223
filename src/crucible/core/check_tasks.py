"""The invariants of a plan for many tasks, stated a second time without the planner's code: every task has its place
once, machines are not too few, and no limit is passed."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from math import ceil

from crucible.core.crew_plan import Held, Scaling
from crucible.core.mixed import Mixture
from crucible.core.offers import Listing
from crucible.core.proposal import Candidate, Part
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Market
from crucible.model.quota import Measure, Quota
from crucible.model.spec import Constraints, JobSpec, Mode, Resources

TINY_H = 1e-6
# Bills are rounded after the machines were chosen: one unit of each at most, which is no more than an hour.
SLIGHT = 1.000001


def require(holds: bool, claim: str) -> None:
    if not holds:
        raise InvariantBroken(f"a plan breaks an invariant: {claim}")


def check_tasks(candidate: Candidate, spec: JobSpec, tasks: int, now: datetime, quotas: Sequence[Quota] = ()) -> None:
    """Raises InvariantBroken."""
    require(sum(part.tasks for part in candidate.parts) == tasks, "every task has one place")
    for part in candidate.parts:
        check_part(part, spec)
    at_a_time = sum(ceil(part.tasks / part.waves) for part in candidate.parts)
    most = spec.execution.parallelism
    require(most is None or at_a_time <= most, "no more tasks at a time than allowed")
    check_stocks(candidate.parts)
    for quota in quotas:
        require(drawn(candidate.parts, quota) <= quota.left, f"the quota {quota} is kept")
    check_money_and_time(candidate, spec, now)


def check_part(part: Part, spec: JobSpec) -> None:
    require(part.tasks >= 1 and part.waves >= 1, "no part is empty")
    nodes = nodes_of_a_gang(spec.resources, part.listing)
    require(part.count % nodes == 0, "no gang is split")
    room = seats_of(spec, part.listing) if nodes == 1 else 1
    require(part.tasks <= part.count // nodes * room * part.waves, "every task has a seat")


def nodes_of_a_gang(need: Resources, listing: Listing) -> int:
    least = need.nodes or (2 if need.requires_multi_node else 1)
    return max(least, ceil(need.gpus / listing.gpus)) if need.gpus else least


def seats_of(spec: JobSpec, listing: Listing) -> int:
    """Tasks that one machine runs at a time; those of a cluster have it for themselves."""
    need = spec.resources
    if spec.execution.mode is Mode.SINGLE_CLUSTER:
        return 1
    if need.gpus:
        return listing.gpus // need.gpus
    by_memory = listing.memory_gib / need.cpu_memory_gib if need.cpu_memory_gib else float("inf")
    return max(1, int(min(listing.cpus / max(need.cpus, 1), by_memory)))


def check_stocks(parts: Sequence[Part]) -> None:
    used: Counter[str] = Counter()
    for part in parts:
        used[part.listing.stock or ""] += part.count * part.listing.gpus
    for part in parts:
        free = part.listing.free_gpus
        require(free is None or used[part.listing.stock or ""] <= free, "no GPU is sold twice")


def check_quotas(parts: Sequence[Part]) -> None:
    """Those that are known of the accounts that machines are bought with."""
    for quota in {quota for part in parts for quota in part.listing.quotas}:
        require(drawn(parts, quota) <= quota.left, f"the quota {quota} is kept")


def drawn(parts: Sequence[Part], quota: Quota) -> float:
    return sum(
        part.count
        * {Measure.MACHINES: 1.0, Measure.GPUS: part.listing.gpus, Measure.CPUS: part.listing.cpus}[quota.measure]
        for part in parts
        if quota.holds_for(
            part.listing.target.provider,
            part.listing.target.region,
            part.listing.market,
            part.listing.instance_type,
        )
    )


def check_money_and_time(candidate: Candidate, spec: JobSpec, now: datetime) -> None:
    limits, need = spec.constraints, spec.resources
    hours = [part.hours for part in candidate.parts if part.hours is not None]
    if candidate.cost is None or not hours:
        return
    require(abs(max(hours) - (candidate.expected_h or 0.0)) <= TINY_H * max(hours), "the slowest decides the hours")
    if limits.budget is not None:
        require(candidate.cost <= limits.budget * SLIGHT, "all tasks together keep the budget")
    if limits.deadline is not None:
        left_h = (limits.deadline - now).total_seconds() / 3600
        require(max(hours) <= left_h * SLIGHT + TINY_H, "the last wave ends before the deadline")
    if need.estimated_hours is not None and need.estimated_on is None:
        each = need.estimated_hours
        is_long = all(part.hours is None or part.hours >= part.waves * each - TINY_H for part in candidate.parts)
        require(is_long, "tasks of one seat run one after another")


def check_scaling(made: Scaling, spec: JobSpec, left: int, held: Sequence[Held]) -> None:
    """Raises InvariantBroken."""
    require(len(made.keep) == len(held), "everything that is held is spoken of")
    stays = all(one.busy <= keep <= one.machines for one, keep in zip(held, made.keep, strict=True))
    require(stays, "what runs a task stays, and nothing is kept twice")
    require(not made.buy or left > sum(one.machines * one.seats for one in held), "nothing is bought while seats wait")
    need = spec.resources
    for part in made.buy:
        check_part(part, spec)
        one = part.listing
        require(one.price is not None, "every price is known")
        require(not need.gpus or one.gpu_memory_gib >= need.gpu_memory_gib, "GPU memory fits")
        require(one.memory_gib >= need.cpu_memory_gib and one.cpus >= need.cpus, "memory and CPUs fit")
        require(spec.constraints.allow_spot or one.market is not Market.SPOT, "spot only where it is allowed")
        require(one.free_machines is None or part.count <= one.free_machines, "no machine is sold twice")
    check_stocks(made.buy)
    check_quotas(made.buy)
    kept = sum((one.price or 0) * keep for one, keep in zip(held, made.keep, strict=True))
    hourly = kept + sum(part.count * (part.listing.price or 0) for part in made.buy)
    most = spec.constraints.max_price_per_hour
    require(most is None or not made.buy or hourly <= most, "no dearer per hour than allowed")


def check_mixture(
    made: Mixture,
    groups: Sequence[tuple[JobSpec, int]],
    limits: Constraints,
    now: datetime,
    quotas: Sequence[Quota] = (),
) -> None:
    """Raises InvariantBroken. `limits` are for all groups together."""
    if made.why_not is not None:
        require(not made.placed, "what cannot be planned is not placed")
        return
    require(len(made.placed) == len(groups), "every group has a place")
    for candidate, (spec, count) in zip(made.placed, groups, strict=True):
        check_tasks(candidate, spec, count, now)
    parts = [part for candidate in made.placed for part in candidate.parts]
    check_stocks(parts)
    check_quotas(parts)
    for quota in quotas:
        require(drawn(parts, quota) <= quota.left, f"the quota {quota} is kept")
    hourly = sum(part.count * (part.listing.price or 0) for part in parts)
    require(made.price_per_hour == hourly, "the price per hour is that of the machines")
    most = limits.max_price_per_hour
    require(most is None or hourly <= most, "no dearer per hour than allowed")
    if made.cost is not None:
        require(made.cost == sum(one.cost or 0 for one in made.placed), "the cost is that of all groups")
        require(limits.budget is None or made.cost <= limits.budget * SLIGHT, "all groups together keep the budget")
