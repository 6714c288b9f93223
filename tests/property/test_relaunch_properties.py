"""What must hold of every relaunch: more done never means more to do, and no rule is passed but the one that is named.
And of what is learnt from lives: losses make a kind riskier, hours make it safer, enough of them make it certain."""

from dataclasses import replace
from datetime import timedelta
from math import isnan, nan

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crucible.core.check import check_candidate
from crucible.core.lives import PRIOR_H, learned, mean_life_s, posterior
from crucible.core.plan import Question
from crucible.core.relaunch import Past, limits_of, relaunch, remaining, share_done, without
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.lease import SpotLives
from crucible.model.offer import Market
from crucible.model.record import Progress
from crucible.model.spec import JobSpec, ProgressHint, Workload
from crucible.model.units import MicroUsd
from market import BOOK, NOW, a_job, a_price, a_table, a_type, dollars

FEW = settings(max_examples=60, deadline=None)
SHARES = st.floats(0, 1)
STEPS = st.one_of(st.none(), st.integers(0, 10**12))
MONEY = st.floats(0.01, 2000).map(dollars)


def table(spot_usd: float, demand_usd: float, hazard: float):
    prices = [a_price("p4d", demand_usd), a_price("p4d", spot_usd, Market.SPOT), a_price("p4d", demand_usd, zone="b")]
    return a_table([a_type("p4d")], prices, hazard=hazard)


@st.composite
def jobs(draw: st.DrawFn) -> JobSpec:
    return a_job(
        hours=draw(st.one_of(st.none(), st.floats(0.1, 200))),
        allow_spot=draw(st.booleans()),
        min_reliability=draw(st.sampled_from([0.0, 0.5, 0.9, 0.99])),
        deadline=draw(st.one_of(st.none(), st.floats(-10, 300).map(lambda h: NOW + timedelta(hours=h)))),
        budget=draw(st.one_of(st.none(), MONEY)),
        max_price_per_hour=draw(st.one_of(st.none(), st.just(dollars(20)))),
    )


@FEW
@given(jobs(), SHARES, MONEY, st.floats(1, 15), st.floats(16, 60), st.floats(1e-4, 1))
def test_a_relaunch_keeps_every_rule_but_the_ones_it_says_it_gives_up(
    spec: JobSpec, done: float, spent: MicroUsd, spot: float, demand: float, hazard: float
) -> None:
    rest = remaining(spec, Past(saved_step=None, done=done, spent=spent))
    found = relaunch(Question(spec=rest, now=NOW, enabled=frozenset({"aws"})), table(spot, demand, hazard), BOOK)
    if found is None:
        return
    assert set(found.given_up) <= limits_of(rest)
    assert found.way.is_enabled and len(found.way.parts) == 1
    check_candidate(found.way, without(rest, found.given_up), 1, NOW)


@FEW
@given(jobs(), st.floats(1, 15), st.floats(16, 60), st.floats(1e-4, 1))
def test_a_job_that_could_be_bought_anew_gives_nothing_up_when_more_of_it_is_done(
    spec: JobSpec, spot: float, demand: float, hazard: float
) -> None:
    offers = table(spot, demand, hazard)

    def given_up(done: float) -> int | None:
        rest = remaining(spec, Past(saved_step=None, done=done, spent=MicroUsd(0)))
        found = relaunch(Question(spec=rest, now=NOW, enabled=frozenset({"aws"})), offers, BOOK)
        return None if found is None else len(found.given_up)

    assume(given_up(0.0) == 0)
    assert [given_up(done) for done in (0.3, 0.6, 0.9)] == [0, 0, 0]


@given(STEPS, STEPS, st.integers(1, 10**12), st.one_of(st.none(), SHARES), st.booleans())
def test_more_saved_never_plans_for_more_work(
    one: int | None, other: int | None, seen: int, fraction: float | None, is_counted: bool
) -> None:
    spec = replace(a_job(hours=10.0), workload=Workload(tokens=1e9))
    spec = replace(spec, progress=ProgressHint(total_steps=10**9)) if is_counted else spec
    told = Progress(
        task_id=TaskId("t"), job_id=JobId("j"), attempt_id=AttemptId("a"), at=NOW, step=seen, fraction=fraction
    )
    less, more = sorted((one or 0, other or 0))
    done = [share_done(step, spec, told) for step in (less, more)]
    assert 0 <= done[0] <= done[1] <= 1
    rests = [remaining(spec, Past(saved_step=None, done=share, spent=MicroUsd(0))) for share in done]
    hours = [rest.resources.estimated_hours or 0 for rest in rests]
    assert 0 < hours[1] <= hours[0] <= 10.0
    assert (rests[1].workload.tokens or 0) <= (rests[0].workload.tokens or 0)


# --- lives ------------------------------------------------------------------------------------------------------------

HAZARDS = st.one_of(st.just(nan), st.floats(0, 10))
HOURS = st.floats(0, 1e6)
LOSSES = st.integers(0, 10**5)


def lives(hours: float, taken: int, instance_type: str = "p4d") -> SpotLives:
    return SpotLives(provider="aws", region="r1", instance_type=instance_type, hours=hours, taken=taken)


@given(HAZARDS, HOURS, LOSSES, LOSSES)
def test_losses_make_a_kind_riskier_and_never_less_than_safe(hazard: float, hours: float, one: int, other: int) -> None:
    fewer, more = (posterior(hazard, lives(hours, taken)) for taken in sorted((one, other)))
    assert (isnan(fewer) and isnan(more)) or 0 <= fewer <= more


@given(HAZARDS, HOURS, HOURS, LOSSES)
def test_hours_make_a_kind_safer(hazard: float, one: float, other: float, taken: int) -> None:
    short, long = sorted((one, other))
    risky, safe = posterior(hazard, lives(short, taken)), posterior(hazard, lives(long, taken))
    assert isnan(risky) or safe <= risky * (1 + 1e-9)


@given(st.floats(0.001, 5), st.floats(0.001, 5))
def test_enough_hours_say_what_is_so_whatever_was_believed(believed: float, true: float) -> None:
    hours = 1e6 * PRIOR_H
    assert np.isclose(posterior(believed, lives(hours, round(true * hours))), true, rtol=0.02)
    assert np.isclose(posterior(nan, lives(hours, round(true * hours))), true, rtol=0.02)


@given(HAZARDS)
def test_without_a_life_nothing_is_learnt(hazard: float) -> None:
    found = posterior(hazard, lives(0.0, 0))
    assert np.isclose(found, hazard, rtol=1e-12, atol=0, equal_nan=True)


@FEW
@given(HOURS, LOSSES)
def test_only_spot_machines_of_that_very_kind_are_learnt_about(hours: float, taken: int) -> None:
    before = table(10, 30, 0.1)
    after = learned(before, [lives(hours, taken), lives(hours, taken, instance_type="other")])
    is_spot = before.is_spot
    assert (after.hazard[~is_spot] == before.hazard[~is_spot]).all()
    assert np.allclose(after.hazard[is_spot], posterior(0.1, lives(hours, taken)))
    assert (before.hazard[is_spot] == 0.1).all(), "the table itself is not changed"


@given(st.lists(st.one_of(st.none(), st.floats(1e-6, 10)), max_size=8))
def test_a_larger_gang_lives_no_longer(hazards: list[float | None]) -> None:
    whole, part = mean_life_s(hazards), mean_life_s(hazards[:-1])
    assert (whole is None) == (not any(hazards))
    assert part is None or (whole is not None and whole <= part)
