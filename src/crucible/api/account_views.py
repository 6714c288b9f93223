"""People, teams and the log of changes in the words of wire.accounts."""

from collections.abc import Mapping
from typing import Any

from crucible.core.rights import role_in
from crucible.engine.teams import TeamView
from crucible.model.account import Membership, Principal, Project, Role, Token, User
from crucible.model.audit import AuditEntry


def token(held: Token) -> dict[str, Any]:
    return {
        "id": held.id,
        "name": held.name,
        "user_id": held.user_id,
        "created_at": held.created_at,
        "expires_at": held.expires_at,
        "revoked_at": held.revoked_at,
        "grants": held.grants,
    }


def user(person: User, teams: Mapping[str, Role]) -> dict[str, Any]:
    return {
        "id": person.id,
        "name": person.name,
        "role": person.role,
        "kind": person.kind,
        "created_at": person.created_at,
        "disabled_at": person.disabled_at,
        "teams": dict(teams),
    }


def me(who: Principal, name: str) -> dict[str, Any]:
    return {
        "user_id": who.user_id,
        "name": name,
        "role": who.role,
        "token_id": who.token_id,
        "teams": dict(who.teams),
        "grants": sorted(who.grants),
    }


def team(view: TeamView, who: Principal) -> dict[str, Any]:
    return {
        "name": view.team.name,
        "created_at": view.team.created_at,
        "created_by": view.team.created_by,
        "role": role_in(who, view.team.name),
        "members": len(view.members),
        "projects": [one.name for one in view.projects],
    }


def member(one: Membership) -> dict[str, Any]:
    return {"user_id": one.user_id, "role": one.role, "created_at": one.created_at}


def project(one: Project) -> dict[str, Any]:
    return {"name": one.name, "team": one.team, "created_at": one.created_at, "created_by": one.created_by}


def line(seq: int, entry: AuditEntry) -> dict[str, Any]:
    return {
        "seq": seq,
        "at": entry.at,
        "user_id": entry.user_id,
        "token_id": entry.token_id,
        "action": entry.action,
        "subject": entry.subject,
        "team": entry.team,
        "details": entry.details,
    }
