"""Teams, who is in them, and their projects. What must hold is looked at in the transaction that changes it: rows
first, the line of the log last, so that two writers never wait for each other."""

from collections.abc import Collection, Sequence

from sqlalchemy import Select, and_, bindparam, delete, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.account import Membership, Project, Team
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound, UnknownProject, UnknownTeam
from crucible.model.ids import UserId
from crucible.model.job import Job
from crucible.store.account_tables import memberships as member_table
from crucible.store.account_tables import projects as project_table
from crucible.store.account_tables import teams as team_table
from crucible.store.account_tables import users as user_table
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows
from crucible.store.secret_tables import secrets
from crucible.store.sql import Among, Sql, Transaction, UniqueViolated, as_list, fixed_set
from crucible.store.tables import FINISHED_JOBS
from crucible.store.tables import jobs as job_table

TEAMS = Rows(Team, team_table)
MEMBERS = Rows(Membership, member_table)
PROJECTS = Rows(Project, project_table)

_T, _M, _P, _J, _S = team_table.c, member_table.c, project_table.c, job_table.c, secrets.c
_TEAMS = Sql(select(*TEAMS.columns).order_by(_T.name))
_ADD_TEAM = Sql(insert(team_table).values(TEAMS.parameters()))
_HOLD_TEAM = Sql(select(_T.name).where(_T.name == bindparam("name")).with_for_update())
_KEEP_TEAM = Sql(select(_T.name).where(_T.name == bindparam("name")).with_for_update(read=True, key_share=True))
_KEEP_PROJECT = Sql(select(_P.name).where(_P.name == bindparam("name")).with_for_update(read=True, key_share=True))
_REMOVE_TEAM = Sql(delete(team_table).where(_T.name == bindparam("name")))
_REMOVE_MEMBERS = Sql(delete(member_table).where(_M.team == bindparam("name")))
_REMOVE_TEAM_SECRETS = Sql(
    delete(secrets).where(
        or_(
            and_(_S.owner_kind == "team", _S.owner == bindparam("name")),
            and_(_S.owner_kind == "project", _S.owner.in_(select(_P.name).where(_P.team == bindparam("name")))),
        )
    )
)
_REMOVE_PROJECTS = Sql(delete(project_table).where(_P.team == bindparam("name")))

_MEMBERS = select(*MEMBERS.columns).order_by(_M.team, _M.user_id)
_ALL_MEMBERS, _MEMBERS_OF = Sql(_MEMBERS), Sql(_MEMBERS.where(Among(_M.team, "teams")))
_USER = Sql(select(user_table.c.id).where(user_table.c.id == bindparam("id")))
_SAVE_MEMBER = Sql(
    upsert(member_table)
    .values(MEMBERS.parameters())
    .on_conflict_do_update(index_elements=["team", "user_id"], set_={"role": bindparam("role")})
)
_REMOVE_MEMBER = Sql(delete(member_table).where(_M.team == bindparam("team"), _M.user_id == bindparam("user_id")))

_PROJECTS = Sql(select(*PROJECTS.columns).order_by(_P.name))
_ADD_PROJECT = Sql(insert(project_table).values(PROJECTS.parameters()))
_HOLD_PROJECT = Sql(select(_P.name).where(_P.name == bindparam("name")).with_for_update())
# Whoever makes another one of that name does not find them.
_REMOVE_PROJECT_SECRETS = Sql(delete(secrets).where(_S.owner_kind == "project", _S.owner == bindparam("name")))
_REMOVE_PROJECT = Sql(delete(project_table).where(_P.name == bindparam("name")))


def _unfinished() -> Select[tuple[str]]:
    return select(_J.id).where(_J.status.not_in(fixed_set(FINISHED_JOBS))).limit(1)


_AT_WORK_OF_TEAM = Sql(_unfinished().where(_J.team == bindparam("name")))
_AT_WORK_OF_PROJECT = Sql(_unfinished().where(_J.project == bindparam("name")))


# --- teams ------------------------------------------------------------------------------------------------------


def teams(tx: Transaction) -> Sequence[Team]:
    return TEAMS.unpack_all(tx.rows(_TEAMS))


def add_team(tx: Transaction, team: Team, audit: AuditEntry | None) -> None:
    try:
        tx.run(_ADD_TEAM, TEAMS.pack(team))
    except UniqueViolated as error:
        raise Conflict(f"there is a team {team.name} already") from error
    write_audit(tx, audit)


def remove_team(tx: Transaction, name: str, audit: AuditEntry | None) -> None:
    if tx.row(_HOLD_TEAM, name=name) is None:
        raise no_team(name)
    _check_idle(tx, _AT_WORK_OF_TEAM, f"the team {name}", name)
    for statement in (_REMOVE_MEMBERS, _REMOVE_TEAM_SECRETS, _REMOVE_PROJECTS, _REMOVE_TEAM):
        tx.run(statement, {"name": name})
    write_audit(tx, audit)


def memberships(tx: Transaction, teams: Collection[str] | None) -> Sequence[Membership]:
    rows = tx.rows(_ALL_MEMBERS) if teams is None else tx.rows(_MEMBERS_OF, teams=as_list(teams))
    return MEMBERS.unpack_all(rows)


def save_member(tx: Transaction, new: Membership, audit: AuditEntry | None) -> None:
    keep_team(tx, new.team)
    if tx.row(_USER, id=new.user_id) is None:
        raise NotFound(f"there is no user {new.user_id}")
    tx.run(_SAVE_MEMBER, MEMBERS.pack(new))
    write_audit(tx, audit)


def remove_member(tx: Transaction, team: str, user_id: UserId, audit: AuditEntry | None) -> None:
    if not tx.run(_REMOVE_MEMBER, {"team": team, "user_id": user_id}):
        raise NotFound(f"{user_id} is not in the team {team}")
    write_audit(tx, audit)


def keep_team(tx: Transaction, name: str) -> None:
    """Nobody removes it before this transaction ends. Raises NotFound."""
    if tx.row(_KEEP_TEAM, name=name) is None:
        raise no_team(name)


def check_account(tx: Transaction, job: Job) -> None:
    """Of a new job, in its transaction: what was removed meanwhile cannot be charged. A step has its workflow's, which
    is not over."""
    if job.parent is not None:
        return
    if job.team is not None and tx.row(_KEEP_TEAM, name=job.team) is None:
        raise UnknownTeam(f"there is no team {job.team}", field="job.team")
    if job.project is not None and tx.row(_KEEP_PROJECT, name=job.project) is None:
        raise UnknownProject(f"there is no project {job.project}", field="job.project")


# --- projects ---------------------------------------------------------------------------------------------------


def projects(tx: Transaction) -> Sequence[Project]:
    return PROJECTS.unpack_all(tx.rows(_PROJECTS))


def add_project(tx: Transaction, project: Project, audit: AuditEntry | None) -> None:
    keep_team(tx, project.team)
    try:
        tx.run(_ADD_PROJECT, PROJECTS.pack(project))
    except UniqueViolated as error:
        raise Conflict(f"there is a project {project.name} already; names of projects are one of a kind") from error
    write_audit(tx, audit)


def remove_project(tx: Transaction, name: str, audit: AuditEntry | None) -> None:
    if tx.row(_HOLD_PROJECT, name=name) is None:
        raise NotFound(f"there is no project {name}")
    _check_idle(tx, _AT_WORK_OF_PROJECT, f"the project {name}", name)
    for statement in (_REMOVE_PROJECT_SECRETS, _REMOVE_PROJECT):
        tx.run(statement, {"name": name})
    write_audit(tx, audit)


def _check_idle(tx: Transaction, at_work: Sql, what: str, name: str) -> None:
    row = tx.row(at_work, name=name)
    if row is not None:
        raise Conflict(f"{what} has jobs that are not over, such as {row[0]}: cancel them or wait for them first")


def no_team(name: str) -> NotFound:
    return NotFound(f"there is no team {name}")
