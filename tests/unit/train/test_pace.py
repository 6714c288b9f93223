"""When it is time for a checkpoint: by the spec, or by what a save costs and how long machines live."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible import train
from crucible.train import pace as pacing
from crucible.train import stopping
from crucible.train.pace import DEFAULT_S, FIRST_S, MAX_S, MIN_S, Pace, best_interval_s

HOUR = 3600.0


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CRUCIBLE_CHECKPOINT_INTERVAL_S", "CRUCIBLE_MEAN_LIFE_S", "CRUCIBLE_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)


def expected_time(interval_s: float, cost_s: float, life_s: float) -> float:
    """Of an hour of work on machines that are lost at random, by Daly's exact model; a restart costs nothing here."""
    return life_s * math.expm1((interval_s + cost_s) / life_s) * HOUR / interval_s


@pytest.mark.parametrize(
    ("cost_s", "life_s", "expected_s"),
    [(1.0, 2 * HOUR, 119.33), (10.0, 2 * HOUR, 372.84), (60.0, 24 * HOUR, 3180.062), (300.0, HOUR, 1276.498)],
)
def test_the_interval_is_that_of_the_formula(cost_s: float, life_s: float, expected_s: float) -> None:
    assert best_interval_s(cost_s, life_s) == pytest.approx(expected_s, abs=0.01)


def test_a_save_that_takes_longer_than_machines_live_is_made_once_in_a_life() -> None:
    assert best_interval_s(500.0, 100.0) == best_interval_s(200.0, 100.0) == 100.0


@given(st.floats(0.01, 600), st.floats(600, 30 * 24 * HOUR))
def test_no_other_interval_is_much_better(cost_s: float, life_s: float) -> None:
    best = expected_time(best_interval_s(cost_s, life_s), cost_s, life_s)
    others = [
        expected_time(best_interval_s(cost_s, life_s) * 2 ** (power / 8), cost_s, life_s) for power in range(-40, 41)
    ]
    assert best <= min(others) * 1.005


@given(st.floats(0.001, 1000), st.floats(1, 1e6), st.floats(1, 10))
def test_dearer_saves_are_made_less_often_and_longer_lives_need_fewer(cost_s: float, life_s: float, by: float) -> None:
    assert 0 < best_interval_s(cost_s, life_s) <= best_interval_s(cost_s, life_s * by) * 1.000001
    if cost_s * by < life_s / 2:
        assert best_interval_s(cost_s, life_s) <= best_interval_s(cost_s * by, life_s) * 1.000001


def asked(pace: Pace, start: float, end: float, is_stopping: bool = False) -> list[float]:
    """When a script that asks every second hears that it is time."""
    times = [start + second for second in range(int(end - start))]
    return [now for now in times if pace.is_due(now, is_stopping)]


def test_the_interval_of_the_spec_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_CHECKPOINT_INTERVAL_S", "20")
    monkeypatch.setenv("CRUCIBLE_MEAN_LIFE_S", "7200")
    pace = Pace()
    assert asked(pace, 1000, 1070) == [1020, 1040, 1060]
    pace.saved(1066, 1069)
    assert asked(pace, 1070, 1100) == [1089], "counted from the end of a save"


def test_the_first_save_comes_soon_and_then_the_default_holds() -> None:
    pace = Pace()
    assert asked(pace, 0, 100) == [FIRST_S]
    pace.saved(60, 61)
    assert asked(pace, 61, 1300) == [61 + DEFAULT_S, 61 + 2 * DEFAULT_S]


def test_where_machines_are_taken_away_the_cost_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_MEAN_LIFE_S", "7200")
    pace = Pace()
    pace.saved(0, 10)
    assert pace.interval_s() == pytest.approx(best_interval_s(10, 7200))
    pace.saved(400, 401)
    assert pace.interval_s() == pytest.approx(best_interval_s(5.5, 7200))


def test_what_the_script_does_after_it_heard_is_part_of_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_MEAN_LIFE_S", "7200")
    pace = Pace()
    assert asked(pace, 0, 61) == [60]
    pace.saved(89, 90)  # half a minute for writing the file
    assert pace.interval_s() == pytest.approx(best_interval_s(30, 7200))


@pytest.mark.parametrize(
    ("cost_s", "took_s", "life_s", "interval_s"),
    [(0.001, 0.0, 100.0, MIN_S), (0.001, 90.0, 100.0, 90.0), (600.0, 0.0, 1e9, MAX_S), (0.001, 1e6, 100.0, MAX_S)],
)
def test_the_interval_stays_within_bounds(
    monkeypatch: pytest.MonkeyPatch, cost_s: float, took_s: float, life_s: float, interval_s: float
) -> None:
    monkeypatch.setenv("CRUCIBLE_MEAN_LIFE_S", str(life_s))
    pace = Pace()
    pace.saved(0, cost_s)
    pace.committed(took_s)
    assert pace.interval_s() == interval_s


@pytest.mark.parametrize("nonsense", ["", "soon", "0", "-5", "nan", "inf"])
def test_what_is_not_a_length_of_time_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch, nonsense: str) -> None:
    monkeypatch.setenv("CRUCIBLE_CHECKPOINT_INTERVAL_S", nonsense)
    monkeypatch.setenv("CRUCIBLE_MEAN_LIFE_S", nonsense)
    assert (train.init().checkpoint_interval_s, train.init().mean_life_s) == (None, None)
    assert Pace().interval_s() == FIRST_S


def test_a_stop_asks_for_one_more_save() -> None:
    pace = Pace()
    assert asked(pace, 0, 10) == []
    assert asked(pace, 10, 60, is_stopping=True) == [10]


def test_a_script_hears_of_the_stop_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    notice = stopping.StopNotice()
    notice._is_listening = True  # this process keeps its own SIGTERM
    monkeypatch.setattr(stopping, "_notice", notice)
    monkeypatch.setattr(pacing, "pace", Pace())
    monkeypatch.setattr(stopping, "LOOK_EVERY_S", 0.0)
    assert not train.should_checkpoint()
    (tmp_path / "stop").touch()
    assert [train.should_checkpoint() for _ in range(3)] == [True, False, False] and train.should_stop()


def test_a_save_of_the_script_restarts_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", str(tmp_path / "store"))
    mine = Pace()
    monkeypatch.setattr("crucible.train.saving.pace", mine)
    (tmp_path / "model").write_bytes(b"x")
    assert mine.interval_s() == FIRST_S
    train.save_checkpoint(tmp_path / "model", 1)
    assert mine.interval_s() == DEFAULT_S
