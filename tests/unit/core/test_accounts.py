"""What people may give to others. Nobody gives more than they have."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.accounts import acts_for, check_new_user, check_team_role, grants_given, life_given
from crucible.model.account import Grant, Principal, Role, User, UserKind
from crucible.model.errors import Forbidden, InvalidRequest
from crucible.model.ids import TokenId, UserId
from crucible.testing.specimens import LATER, NOW

SERVICE = User(id=UserId("ci"), name="ci", role=Role.MEMBER, created_at=NOW, kind=UserKind.SERVICE)
PERSON = User(id=UserId("bob"), name="bob", role=Role.MEMBER, created_at=NOW)
ROOT = User(id=UserId("root"), name="root", role=Role.ADMIN, created_at=NOW, kind=UserKind.SERVICE)
MANAGER = {"vision": Role.MANAGER}
BOTH = {"vision": Role.MEMBER, "speech": Role.MEMBER}


def who(
    role: Role = Role.MEMBER, teams: dict[str, Role] | None = None, grants: frozenset[Grant] = frozenset()
) -> Principal:
    return Principal(UserId("ann"), role, TokenId("t"), teams or {}, grants)


def test_admins_make_anybody_and_managers_make_services_for_their_team() -> None:
    check_new_user(who(Role.ADMIN), Role.ADMIN, UserKind.PERSON, None)
    check_new_user(who(teams=MANAGER), Role.MEMBER, UserKind.SERVICE, "vision")
    for asking, role, kind, team in (
        (who(teams=MANAGER), Role.MEMBER, UserKind.PERSON, "vision"),
        (who(teams=MANAGER), Role.MEMBER, UserKind.SERVICE, None),
        (who(teams=MANAGER), Role.MEMBER, UserKind.SERVICE, "speech"),
        (who(teams=MANAGER), Role.ADMIN, UserKind.SERVICE, "vision"),
        (who(teams={"vision": Role.MEMBER}), Role.MEMBER, UserKind.SERVICE, "vision"),
        (who(Role.ADMIN, grants=frozenset({Grant.MANAGE})), Role.MEMBER, UserKind.PERSON, None),
    ):
        with pytest.raises(Forbidden):
            check_new_user(asking, role, kind, team)


@pytest.mark.parametrize(
    ("asking", "user", "teams", "may"),
    [
        (who(Role.ADMIN), ROOT, {}, True),
        (who(teams=MANAGER), SERVICE, {"vision": Role.MEMBER}, True),
        (who(teams=MANAGER), SERVICE, BOTH, False),  # it could do something in a team that is not theirs
        (who(teams=MANAGER), SERVICE, {}, False),
        (who(teams=MANAGER), PERSON, {"vision": Role.MEMBER}, False),
        (who(teams=MANAGER), ROOT, {"vision": Role.MEMBER}, False),
        (who(teams={"vision": Role.MEMBER}), SERVICE, {"vision": Role.MEMBER}, False),
        (who(Role.VIEWER, MANAGER), SERVICE, {"vision": Role.MEMBER}, False),
    ],
)
def test_tokens_are_made_for_services_that_can_do_nothing_more(
    asking: Principal, user: User, teams: dict[str, Role], may: bool
) -> None:
    assert acts_for(asking, user, teams) is may


@given(
    role=st.sampled_from([Role.VIEWER, Role.MEMBER, Role.ADMIN]),
    has=st.frozensets(st.sampled_from(Grant)),
    asked=st.frozensets(st.sampled_from(Grant)),
)
def test_a_token_never_makes_one_for_more_than_itself(
    role: Role, has: frozenset[Grant], asked: frozenset[Grant]
) -> None:
    asking = who(role, grants=has)
    try:
        given = grants_given(asking, asked)
    except Forbidden:
        assert (has and not asked <= has) or (role is not Role.ADMIN and (asked or has) & {Grant.ADMIN, Grant.METRICS})
        return
    made = who(role, grants=frozenset(given))
    assert all(asking.is_granted(grant) for grant in Grant if made.is_granted(grant))
    assert not has or given, "a token for certain uses makes none for everything"


def test_a_team_has_roles_of_its_own() -> None:
    check_team_role(Role.MANAGER)
    with pytest.raises(InvalidRequest, match="viewer, member, manager"):
        check_team_role(Role.ADMIN)


def test_a_token_for_certain_uses_makes_none_that_outlives_it() -> None:
    limited = replace(who(grants=frozenset({Grant.MANAGE})), expires_at=LATER)
    assert life_given(limited, None) == LATER
    assert life_given(limited, NOW) == NOW
    with pytest.raises(Forbidden, match="none that lives longer"):
        life_given(limited, LATER + timedelta(seconds=1))


def test_whoever_may_do_all_that_its_user_may_makes_tokens_for_as_long_as_it_is_asked_to() -> None:
    """A person who signed in for half a day makes the tokens of their programs."""
    for asking in (who(), replace(who(), expires_at=NOW), who(grants=frozenset({Grant.MANAGE}))):
        assert life_given(asking, None) is None and life_given(asking, LATER) == LATER
