"""Looks up the teams and projects that a job names."""

from crucible.core.attribution import Account, attributed
from crucible.engine.context import Context
from crucible.model.account import Principal


async def account_of(context: Context, who: Principal, asked: Account) -> Account:
    """Raises UnknownTeam, UnknownProject, Forbidden, InvalidRequest."""
    store = context.store
    teams = [team.name for team in await store.teams()] if asked.team is not None else []
    projects = {one.name: one.team for one in await store.projects()} if asked.project is not None else {}
    return attributed(who, asked, teams, projects)
