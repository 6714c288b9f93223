"""What the seller bills stays within the budget: to the micro-dollar without faults, and within one tick's rate with
those that a tick covers (I2, R10, T18). A failure names its seed."""

import os
from collections.abc import Callable
from datetime import timedelta
from statistics import mean

import pytest

from crucible.core import billables
from crucible.model.lease import Order
from crucible.model.units import MicroUsd
from property.budget_world import BESIDE, CALM, ON_DEMAND, ROUGH, TICK_S, Story, Trouble

# A slice of it runs always; `CRUCIBLE_EXAMPLES=10000` is the whole of T18.
EXAMPLES = int(os.environ.get("CRUCIBLE_EXAMPLES", "200"))
PARTS = 2  # for as many workers

pytestmark = pytest.mark.timeout(max(300, EXAMPLES))


def told(seed: int, trouble: Trouble) -> Story:
    """To its end, with books that say what the invoice says."""
    story = Story(seed, trouble).tell()
    assert not story.is_anything_open() and story.posted == story.bill, f"seed {seed}"
    return story


def rate_for(story: Story, seconds: int) -> float:
    """What all that was bought costs in so long, at the highest prices."""
    return story.machines_bought * (ON_DEMAND + BESIDE) * seconds / 3600


@pytest.mark.parametrize("part", range(PARTS))
def test_without_faults_no_bill_passes_its_budget(part: int) -> None:
    shares = []
    for seed in range(part, EXAMPLES, PARTS):
        story = told(seed, CALM)
        assert story.bill <= story.budget.limit, f"seed {seed}"
        shares += [story.bill / story.budget.limit] if story.stops else []
    # A rule that bought nothing would keep the bound as well.
    assert len(shares) > EXAMPLES / PARTS / 3 and mean(shares) > 0.6


@pytest.mark.parametrize("part", range(PARTS))
def test_with_faults_no_bill_passes_its_budget_by_more_than_one_ticks_rate(part: int) -> None:
    for seed in range(part, EXAMPLES, PARTS):
        story = told(seed, ROUGH)
        assert story.bill <= story.budget.limit + rate_for(story, TICK_S), f"seed {seed}"


@pytest.mark.parametrize("dead_s", [60, 600])
def test_while_no_server_lives_machines_cost_on_and_stop_with_the_first_look(dead_s: int) -> None:
    over = 0
    for seed in range(EXAMPLES // 5):
        story = told(seed, Trouble(keeper_dies_s=dead_s))
        assert story.bill <= story.budget.limit + rate_for(story, dead_s - TICK_S), f"seed {seed}"
        over += story.bill > story.budget.limit
    assert over > 0 or dead_s < 600  # else nothing was tried


# --- what the comparison finds ----------------------------------------------------------------------------------------


def no_stop_time(_: object) -> timedelta:
    return timedelta(0)


def todays_price(order: Order) -> MicroUsd:
    return order.price_per_hour


def nothing_unseen(*_: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize(
    ("where", "name", "wrong", "trouble"),
    [
        (billables, "stop_time", no_stop_time, CALM),
        (billables, "most_asked", todays_price, CALM),
        (billables._Of, "unseen", nothing_unseen, Trouble(lost_reply=1.0, late_listing=0.9)),
    ],
)
def test_money_that_is_not_kept_back_does_not_escape_the_comparison(
    where: object, name: str, wrong: Callable[..., object], trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert any((story := Story(seed, trouble).tell()).bill > story.budget.limit for seed in range(300))
