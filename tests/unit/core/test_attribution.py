"""Under which team and project jobs are counted."""

import pytest

from crucible.core.attribution import Account, attributed
from crucible.model.account import Principal, Role
from crucible.model.errors import Forbidden, InvalidRequest, PlatformError, UnknownProject, UnknownTeam
from crucible.model.ids import TokenId, UserId

TEAMS = ("vision", "speech", "secret")
PROJECTS = {"cats": "vision", "words": "speech", "moon": "secret"}
WORKS, LOOKS = {"vision": Role.MEMBER}, {"vision": Role.VIEWER}
BOTH = {"vision": Role.MEMBER, "speech": Role.MANAGER}


def who(teams: dict[str, Role], role: Role = Role.MEMBER) -> Principal:
    return Principal(UserId("ann"), role, TokenId("t"), teams)


@pytest.mark.parametrize(
    ("asking", "team", "project", "counted"),
    [
        (who(WORKS), "vision", None, Account("vision", None)),
        (who(WORKS), None, None, Account("vision", None)),
        (who(BOTH), None, None, Account(None, None)),
        (who({**WORKS, "speech": Role.VIEWER}), None, None, Account("vision", None)),
        (who({}), None, None, Account(None, None)),
        (who(LOOKS), None, None, Account(None, None)),
        (who(BOTH), None, "words", Account("speech", "words")),
        (who(BOTH), "vision", "cats", Account("vision", "cats")),
        (who({}, Role.ADMIN), "secret", None, Account("secret", None)),
        (who({}, Role.ADMIN), None, "moon", Account("secret", "moon")),
    ],
)
def test_a_job_is_counted_under_what_it_names_or_its_submitters_only_team(
    asking: Principal, team: str | None, project: str | None, counted: Account
) -> None:
    assert attributed(asking, Account(team, project), TEAMS, PROJECTS) == counted


@pytest.mark.parametrize(
    ("asking", "team", "project", "error", "field", "words"),
    [
        (who(WORKS), "vizion", None, UnknownTeam, "job.team", "did you mean vision?"),
        (who({}), "nowhere", None, UnknownTeam, "job.team", "crucible team create nowhere"),
        (who(WORKS), "secret", None, UnknownTeam, "job.team", "there is no team secret; there are vision;"),
        (who(WORKS), None, "cat", UnknownProject, "job.project", "did you mean cats?"),
        (who(WORKS), None, "moon", UnknownProject, "job.project", "there is no project moon; there are cats;"),
        (who(LOOKS), "vision", None, Forbidden, "job.team", "ask one of its managers"),
        (who(LOOKS), None, "cats", Forbidden, "job.project", "ask one of its managers"),
        (who(BOTH), "vision", "words", InvalidRequest, "job.team", "belongs to the team speech, not vision"),
        (who(WORKS, Role.VIEWER), "vision", None, Forbidden, "job.team", "not run jobs for it"),
        (who({}, Role.ADMIN), "secre", None, UnknownTeam, "job.team", "did you mean secret?"),
    ],
)
def test_what_is_not_there_or_not_theirs_is_told_with_its_field(
    asking: Principal, team: str | None, project: str | None, error: type[PlatformError], field: str, words: str
) -> None:
    with pytest.raises(error) as caught:
        attributed(asking, Account(team, project), TEAMS, PROJECTS)
    assert caught.value.details["field"] == field
    assert words in caught.value.message


def test_a_foreign_team_reads_like_one_that_does_not_exist() -> None:
    told = []
    for team in ("secret", "absent"):
        with pytest.raises(UnknownTeam) as caught:
            attributed(who(WORKS), Account(team, None), TEAMS, PROJECTS)
        told.append(caught.value.message.replace(team, "X"))
    assert told[0] == told[1]
