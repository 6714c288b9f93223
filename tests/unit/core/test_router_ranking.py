"""Which backend suits a workload (C9, A8b): seed 003's rules, the user's wishes, and real offers' costs."""

from datetime import UTC, datetime

import pytest

from crucible.core.offers import OfferTable, make_table, with_live
from crucible.core.perf import SpeedBook, make_book
from crucible.core.router.analysis import analyse
from crucible.core.router.backends import Backend
from crucible.core.router.characteristics import WorkloadCharacteristics
from crucible.core.router.preferences import OptimizeFor, Preferences
from crucible.core.router.recommend import Recommendations, recommend
from crucible.core.router.scoring import WEIGHTS, Best, Merit, Prospect, length, score
from crucible.core.router.source import SourceFile
from crucible.model.catalog import Billing, Hazard, InstanceType, Price
from crucible.model.ids import OfferId
from crucible.model.offer import Market, Offer, Target
from crucible.model.units import micro_usd

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DAY = NOW.date()
BOOK: SpeedBook = make_book((), ())
CODE = "import torch\nmodel.cuda()\nloss.backward()\n"
RESUMES = CODE + "opt = torch.optim.SGD(p)\nopt.load_state_dict(s)\nfor e in x:\n    torch.save(m, 'f')\n"


def kind(provider: str, name: str = "box", gpus: int = 1, memory: float = 80.0) -> InstanceType:
    return InstanceType(
        provider=provider, name=name, gpu="A100-80GB", gpus=gpus, gpu_memory_gib=memory, cpus=8, memory_gib=64
    )


def price(provider: str, usd: float | None, market: Market = Market.ON_DEMAND, name: str = "box") -> Price:
    return Price(
        provider=provider,
        region="here",
        zone="",
        instance_type=name,
        market=market,
        price=None if usd is None else micro_usd(usd),
        as_of=NOW,
        source="test",
    )


def hazard(provider: str) -> Hazard:
    return Hazard(
        provider=provider,
        region="",
        instance_type="",
        per_hour=0.05,
        low=0.01,
        high=0.1,
        availability=None,
        method="test",
        as_of=DAY,
    )


def billing(provider: str, start_s: float) -> Billing:
    return Billing(
        provider=provider, unit_s=1, minimum_s=0, start_s=start_s, egress_usd_per_gb=0.1, max_nodes=8, source="test"
    )


def market_place() -> OfferTable:
    providers = ("aws", "modal", "lambda", "tencent")
    return make_table(
        [kind(name) for name in providers],
        [
            price("aws", 2.0),
            price("aws", 0.6, Market.SPOT),
            price("aws", 1.2, Market.RESERVED),
            price("modal", 2.5),
            price("lambda", 2.0),
            price("tencent", None),
        ],
        [billing("aws", 180), billing("modal", 30), billing("lambda", 300), billing("tencent", 240)],
        [hazard("aws")],
    )


def asked(
    code: str = CODE, table: OfferTable | None = None, enabled: frozenset[str] = frozenset({"aws"}), **wishes: object
) -> Recommendations:
    found = analyse([SourceFile("train.py", code)], BOOK.architectures)
    place = market_place() if table is None else table
    return recommend(found, Preferences(**wishes), place, BOOK, NOW, enabled)  # type: ignore[arg-type]


def order(made: Recommendations) -> list[str]:
    return [one.backend for one in made.ranked]


def test_a_short_job_goes_to_a_service() -> None:
    assert order(asked(duration_hours=0.5))[0] == "modal"


def test_a_long_job_goes_to_ec2() -> None:
    made = order(asked(duration_hours=12.0))
    assert made.index("ec2_ondemand") < made.index("modal")
    assert made.index("ec2_ondemand") < made.index("lambda")


def test_a_very_long_job_goes_to_reserved_machines() -> None:
    made = order(asked(duration_hours=60.0))
    assert made[0] == "ec2_reserved"


def test_whoever_looks_for_cost_and_can_be_interrupted_gets_spot() -> None:
    made = asked(RESUMES, duration_hours=6.0, optimize_for=OptimizeFor.COST)
    assert order(made)[0] == "ec2_spot"
    assert any("saves and resumes" in pro for pro in made.ranked[0].pros)


def test_a_job_that_cannot_resume_is_kept_off_spot() -> None:
    made = asked(duration_hours=6.0, optimize_for=OptimizeFor.COST)
    assert order(made)[-1] == "ec2_spot" or made.ranked[-1].cost.total_usd is None
    spot = next(one for one in made.ranked if one.backend == "ec2_spot")
    assert any("start anew" in con for con in spot.cons)


def test_an_interruption_costs_more_where_nothing_is_saved() -> None:
    def spot(code: str) -> float:
        made = asked(code, duration_hours=20.0)
        return next(one.cost.total_usd or 0.0 for one in made.ranked if one.backend == "ec2_spot")

    assert spot(CODE) > 1.2 * spot(RESUMES)


def test_private_data_goes_past_shared_machines() -> None:
    assert order(asked(duration_hours=0.5))[0] == "modal"
    made = asked(duration_hours=0.5, data_privacy=True)
    assert order(made)[0] == "ec2_ondemand"
    modal = next(one for one in made.ranked if one.backend == "modal")
    assert any("shared infrastructure" in con for con in modal.cons)


def test_own_machines_come_first_and_cost_nothing() -> None:
    made = asked(table=with_live(market_place(), [own(free=1)], NOW), enabled=frozenset({"local"}), duration_hours=3.0)
    best = made.ranked[0]
    assert (best.backend, best.cost.total_usd, best.availability.status) == ("local", 0.0, "available")
    assert best.is_enabled and not made.ranked[1].is_enabled


def test_own_machines_that_are_taken_are_queued_for() -> None:
    made = asked(table=with_live(market_place(), [own(free=0)], NOW), duration_hours=3.0)
    local = next(one for one in made.ranked if one.backend == "local")
    assert local.availability.status == "queued"
    assert local.merits[Merit.WAIT] == 0.0


def own(free: int) -> Offer:
    return Offer(
        id=OfferId("local/this"),
        target=Target("local", "local", "local"),
        instance_type="local-1gpu",
        gpu="A100-80GB",
        gpus=1,
        gpu_memory_gib=80,
        cpus=8,
        memory_gib=64,
        price_per_hour=micro_usd(0),
        stock="local",
        free_gpus=free,
    )


def test_a_price_that_nobody_states_is_said_and_not_counted_on() -> None:
    made = asked(duration_hours=3.0)
    tencent = next(one for one in made.ranked if one.backend == "tencent_ondemand")
    assert (tencent.cost.hourly_usd, tencent.cost.total_usd) == (None, None)
    assert "nobody states its price" in tencent.cons
    assert tencent.score < min(one.score for one in made.ranked if one.backend in ("ec2_ondemand", "lambda"))


def test_without_hours_there_is_a_price_per_hour_and_no_total() -> None:
    best = next(one for one in asked().ranked if one.backend == "modal")
    assert (best.cost.hourly_usd, best.cost.total_usd, best.cost.confidence) == (2.5, None, "low")
    assert any("say how long" in con for con in best.cons)


def test_what_costs_too_much_or_is_not_allowed_is_left_out_with_its_reason() -> None:
    made = asked(duration_hours=10.0, max_cost_usd=15.0, allowed_backends=("ec2_spot", "ec2_reserved", "modal"))
    assert set(order(made)) == {"ec2_spot", "ec2_reserved"}
    reasons = {one.backend: one.reason for one in made.excluded}
    assert "budget" in reasons["modal"]
    assert "not among" in reasons["lambda"]


def test_a_model_that_is_too_large_leaves_nothing_and_says_why() -> None:
    made = asked(gpu_memory_gb=100.0)
    assert order(made) == ["colab"]
    assert all("100 GB per GPU" in one.reason for one in made.excluded)


def test_an_empty_catalog_has_an_answer() -> None:
    assert order(asked(table=make_table((), ()))) == ["colab"]
    assert asked("import json\n", table=make_table((), ())).ranked == ()


def test_the_same_question_has_the_same_answer() -> None:
    assert asked(RESUMES, duration_hours=5.0) == asked(RESUMES, duration_hours=5.0)


def test_what_takes_no_gpu_is_told_so() -> None:
    made = asked("from sklearn.svm import SVC\nSVC().fit(x, y)\n")
    assert made.profile.characteristics.gpus == 0
    assert all("asks for none" in one.reason for one in made.excluded)


# --- weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [None, *OptimizeFor])
def test_weights_add_up_to_one(wish: OptimizeFor | None) -> None:
    assert sum(WEIGHTS[wish].values()) == pytest.approx(1.0)


@pytest.mark.parametrize("wish", [None, *OptimizeFor])
@pytest.mark.parametrize("interruptible", [True, False, None])
def test_a_score_is_between_nought_and_one_and_less_cost_never_harms(
    wish: OptimizeFor | None, interruptible: bool | None
) -> None:
    told = WorkloadCharacteristics(interruptible=interruptible, duration_hours=3.0)

    def scored(total: float | None) -> float:
        prospect = Prospect(
            backend=Backend("ec2_spot", "aws", Market.SPOT),
            hourly_usd=None if total is None else total / 3,
            total_usd=total,
            hours=3.0,
            start_s=60.0,
            is_free_now=True,
            has_data=None,
        )
        return score(prospect, told, Preferences(optimize_for=wish), Best(1.0, 3.0))[0]

    values = [scored(total) for total in (None, 100.0, 10.0, 1.0, 0.0)]
    assert all(0 <= value <= 1 for value in values)
    assert values == sorted(values)


def test_length_follows_the_borders_of_the_rules() -> None:
    modal, ec2 = Backend("modal", "modal", Market.ON_DEMAND), Backend("ec2_ondemand", "aws", Market.ON_DEMAND)
    reserved = Backend("ec2_reserved", "aws", Market.RESERVED)
    assert length(modal, 1.9) > length(ec2, 1.9)
    assert length(modal, 8.1) < length(ec2, 8.1)
    assert length(reserved, 24.1) > length(ec2, 24.1)
    assert length(reserved, 23.9) < length(ec2, 23.9)
    assert length(modal, None) == length(ec2, None)
