"""Strategies as keys: what each makes as little as it can, and how ties are broken."""

import numpy as np
import pytest

from crucible.core.strategy import Merits, best, keys, ranked
from crucible.model.spec import Strategy


def merits(**columns: object) -> Merits:
    """Three ways: cheap and slow on spot, dear and fast, own and near."""
    fields: dict[str, object] = dict(
        cost=[1.0, 3.0, 2.0], time=[3.0, 1.0, 2.0], reliability=[0.9, 1.0, 1.0], is_own=[False, False, True],
        is_near=[False, True, False], is_preferred=[False, False, False], is_steady=[False, True, True],
    )  # fmt: skip
    return Merits(**{name: np.array(value) for name, value in {**fields, **columns}.items()})  # type: ignore[arg-type]


def first(strategy: Strategy, weight: float = 0.0, **columns: object) -> int:
    return int(ranked(keys(strategy, merits(**columns), weight))[0])


@pytest.mark.parametrize(
    ("strategy", "weight", "winner"),
    [
        (Strategy.BALANCED, 0.0, 0),
        (Strategy.BALANCED, 1.0, 1),
        (Strategy.CHEAPEST, 1.0, 0),
        (Strategy.SPREAD, 1.0, 0),
        (Strategy.FASTEST, 0.0, 1),
        (Strategy.RELIABLE, 0.0, 2),
        (Strategy.NEAR_DATA, 0.0, 1),
        (Strategy.OWN_FIRST, 1.0, 2),
    ],
)
def test_each_strategy_prefers_its_own(strategy: Strategy, weight: float, winner: int) -> None:
    assert first(strategy, weight) == winner


def test_a_preferred_region_is_worth_a_twentieth_of_the_best_cost() -> None:
    level = {"reliability": [1.0, 1.0, 1.0], "is_preferred": [False, True, False]}
    assert first(Strategy.BALANCED, cost=[1.0, 1.04, 2.0], **level) == 1
    assert first(Strategy.BALANCED, cost=[1.0, 1.06, 2.0], **level) == 0


def test_certain_failure_weighs_a_fifth_of_the_best_cost() -> None:
    assert first(Strategy.BALANCED, cost=[1.0, 1.19, 9.0], reliability=[0.0, 1.0, 1.0]) == 1
    assert first(Strategy.BALANCED, cost=[1.0, 1.21, 9.0], reliability=[0.0, 1.0, 1.0]) == 0


@pytest.mark.parametrize("strategy", Strategy)
def test_of_equals_the_faster_wins_and_then_the_first(strategy: Strategy) -> None:
    level = {
        "cost": [0.0, 0.0, 0.0],
        "reliability": [1.0, 1.0, 1.0],
        "is_own": [True, True, True],
        "is_near": [True, True, True],
        "is_steady": [True, True, True],
    }
    assert first(strategy, time=[2.0, 1.0, 1.0], **level) == 1
    assert first(strategy, time=[1.0, 1.0, 1.0], **level) == 0


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50, 99, 100, 101])
def test_the_best_few_are_the_first_of_all_in_order(count: int) -> None:
    dice = np.random.default_rng(count)
    found = tuple(dice.integers(0, 4, 100).astype(float) for _ in range(3))
    assert best(found, count).tolist() == ranked(found)[:count].tolist()
