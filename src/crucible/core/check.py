"""The invariants of a plan, stated a second time without the planner's code. Every plan passes before it is committed,
in tests, simulation and production alike."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from crucible.core.check_tasks import check_quotas, check_tasks, require
from crucible.core.cycle import Plan, Want
from crucible.core.proposal import Candidate, Proposal
from crucible.model.offer import Market, Offer
from crucible.model.quota import Quota
from crucible.model.spec import JobSpec, Mode, Strategy

# Probabilities are known to about a thousandth; the last unit of a bill may not be used up.
CLOSE = 1.02
TINY_H = 1e-6
BILLING_UNIT_H = 1.0
STORAGE = {"s3": "aws", "gs": "gcp", "az": "azure", "minio": "onprem"}


def check_plan(made: Plan, wants: Sequence[Want], offers: Sequence[Offer]) -> None:
    """Raises InvariantBroken: our bug, nothing may be committed."""
    known = {want.task_id: want for want in wants}
    answered = [p.task_id for p in made.placements] + [u.task_id for u in made.unplaced]
    require(sorted(answered) == sorted(known), "every task is answered exactly once")
    sold: Counter[str] = Counter()
    used: Counter[str] = Counter()
    for placement in made.placements:
        want = known[placement.task_id]
        used.update(placement.reuse)
        require(set(placement.reuse) <= set(want.held), "a task reuses only what it holds")
        require(len(placement.reuse) + placement.count == placement.shape.nodes, "no gang is split")
        in_zone = want.zone is None or placement.offer is None or placement.zone == want.zone
        require(in_zone, "a gang stands in one zone")
        wanted = want.spec.resources.gpus
        require(placement.shape.nodes * placement.shape.gpus_per_node >= wanted, "the gang has the GPUs it asked for")
        if placement.offer is not None:
            is_planned = want.purchase is not None and placement.offer == want.purchase.offer
            require(is_planned or placement.offer in offers, "only what is offered or planned is bought")
            require(placement.offer.gpu_memory_gib >= want.spec.resources.gpu_memory_gib or not wanted, "memory fits")
            sold[placement.offer.stock or placement.offer.id] += placement.count * placement.offer.gpus
    require(all(n == 1 for n in used.values()), "no lease is used twice")
    machines = Counter(p.offer.id for p in made.placements for _ in range(p.count) if p.offer is not None)
    for offer in offers:
        require(offer.free_machines is None or machines[offer.id] <= offer.free_machines, "no machine is sold twice")
        if offer.stock and offer.free_gpus is not None:
            require(sold[offer.stock] <= offer.free_gpus, "no GPU is sold twice")


# --- proposals ----------------------------------------------------------------------------------------


def check_proposal(made: Proposal, spec: JobSpec, now: datetime, quotas: Sequence[Quota] = ()) -> None:
    """Raises InvariantBroken. Nothing of the planner is used: every claim is made again from the listings."""
    shown = [c for c in (made.chosen, *made.alternatives, *made.others, made.runnable) if c is not None]
    for candidate in shown:
        check_candidate(candidate, spec, made.tasks, now)
        if made.tasks > 1:
            check_tasks(candidate, spec, made.tasks, now, quotas)
    refused = sum(refusal.count for refusal in made.refusals)
    require(refused + made.feasible == made.considered, "every offer is either refused or feasible")
    require(made.runnable is None or made.runnable.is_enabled, "only what is enabled is bought")
    require(made.chosen is not None or not made.alternatives, "alternatives are alternatives to something")
    others = made.alternatives
    require(not any(dominates(a, b) for a in others for b in others), "no alternative is beaten in everything")
    for other in others:
        is_beaten = made.chosen is not None and dominates(other, made.chosen)
        require(not is_beaten or is_preferred(made, other, spec), "the choice is not beaten in everything")


def check_candidate(candidate: Candidate, spec: JobSpec, tasks: int, now: datetime) -> None:
    need, limits = spec.resources, spec.constraints
    listings = [part.listing for part in candidate.parts]
    counts = [part.count for part in candidate.parts]
    require(all(count > 0 for count in counts), "no part is empty")
    hourly = sum((listing.price or 0) * n for listing, n in zip(listings, counts, strict=True))
    require(all(listing.price is not None for listing in listings), "every price is known")
    require(candidate.price_per_hour == hourly, "the price per hour is that of the machines")
    gpus = sum(listing.gpus * n for listing, n in zip(listings, counts, strict=True))
    require(gpus >= need.gpus, "there are as many GPUs as were asked for")
    for listing, count in zip(listings, counts, strict=True):
        require(listing.free_gpus is None or listing.gpus * count <= listing.free_gpus, "no GPU is sold twice")
        require(listing.free_machines is None or count <= listing.free_machines, "no machine is sold twice")
        require(not need.gpus or listing.gpu_memory_gib >= need.gpu_memory_gib, "GPU memory fits")
        require(listing.memory_gib >= need.cpu_memory_gib and listing.cpus >= need.cpus, "memory and CPUs fit")
        most = need.max_gpus_per_node
        require(most is None or listing.gpus <= most, "no machine has more GPUs than allowed")
        require(limits.allow_spot or listing.market is not Market.SPOT, "spot only where it is allowed")
        require(not limits.providers or listing.target.provider in limits.providers, "only providers asked for")
    if spec.execution.mode is Mode.SINGLE_CLUSTER and tasks == 1:
        targets = {(listing.target.provider, listing.target.region) for listing in listings}
        require(len(targets) == 1, "one cluster stands in one region of one provider")
    check_quotas(candidate.parts)
    check_limits(candidate, spec, now)


def check_limits(candidate: Candidate, spec: JobSpec, now: datetime) -> None:
    limits = spec.constraints
    hourly = limits.max_price_per_hour
    require(hourly is None or candidate.price_per_hour <= hourly, "no dearer per hour than allowed")
    require(0 <= candidate.reliability <= 1, "a probability")
    require(candidate.reliability >= limits.min_reliability, "as reliable as asked for")
    if candidate.p50_h is None or candidate.cost_p50 is None or candidate.p90_h is None or candidate.cost_p90 is None:
        return
    require(candidate.p50_h <= candidate.p90_h * CLOSE and candidate.cost_p50 <= candidate.cost_p90 * CLOSE, "ordered")
    if limits.deadline is not None:
        left_h = (limits.deadline - now).total_seconds() / 3600
        require(candidate.p50_h <= left_h * CLOSE + TINY_H, "more likely in time than not")
    if limits.budget is not None:
        rounding = sum(part.count * (part.listing.price or 0) for part in candidate.parts) * BILLING_UNIT_H
        require(candidate.cost_p50 <= limits.budget * CLOSE + rounding, "more likely within the budget than not")


def is_preferred(made: Proposal, other: Candidate, spec: JobSpec) -> bool:
    """Whether the choice has what was asked for beside cost, time and risk, and `other` has not."""
    return made.chosen is not None and merit(made.chosen, made, spec) > merit(other, made, spec)


def merit(candidate: Candidate, made: Proposal, spec: JobSpec) -> tuple[bool, ...]:
    provider, region = candidate.first.target.provider, candidate.first.target.region
    scheme = (spec.data.dataset or "").partition("://")[0]
    where = (spec.data.region or "").rpartition("/") if scheme == "dataset" else ("", "", spec.data.region or "")
    home = where[0] or STORAGE.get(scheme, "local")
    is_near = provider == home and (provider == "local" or where[2] in ("", region))
    is_own = provider in ("local", "onprem")
    is_steady = not any(part.listing.hazard_per_hour for part in candidate.parts)
    wishes = {
        Strategy.OWN_FIRST: (is_own,),
        Strategy.NEAR_DATA: (is_near,),
        Strategy.RELIABLE: (is_steady, is_own),
    }
    return (*wishes.get(made.strategy, ()), region in spec.constraints.preferred_regions)


def dominates(a: Candidate, b: Candidate) -> bool:
    """No worse in cost, time and risk, and better in one."""
    if a.cost is None or b.cost is None or a.expected_h is None or b.expected_h is None:
        return False
    first, second = (a.cost, a.expected_h, -a.reliability), (b.cost, b.expected_h, -b.reliability)
    return all(x <= y for x, y in zip(first, second, strict=True)) and first != second
