"""Who sees what of the costs, which hours a period has, and what it will come to."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from crucible.core.cost_reports import forecast, scope_of, windows
from crucible.model.account import Principal, Role, Sight
from crucible.model.costs import Dimension, Window
from crucible.model.errors import InvalidRequest
from crucible.model.ids import TokenId, UserId
from crucible.model.units import MicroUsd

D = Dimension
BERLIN = ZoneInfo("Europe/Berlin")
NOVEMBER, DECEMBER = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def someone(role: Role = Role.MEMBER, **teams: Role) -> Principal:
    return Principal(UserId("ann"), role, TokenId("t"), teams)


def test_an_admin_sees_everything() -> None:
    assert scope_of(someone(Role.ADMIN), [D.USER], {}) is None


def test_members_see_what_their_teams_spent_and_of_single_people_only_themselves() -> None:
    ann = someone(vision=Role.MEMBER, speech=Role.MANAGER, cars=Role.VIEWER)
    assert scope_of(ann, [D.TEAM, D.DAY], {}) == Sight(UserId("ann"), frozenset({"vision", "speech", "cars"}))
    only_managed = Sight(UserId("ann"), frozenset({"speech"}))
    assert scope_of(ann, [D.TEAM, D.USER], {}) == only_managed
    assert scope_of(ann, [D.JOB], {}) == only_managed
    assert scope_of(ann, [D.DAY], {D.USER: "bob"}) == only_managed
    assert scope_of(someone(Role.VIEWER, speech=Role.MANAGER), [D.USER], {}) == Sight(UserId("ann"), frozenset())


def test_a_period_is_cut_where_clocks_are_changed() -> None:
    start, end = datetime(2026, 10, 1, tzinfo=BERLIN), datetime(2026, 11, 1, tzinfo=BERLIN)
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert windows(start, end, BERLIN) == (
        Window(start.astimezone(UTC), change, 7200),
        Window(change, end.astimezone(UTC), 3600),
    )
    assert windows(NOVEMBER, DECEMBER) == (Window(NOVEMBER, DECEMBER, 0),)


@pytest.mark.parametrize(
    ("start", "end", "zone", "words"),
    [
        (DECEMBER, NOVEMBER, UTC, "before"),
        (NOVEMBER, NOVEMBER, UTC, "empty"),
        (NOVEMBER + timedelta(minutes=30), DECEMBER, UTC, "whole hour"),
        (NOVEMBER, DECEMBER, ZoneInfo("Asia/Kolkata"), "use UTC"),
    ],
)
def test_what_is_no_period_of_whole_hours_is_refused(
    start: datetime, end: datetime, zone: ZoneInfo, words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words):
        windows(start, end, zone)


def test_a_month_goes_on_as_the_last_days_went() -> None:
    now = NOVEMBER + timedelta(days=10)
    told = forecast(MicroUsd(100_000_000), MicroUsd(70_000_000), now - timedelta(days=7), now, DECEMBER)
    assert told is not None and (told.per_day, told.total) == (10_000_000, 300_000_000)
    assert forecast(MicroUsd(1), MicroUsd(1), now - timedelta(days=7), DECEMBER, DECEMBER) is None
    assert forecast(MicroUsd(1), MicroUsd(1), now, now, DECEMBER) is None
