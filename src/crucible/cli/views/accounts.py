"""Tokens, users, teams, projects and the log of changes, drawn."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crucible.cli import wording
from crucible.cli.table import Column, draw
from crucible.client.account_shapes import AuditLine, AuditSeal, Member, Project, Team, Token, User


def token_table(tokens: Sequence[Token], now: datetime, width: int | None) -> list[str]:
    columns = [
        Column("ID"),
        Column("NAME", shrinks=True),
        Column("USER"),
        Column("FOR", shrinks=True),
        Column("AGE", is_right=True),
        Column("STATE"),
    ]
    rows = [
        [
            token.get("id", "-"),
            token.get("name", "-"),
            token.get("user_id", "-"),
            ",".join(token.get("grants", ())) or "everything",
            wording.age(token.get("created_at"), now),
            token_state(token, now),
        ]
        for token in tokens
    ]
    return draw(columns, rows, width) if rows else []


def token_state(token: Token, now: datetime) -> str:
    if token.get("revoked_at"):
        return "revoked"
    end = wording.moment(token.get("expires_at"))
    if end is None:
        return "valid"
    return "expired" if end <= now else f"valid for {wording.duration((end - now).total_seconds())}"


def user_table(users: Sequence[User], now: datetime, width: int | None) -> list[str]:
    columns = [
        Column("NAME"),
        Column("KIND"),
        Column("ROLE"),
        Column("TEAMS", shrinks=True),
        Column("AGE", is_right=True),
        Column("STATE"),
    ]
    rows = [
        [
            user["name"],
            user["kind"],
            user["role"],
            roles(user["teams"]),
            wording.age(user["created_at"], now),
            "disabled" if user["disabled_at"] else "active",
        ]
        for user in users
    ]
    return draw(columns, rows, width) if rows else []


def roles(teams: Mapping[str, str]) -> str:
    """Only what is not the rule is said."""
    named = (team if role == "member" else f"{team} ({role})" for team, role in sorted(teams.items()))
    return ", ".join(named) or "-"


def team_table(teams: Sequence[Team], width: int | None) -> list[str]:
    columns = [
        Column("TEAM"),
        Column("YOU ARE"),
        Column("MEMBERS", is_right=True),
        Column("PROJECTS", shrinks=True),
    ]
    rows = [[team["name"], team["role"], str(team["members"]), ", ".join(team["projects"]) or "-"] for team in teams]
    return draw(columns, rows, width) if rows else []


def member_table(members: Sequence[Member], now: datetime, width: int | None) -> list[str]:
    columns = [Column("USER"), Column("ROLE"), Column("SINCE", is_right=True)]
    rows = [[one["user_id"], one["role"], wording.age(one["created_at"], now)] for one in members]
    return draw(columns, rows, width) if rows else []


def project_table(projects: Sequence[Project], now: datetime, width: int | None) -> list[str]:
    columns = [Column("PROJECT"), Column("TEAM"), Column("MADE BY"), Column("AGE", is_right=True)]
    rows = [[one["name"], one["team"], one["created_by"], wording.age(one["created_at"], now)] for one in projects]
    return draw(columns, rows, width) if rows else []


def audit_table(lines: Sequence[AuditLine], width: int | None) -> list[str]:
    columns = [
        Column("LINE", is_right=True),
        Column("WHEN"),
        Column("WHO"),
        Column("DID"),
        Column("TO", shrinks=True),
        Column("DETAILS", shrinks=True),
    ]
    rows = [
        [
            str(line["seq"]),
            wording.clock(line["at"]),
            line["user_id"],
            line["action"],
            line["subject"],
            details(line["details"]),
        ]
        for line in lines
    ]
    return draw(columns, rows, width) if rows else []


def details(told: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_word(value)}" for name, value in told.items()) or "-"


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def seal_lines(seal: AuditSeal) -> list[str]:
    if seal["broken"] is not None:
        return [f"line {seal['broken']} does not follow from those before it: it, or one before it, was altered"]
    if not seal["lines"]:
        return ["the log is empty"]
    return [f"whole up to line {seal['lines']}, whose seal is {seal['digest']}"]
