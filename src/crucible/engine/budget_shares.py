"""What is left of budgets, for graphs: of those of teams and projects the tightest few by name; of the rest, and of
those of people and jobs, the tightest of each kind. So there are never more lines than a graph can show."""

from collections.abc import Iterable, Mapping

from crucible.core.budget import Standing
from crucible.model.budget import Budget, Scope

NAMED = (Scope.SERVER, Scope.TEAM, Scope.PROJECT)
OTHER = "other"
MOST, MAX_LABEL = 20, 64

Labels = tuple[str, ...]  # scope, name, period


def left_shares(standings: Iterable[Standing]) -> Mapping[Labels, float]:
    shares: dict[Labels, float] = {}
    named = 0
    for share, budget in sorted(((left_share(one), one.budget) for one in standings), key=lambda pair: pair[0]):
        has_name = budget.scope in NAMED and named < MOST
        named += has_name
        shares.setdefault(_labels(budget, has_name), share)  # the tightest came first
    return shares


def left_share(standing: Standing) -> float:
    """Of nothing, nothing is left."""
    limit = standing.budget.limit
    return standing.left / limit if limit else min(0.0, float(standing.left))


def _labels(budget: Budget, has_name: bool) -> Labels:
    return budget.scope, budget.name[:MAX_LABEL] if has_name else OTHER, budget.period
