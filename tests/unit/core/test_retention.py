"""What is old enough to go."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.retention import SETTLING, ages, cutoffs, days_of, erasable, is_ended_before, kind_of, settings
from crucible.model.errors import InvalidRequest
from crucible.model.retention import DEFAULT_DAYS, Kept, Retained
from crucible.testing.specimens import NOW


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("90d", 90),
        ("90", 90),
        ("12w", 84),
        ("2y", 730),
        (" 1 year ", 365),
        ("7 days", 7),
        ("never", 0),
        ("default", None),
    ],
)
def test_ages_are_read_as_people_write_them(text: str, days: int | None) -> None:
    assert days_of(text) == days


@pytest.mark.parametrize("text", ["", "0", "0d", "-1", "1.5d", "90 moons", "101y", "9999999", "soon"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="is no age"):
        days_of(text)


def test_money_has_no_age() -> None:
    with pytest.raises(InvalidRequest, match="money is kept for ever"):
        kind_of("ledger")


def test_an_admins_word_goes_before_the_servers_and_that_before_the_defaults() -> None:
    stored = [Retained(what=Kept.LOGS, days=5), Retained(what=Kept.AUDIT, days=0), Retained(what=Kept.PLANS)]
    found = ages(stored, settings("logs=7d, events=10d,jobs=never"))
    assert found[Kept.LOGS] == timedelta(days=5)
    assert found[Kept.EVENTS] == timedelta(days=10)
    assert found[Kept.AUDIT] is None and found[Kept.JOBS] is None
    assert found[Kept.PLANS] == timedelta(days=DEFAULT_DAYS[Kept.PLANS])


def test_a_kind_that_is_kept_for_ever_has_no_cutoff() -> None:
    found = cutoffs(ages([Retained(what=Kept.JOBS, days=0)], {}), NOW)
    assert Kept.JOBS not in found and found[Kept.LOGS] == NOW - timedelta(days=90)


@given(events=st.integers(0, 5000), jobs=st.integers(0, 5000), audit=st.integers(0, 5000))
def test_the_database_lets_go_of_what_the_policy_needs_and_of_nothing_younger(
    events: int, jobs: int, audit: int
) -> None:
    stored = [
        Retained(what=what, days=days) for what, days in ((Kept.EVENTS, events), (Kept.JOBS, jobs), (Kept.AUDIT, audit))
    ]
    moments = cutoffs(ages(stored, {}), NOW)
    horizons = erasable(moments)
    assert (Kept.AUDIT in horizons) == bool(audit) and (Kept.EVENTS in horizons) == bool(events or jobs)
    for what in (Kept.EVENTS, Kept.JOBS):
        if what in moments:
            assert is_ended_before(what, moments[what]) + SETTLING <= horizons[Kept.EVENTS]
    assert set(horizons.values()) <= set(moments.values())
