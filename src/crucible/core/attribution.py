"""Under which team and project a job is counted. What a spec names must be there, and whoever submits must work in it;
a team that they have nothing to do with does not exist for them."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from crucible.core.rights import is_admin, runs_in
from crucible.model.account import Principal
from crucible.model.errors import Forbidden, InvalidRequest, UnknownProject, UnknownTeam

SHOWN = 5


class Account(NamedTuple):
    """Who pays, and for what."""

    team: str | None
    project: str | None


def attributed(who: Principal, asked: Account, teams: Collection[str], projects: Mapping[str, str]) -> Account:
    """`teams` are all that there are, `projects` name the team of each. Raises UnknownTeam, UnknownProject, Forbidden,
    InvalidRequest."""
    if asked.project is not None:
        return _of_project(who, asked, asked.project, projects)
    if asked.team is None:
        return Account(only_team(who), None)
    return Account(_team(who, asked.team, teams), None)


def only_team(who: Principal) -> str | None:
    """Who works in one team alone need not name it."""
    mine = [team for team in who.teams if runs_in(who, team)]
    return mine[0] if len(mine) == 1 else None


def _of_project(who: Principal, asked: Account, project: str, projects: Mapping[str, str]) -> Account:
    team = projects.get(project)
    if team is None or not _sees(who, team):
        known = [name for name, owner in projects.items() if _sees(who, owner)]
        hint = _hint(project, known, "crucible project create NAME --team TEAM")
        raise UnknownProject(f"there is no project {project}; {hint}", field="job.project")
    if asked.team is not None and asked.team != team:
        raise InvalidRequest(
            f"the project {project} belongs to the team {team}, not {asked.team}: leave job.team out", field="job.team"
        )
    _check_works(who, team, "job.project")
    return Account(team, project)


def _team(who: Principal, team: str, teams: Collection[str]) -> str:
    if team not in teams or not _sees(who, team):
        known = [name for name in teams if _sees(who, name)]
        hint = _hint(team, known, f"an admin makes it: crucible team create {team}")
        raise UnknownTeam(f"there is no team {team}; {hint}", field="job.team")
    _check_works(who, team, "job.team")
    return team


def _sees(who: Principal, team: str) -> bool:
    return is_admin(who) or team in who.teams


def _check_works(who: Principal, team: str, field: str) -> None:
    if not runs_in(who, team):
        raise Forbidden(f"you may look at the team {team}, not run jobs for it; ask one of its managers", field=field)


def _hint(name: str, known: Collection[str], otherwise: str) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]}?"
    return f"there are {', '.join(sorted(known)[:SHOWN])}; {otherwise}" if known else otherwise
