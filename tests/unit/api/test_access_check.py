"""What a route asks of people, level by level and grant by grant."""

import pytest

from crucible.api.access import ADMINISTER, CHANGE, LOOK, MANAGE, SCRAPE, Need, check
from crucible.model.account import Grant, Principal, Role
from crucible.model.errors import Forbidden
from crucible.model.ids import TokenId, UserId


def who(role: Role, *, manages: bool = False, grants: tuple[Grant, ...] = ()) -> Principal:
    return Principal(UserId("ann"), role, TokenId("t"), {"v": Role.MANAGER} if manages else {}, frozenset(grants))


def may(need: Need, asking: Principal) -> bool:
    try:
        check(need, asking)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    ("asking", "allowed"),
    [
        (who(Role.VIEWER), [LOOK]),
        (who(Role.VIEWER, manages=True), [LOOK]),
        (who(Role.MEMBER), [LOOK, CHANGE]),
        (who(Role.MEMBER, manages=True), [LOOK, CHANGE, MANAGE]),
        (who(Role.ADMIN), [LOOK, CHANGE, MANAGE, ADMINISTER, SCRAPE]),
        (who(Role.ADMIN, grants=(Grant.READ,)), [LOOK]),
        (who(Role.ADMIN, grants=(Grant.JOBS,)), [LOOK, CHANGE]),
        (who(Role.ADMIN, grants=(Grant.MANAGE,)), [LOOK, MANAGE]),
        (who(Role.ADMIN, grants=(Grant.ADMIN,)), [LOOK, ADMINISTER]),
        (who(Role.ADMIN, grants=(Grant.METRICS,)), [SCRAPE]),
        (who(Role.MEMBER, grants=(Grant.ADMIN,)), [LOOK]),
        (who(Role.VIEWER, grants=(Grant.METRICS,)), [SCRAPE]),
    ],
)
def test_each_may_use_exactly_what_role_and_token_allow(asking: Principal, allowed: list[Need]) -> None:
    assert [need for need in (LOOK, CHANGE, MANAGE, ADMINISTER, SCRAPE) if may(need, asking)] == allowed
