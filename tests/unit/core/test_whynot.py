"""Why not this one: offers are found by words, and what stands against each is said."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from crucible.core.plan import Question
from crucible.core.proposal import Rule
from crucible.core.whynot import MOST, Told, explain
from crucible.model.errors import InvalidRequest
from crucible.model.offer import Market
from crucible.model.spec import JobSpec
from market import BOOK, NOW, a_job, a_price, a_table, a_type, dollars

TABLE = a_table(
    [a_type("box"), a_type("tub", gpu="T4", gpu_memory_gib=16.0), a_type("box", provider="gcp")],
    [
        a_price("box", 10),
        a_price("box", 2, Market.SPOT),
        a_price("tub", 1, zone="b"),
        a_price("box", 12, provider="gcp", region="r9", zone=""),
        *(a_price("box", 10 + i, zone=f"z{i}") for i in range(20)),
    ],
    hazard=0.01,
)


def told(words: str, spec: JobSpec | None = None) -> Sequence[Told]:
    question = Question(spec=spec or a_job(need={"gpu_memory_gib": 40.0}), now=NOW, enabled=frozenset({"aws"}))
    return explain(question, words, TABLE, BOOK)


@pytest.mark.parametrize(
    ("words", "rule", "reason"),
    [
        ("aws r1 a box on-demand", Rule.NONE, "it is the choice"),
        ("aws box spot", Rule.SPOT, "is a spot machine, and the spec does not allow spot"),
        ("T4", Rule.GPU_MEMORY, "needs 40 GB per GPU, it has 16"),
        ("gcp", Rule.NONE, "it fits, and the choice is better: +20% cost"),
        ("GCP R9 a100", Rule.NONE, "it fits, and the choice is better: +20% cost"),
        ("z0", Rule.NONE, "it fits, and the choice is better: as good in cost, time and risk"),
    ],
)
def test_what_stands_against_an_offer_is_said(words: str, rule: Rule, reason: str) -> None:
    (one,) = told(words)
    assert (one.rule, one.reason) == (rule, reason)


def test_what_fits_comes_first_then_what_came_nearest_and_the_cheapest_of_those() -> None:
    found = told("aws")
    assert len(found) == MOST
    assert [one.listing.price for one in found] == sorted(one.listing.price or 0 for one in found)
    assert {one.rule for one in found} == {Rule.NONE}
    dear = told("aws", a_job(budget=dollars(105), need={"gpu_memory_gib": 40.0}))
    assert [one.rule for one in dear][:3] == [Rule.NONE, Rule.NONE, Rule.BUDGET]


@pytest.mark.parametrize("words", ["", "   ", "azure", "aws gcp", "box nowhere"])
def test_words_that_name_no_offer_are_refused(words: str) -> None:
    with pytest.raises(InvalidRequest, match="crucible offers"):
        told(words)


def test_risk_is_asked_about_too() -> None:
    soon = NOW + timedelta(hours=40.5)
    spec = a_job(128, hours=40.0, allow_spot=True, min_reliability=0.95, deadline=soon, need={"gpu_memory_gib": 40.0})
    (one,) = told("aws box spot", spec)
    assert one.rule is Rule.RELIABILITY and "less than 0.95 to finish" in one.reason
