"""Who sees and changes what: their own, their teams', or everything."""

import pytest

from crucible.core import rights
from crucible.model.account import Grant, Principal, Role
from crucible.model.errors import Forbidden
from crucible.model.ids import TokenId, UserId

ANN, BOB = UserId("ann"), UserId("bob")
TEAM = "vision"


def who(role: Role = Role.MEMBER, there: Role | None = None, grants: frozenset[Grant] = frozenset()) -> Principal:
    return Principal(ANN, role, TokenId("t"), {} if there is None else {TEAM: there}, grants)


@pytest.mark.parametrize(
    ("asking", "owner", "team", "sees", "changes"),
    [
        (who(), ANN, None, True, True),
        (who(), BOB, None, False, False),
        (who(), BOB, TEAM, False, False),
        (who(Role.VIEWER), ANN, None, True, False),
        (who(there=Role.VIEWER), BOB, TEAM, True, False),
        (who(there=Role.MEMBER), BOB, TEAM, True, False),
        (who(there=Role.MANAGER), BOB, TEAM, True, True),
        (who(there=Role.MANAGER), BOB, "speech", False, False),
        (who(there=Role.MANAGER), BOB, None, False, False),
        (who(Role.VIEWER, Role.MANAGER), BOB, TEAM, True, False),
        (who(Role.ADMIN), BOB, TEAM, True, True),
        (who(Role.ADMIN), BOB, None, True, True),
    ],
)
def test_people_see_what_is_theirs_and_their_teams_and_change_what_they_answer_for(
    asking: Principal, owner: UserId, team: str | None, sees: bool, changes: bool
) -> None:
    assert rights.sees(asking, owner, team) is sees
    assert rights.changes(asking, owner, team) is changes


def test_jobs_are_counted_under_teams_that_one_works_in() -> None:
    assert rights.runs_in(who(there=Role.MEMBER), TEAM)
    assert rights.runs_in(who(), None)
    assert rights.runs_in(who(Role.ADMIN), "anything")
    assert not rights.runs_in(who(there=Role.VIEWER), TEAM)
    assert not rights.runs_in(who(there=Role.MANAGER), "speech")
    assert not rights.runs_in(who(Role.VIEWER, Role.MEMBER), TEAM)
    assert not rights.runs_in(who(Role.VIEWER), None)


def test_only_managers_manage_and_only_their_own_team() -> None:
    rights.require_manager(who(there=Role.MANAGER), TEAM)
    rights.require_manager(who(Role.ADMIN), TEAM)
    for asking, team in ((who(there=Role.MEMBER), TEAM), (who(there=Role.MANAGER), "speech"), (who(), TEAM)):
        with pytest.raises(Forbidden, match=team):
            rights.require_manager(asking, team)


def test_lists_show_what_one_sees() -> None:
    sight = rights.sight(who(there=Role.VIEWER))
    assert sight is not None
    assert (sight.user_id, sight.teams) == (ANN, {TEAM})
    assert rights.sight(who(Role.ADMIN)) is None


def test_a_token_without_grants_is_for_everything_and_one_that_changes_may_look() -> None:
    assert all(who().is_granted(grant) for grant in Grant)
    jobs = who(grants=frozenset({Grant.JOBS}))
    assert [grant for grant in Grant if jobs.is_granted(grant)] == [Grant.READ, Grant.JOBS]
    metrics = who(grants=frozenset({Grant.METRICS}))
    assert [grant for grant in Grant if metrics.is_granted(grant)] == [Grant.METRICS]
