"""People, their tokens, teams and projects, and the log of what they changed: a part of Client."""

from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import quote

from crucible.client import account_shapes as shapes
from crucible.client.transport import Query, Transport


class AccountCalls:
    _http: Transport

    def me(self) -> shapes.Me:
        return cast(shapes.Me, self._http.call("GET", "/v1/me"))

    def sign_in_ways(self) -> shapes.SignInWays:
        """How people sign in there; needs no token."""
        return cast(shapes.SignInWays, self._http.call("GET", "/v1/login"))

    def exchange_sign_in(self, code: str, verifier: str) -> shapes.NewToken:
        """A token for what a browser brought back (`crucible.client.sign_in`)."""
        said = self._http.call("POST", "/v1/login/token", body={"code": code, "verifier": verifier})
        return cast(shapes.NewToken, said)

    def sign_in_ticket(self, challenge: str) -> shapes.Ticket:
        """A code with which another program of yours signs in; `challenge` is S256 of a secret that it will be asked
        for."""
        return cast(shapes.Ticket, self._http.call("POST", "/v1/login/ticket", body={"challenge": challenge}))

    # --- tokens and users ------------------------------------------------------------------------

    def tokens(self, *, user: str | None = None) -> list[shapes.Token]:
        """One's own; an admin's list has everybody's, if nobody is named."""
        return cast(list[shapes.Token], self._http.call("GET", "/v1/tokens", query={"user": user})["items"])

    def create_token(
        self, name: str, *, user: str | None = None, expires_at: str | None = None, grants: Sequence[str] = ()
    ) -> shapes.NewToken:
        """The secret is in this answer and nowhere else, ever. For somebody else: admins, and managers for services of
        their team. Without `grants` it is good for whatever its user may do."""
        body = given(name=name, user=user, expires_at=expires_at, grants=list(grants) or None)
        return cast(shapes.NewToken, self._http.call("POST", "/v1/tokens", body=body))

    def revoke_token(self, token_id: str) -> None:
        self._http.call("DELETE", f"/v1/tokens/{quoted(token_id)}")

    def users(self) -> list[shapes.User]:
        """Everybody, for admins; for managers those who are in their teams."""
        return cast(list[shapes.User], self._http.call("GET", "/v1/users")["items"])

    def user(self, name: str) -> shapes.User:
        return cast(shapes.User, self._http.call("GET", f"/v1/users/{quoted(name)}"))

    def create_user(
        self, name: str, *, role: str = "member", kind: str = "person", team: str | None = None
    ) -> shapes.User:
        body = given(name=name, role=role, kind=kind, team=team)
        return cast(shapes.User, self._http.call("POST", "/v1/users", body=body))

    def change_user(self, name: str, *, role: str | None = None, disabled: bool | None = None) -> shapes.User:
        body = given(role=role, disabled=disabled)
        return cast(shapes.User, self._http.call("PATCH", f"/v1/users/{quoted(name)}", body=body))

    # --- teams and projects ----------------------------------------------------------------------

    def teams(self) -> list[shapes.Team]:
        return cast(list[shapes.Team], self._http.call("GET", "/v1/teams")["items"])

    def team(self, name: str) -> shapes.Team:
        return cast(shapes.Team, self._http.call("GET", _team(name)))

    def create_team(self, name: str) -> shapes.Team:
        return cast(shapes.Team, self._http.call("POST", "/v1/teams", body={"name": name}))

    def remove_team(self, name: str) -> None:
        self._http.call("DELETE", _team(name))

    def members(self, team: str) -> list[shapes.Member]:
        return cast(list[shapes.Member], self._http.call("GET", f"{_team(team)}/members")["items"])

    def set_member(self, team: str, user: str, *, role: str = "member") -> shapes.Member:
        """A new one, or another role."""
        said = self._http.call("PUT", f"{_team(team)}/members/{quoted(user)}", body={"role": role})
        return cast(shapes.Member, said)

    def remove_member(self, team: str, user: str) -> None:
        self._http.call("DELETE", f"{_team(team)}/members/{quoted(user)}")

    def projects(self, *, team: str | None = None) -> list[shapes.Project]:
        return cast(list[shapes.Project], self._http.call("GET", "/v1/projects", query={"team": team})["items"])

    def create_project(self, name: str, *, team: str) -> shapes.Project:
        return cast(shapes.Project, self._http.call("POST", "/v1/projects", body={"name": name, "team": team}))

    def remove_project(self, name: str) -> None:
        self._http.call("DELETE", f"/v1/projects/{quoted(name)}")

    # --- the log of changes ----------------------------------------------------------------------

    def audit(
        self,
        *,
        team: str | None = None,
        user: str | None = None,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> shapes.AuditPage:
        """Newest first: everything for an admin, what concerns their teams for managers."""
        query: Query = {"team": team, "user": user, "subject": subject, "before": before, "limit": limit}
        return cast(shapes.AuditPage, self._http.call("GET", "/v1/audit", query=query))

    def audit_seal(self) -> shapes.AuditSeal:
        """Every line is read: does each follow from those before it?"""
        return cast(shapes.AuditSeal, self._http.call("GET", "/v1/audit/seal"))


def given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def quoted(name: str) -> str:
    return quote(name, safe="")


def _team(name: str) -> str:
    return f"/v1/teams/{quoted(name)}"
