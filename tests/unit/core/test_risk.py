import math

import numpy as np
import pytest

from crucible.core.risk import (
    Exposure,
    billed_quantile,
    billed_within,
    course,
    finish_by,
    optimal_interval,
    wall_quantile,
)

NAN = math.nan


def exposed(
    work_h: object = 10.0,
    hazard: object = 0.1,
    checkpoint_h: object = 1 / 60,
    restart_h: object = 0.2,
    billed_restart_h: object = 0.1,
    interval_h: object = NAN,
) -> Exposure:
    """Numbers or lists; as many rows as the longest has."""
    columns = np.broadcast_arrays(work_h, hazard, checkpoint_h, restart_h, billed_restart_h, interval_h)
    work, rate, checkpoint, restart, boot, interval = (np.atleast_1d(np.array(c, dtype=float)) for c in columns)
    return Exposure(
        work_h=work,
        hazard=rate,
        checkpoint_h=checkpoint,
        restart_h=restart,
        billed_restart_h=boot,
        interval_h=interval,
    )


# --- the interval ---------------------------------------------------------------------------------------


def test_dalys_interval_is_near_the_square_root_rule_where_interruptions_are_rare() -> None:
    minute, day = np.array([1 / 60]), np.array([1 / 24])
    assert optimal_interval(minute, day)[0] == pytest.approx(math.sqrt(2 / 60 * 24), rel=0.02)


def test_nothing_to_fear_is_nothing_to_save() -> None:
    assert optimal_interval(np.array([0.1]), np.array([0.0]))[0] == math.inf


def test_a_free_checkpoint_is_not_taken_more_than_once_a_second() -> None:
    assert optimal_interval(np.array([0.0]), np.array([1.0]))[0] == pytest.approx(1 / 3600)


def test_lives_shorter_than_two_checkpoints_are_cut_in_lives() -> None:
    assert optimal_interval(np.array([1.0]), np.array([4.0]))[0] == pytest.approx(0.25)


@pytest.mark.parametrize("hazard", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("work_h", [0.5, 3.0, 40.0, 200.0])
@pytest.mark.parametrize("checkpoint_s", [10, 300])
def test_no_other_number_of_pieces_is_better_than_the_chosen_one(
    hazard: float, work_h: float, checkpoint_s: int
) -> None:
    checkpoint_h = checkpoint_s / 3600
    chosen = course(exposed(work_h, hazard, checkpoint_h))
    others = course(exposed(work_h, hazard, checkpoint_h, interval_h=work_h / np.arange(1.0, 3000)))
    assert chosen.wall_h[0] <= others.wall_h.min() * (1 + 1e-9)


# --- expectations ---------------------------------------------------------------------------------------


def test_without_interruptions_work_takes_what_it_takes() -> None:
    calm = course(exposed(hazard=0.0))
    assert (calm.wall_h[0], calm.billed_h[0], calm.interruptions[0], calm.interval_h[0]) == (10.0, 10.0, 0.0, 10.0)


def test_checkpoints_that_a_user_wants_take_time_without_any_interruption() -> None:
    assert course(exposed(hazard=0.0, interval_h=1.0)).wall_h[0] == pytest.approx(10 + 9 / 60)


def test_the_last_bit_of_a_quotient_makes_no_extra_piece() -> None:
    pieces = np.arange(1.0, 500)
    calm = course(exposed(work_h=7.3, hazard=0.0, checkpoint_h=1.0, interval_h=7.3 / pieces))
    assert calm.wall_h == pytest.approx(7.3 + pieces - 1)


def test_one_piece_has_the_expectation_of_the_textbook() -> None:
    alone = course(exposed(work_h=2.0, hazard=0.5, restart_h=0.0, billed_restart_h=0.0, interval_h=5.0))
    assert alone.wall_h[0] == pytest.approx((math.e - 1) / 0.5)
    assert alone.interruptions[0] == pytest.approx(math.e - 1)


def test_waiting_costs_time_and_no_money() -> None:
    quick, slow = course(exposed(restart_h=[0.1, 0.6])).wall_h
    expected = course(exposed(restart_h=[0.1, 0.6]))
    assert slow - quick == pytest.approx(0.5 * expected.interruptions[0])
    assert expected.billed_h[0] == expected.billed_h[1]


def test_what_is_paid_for_can_be_lost_while_it_boots() -> None:
    instant, long = course(exposed(hazard=1.0, restart_h=1.0, billed_restart_h=[0.0, 1.0])).interruptions
    assert long == pytest.approx(math.e * instant)


def test_work_that_never_gets_done_takes_for_ever() -> None:
    hopeless = exposed(work_h=100.0, hazard=[1.0, 1e6], interval_h=[50.0, NAN])
    expected = course(hopeless)
    assert np.isinf(expected.wall_h).all()
    assert np.isinf(expected.billed_h).all()
    assert np.isinf(wall_quantile(hopeless, expected, 0.5)).all()
    assert finish_by(hopeless, expected, np.full(2, 1e4)) == pytest.approx([0.0, 0.0], abs=1e-9)


def test_an_unknown_hazard_makes_every_answer_unknown_and_only_of_its_row() -> None:
    mixed = exposed(hazard=[0.1, NAN, 0.0])
    expected = course(mixed)
    for column in (
        expected.wall_h,
        expected.billed_h,
        expected.interruptions,
        finish_by(mixed, expected, np.full(3, 12.0)),
        wall_quantile(mixed, expected, 0.9),
    ):
        assert list(np.isnan(column)) == [False, True, False]


def test_no_work_is_done_at_once() -> None:
    nothing = exposed(work_h=0.0, hazard=[0.0, 0.5])
    expected = course(nothing)
    assert list(expected.wall_h) == [0.0, 0.0]
    assert list(finish_by(nothing, expected, np.zeros(2))) == [1.0, 1.0]


def test_no_rows_are_no_answers() -> None:
    empty = exposed(work_h=[])
    expected = course(empty)
    assert len(expected.wall_h) == len(finish_by(empty, expected, np.zeros(0))) == 0


# --- odds -----------------------------------------------------------------------------------------------


def test_without_interruptions_the_odds_are_a_step() -> None:
    calm = exposed(hazard=0.0, work_h=[10.0, 10.0])
    assert list(finish_by(calm, course(calm), np.array([10.0, 9.999999]))) == [1.0, 0.0]
    assert list(billed_within(calm, course(calm), np.array([10.0, 9.999999]))) == [1.0, 0.0]


def test_the_odds_of_no_interruption_are_exact() -> None:
    risky = exposed(interval_h=[20.0, 20.0])
    odds = finish_by(risky, course(risky), np.array([10.0, 9.999]))
    assert list(odds) == pytest.approx([math.exp(-1), 0.0])


def test_a_limit_below_two_restarts_leaves_room_for_one_interruption() -> None:
    """Ten hours in pieces of one, none or one of them lost, and a restart that is not disturbed."""
    risky = exposed(interval_h=1.0, checkpoint_h=0.0, restart_h=3.0, billed_restart_h=0.0)
    odds = finish_by(risky, course(risky), np.array([10 + 3.0 + 0.5]))
    assert odds[0] == pytest.approx(math.exp(-1) * (1 + 10 * (1 - math.exp(-0.05))), abs=1e-4)


def test_a_year_is_enough_and_no_time_is_not() -> None:
    risky = exposed(hazard=[0.01, 0.3, 2.0])
    expected = course(risky)
    assert finish_by(risky, expected, np.full(3, 8766.0)) == pytest.approx([1, 1, 1], abs=1e-3)
    assert list(finish_by(risky, expected, np.full(3, math.inf))) == pytest.approx([1, 1, 1], abs=1e-3)
    assert list(finish_by(risky, expected, np.zeros(3))) == [0, 0, 0]


def test_money_lasts_longer_than_time_where_waiting_is_free() -> None:
    risky = exposed(hazard=0.5, restart_h=1.0, billed_restart_h=0.05)
    expected, limit = course(risky), np.array([14.0])
    assert billed_within(risky, expected, limit)[0] > finish_by(risky, expected, limit)[0] + 0.2


# --- quantiles ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9, 0.99])
def test_a_quantile_is_where_the_odds_reach_it(q: float) -> None:
    risky = exposed(hazard=[0.02, 0.2, 1.0, 3.0])
    expected = course(risky)
    for quantile, odds in ((wall_quantile, finish_by), (billed_quantile, billed_within)):
        there = quantile(risky, expected, q)
        assert (odds(risky, expected, there) >= q - 1e-6).all()
        assert (odds(risky, expected, there * 0.999) < q).all()


def test_a_quantile_that_needs_no_interruption_is_the_undisturbed_time() -> None:
    safe = exposed(hazard=[0.0, 0.001], interval_h=20.0)
    assert list(wall_quantile(safe, course(safe), 0.5)) == [10.0, 10.0]


@pytest.mark.parametrize("q", [0.0, 1.0, -1.0, NAN])
def test_a_quantile_outside_of_its_range_is_refused(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        wall_quantile(exposed(), course(exposed()), q)
