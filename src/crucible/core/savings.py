"""What could be saved on what runs or waits now: the same work another way, from the planner's own alternatives. Each
is an estimate and stands for itself; two of one job exclude each other, so they are never added up. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from crucible.core.proposal import Candidate, Proposal
from crucible.model.ids import JobId
from crucible.model.offer import Market
from crucible.model.units import MicroUsd

# Less than so large a share is within what estimates are off by.
NOTABLE = 0.05


class Move(StrEnum):
    """The greatest thing that would be different."""

    PROVIDER = "provider"
    REGION = "region"
    SPOT = "spot"
    MACHINE = "machine"  # another type in the same place: right-sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a job runs, or would: what the rest of it costs so, and which share of the whole that rest is."""

    job_id: JobId
    name: str
    provider: str
    region: str
    instance_type: str
    is_spot: bool
    cost_left: MicroUsd
    share_left: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    standing: Standing
    move: Move
    way: Candidate
    cost: MicroUsd  # of the rest, that way
    saves: MicroUsd


def ideas(standing: Standing, ways: Iterable[Candidate]) -> tuple[Idea, ...]:
    """The best of each kind that is worth it, the best first; what can be bought comes before what cannot."""
    best: dict[Move, Idea] = {}
    for way in ways:
        move = move_to(standing, way)
        if move is None or way.cost is None:
            continue
        cost = MicroUsd(round(way.cost * standing.share_left))
        saves = MicroUsd(standing.cost_left - cost)
        found = Idea(standing=standing, move=move, way=way, cost=cost, saves=saves)
        if saves > NOTABLE * standing.cost_left and (move not in best or _worth(found) > _worth(best[move])):
            best[move] = found
    return tuple(sorted(best.values(), key=lambda idea: (-idea.saves, idea.move)))


def _worth(idea: Idea) -> tuple[bool, MicroUsd]:
    return idea.way.is_enabled, idea.saves


def ways_of(made: Proposal) -> tuple[Candidate, ...]:
    """Everything that a proposal names."""
    found = (made.chosen, made.runnable, *made.alternatives, *made.others)
    return tuple(way for way in found if way is not None)


def move_to(standing: Standing, way: Candidate) -> Move | None:
    """None: it is the same."""
    first, is_spot = way.first, any(part.listing.market is Market.SPOT for part in way.parts)
    if first.target.provider != standing.provider:
        return Move.PROVIDER
    if first.target.region != standing.region:
        return Move.REGION
    if is_spot and not standing.is_spot:
        return Move.SPOT
    return Move.MACHINE if first.instance_type != standing.instance_type else None


def standing_of(way: Candidate, job_id: JobId, name: str) -> Standing | None:
    """Of a job that waits: it would run so. None where nobody knows what it costs."""
    if not way.cost:
        return None
    first = way.first
    return Standing(
        job_id=job_id,
        name=name,
        provider=first.target.provider,
        region=first.target.region,
        instance_type=first.instance_type,
        is_spot=first.market is Market.SPOT,
        cost_left=way.cost,
    )
