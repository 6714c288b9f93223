"""The invariants of a plan, stated a second time without the planner's code. Every plan passes before it is committed,
in tests, simulation and production alike."""

from collections import Counter
from collections.abc import Sequence

from crucible.core.cycle import Plan, Want
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Offer


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
        wanted = want.spec.resources.gpus
        require(placement.shape.nodes * placement.shape.gpus_per_node >= wanted, "the gang has the GPUs it asked for")
        if placement.offer is not None:
            require(placement.offer in offers, "only what is offered is bought")
            require(placement.offer.gpu_memory_gib >= want.spec.resources.gpu_memory_gib or not wanted, "memory fits")
            sold[placement.offer.stock or placement.offer.id] += placement.count * placement.offer.gpus
    require(all(n == 1 for n in used.values()), "no lease is used twice")
    for offer in offers:
        if offer.stock and offer.free_gpus is not None:
            require(sold[offer.stock] <= offer.free_gpus, "no GPU is sold twice")


def require(holds: bool, claim: str) -> None:
    if not holds:
        raise InvariantBroken(f"a plan breaks an invariant: {claim}")
