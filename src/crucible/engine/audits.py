"""The log of who changed what, as people read it."""

from collections.abc import Sequence
from typing import Any

from crucible.core.auditing import by
from crucible.core.rights import is_admin, manages
from crucible.engine.context import Context
from crucible.model.account import Principal
from crucible.model.audit import AuditEntry
from crucible.model.errors import NotFound
from crucible.model.ids import UserId
from crucible.ports.accounts import AuditQuery, Seal


class Audits:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def note(self, who: Principal, action: str, subject: str, *, team: str | None = None, **details: Any) -> None:
        """Of what changes no row: written before it is done."""
        entry = by(who, self._context.clock.now(), action, subject, team=team, **details)
        await self._context.store.commit((), [entry], label="audit")

    async def lines(
        self,
        who: Principal,
        *,
        team: str | None,
        user_id: UserId | None,
        subject: str | None,
        before: int | None,
        limit: int,
    ) -> Sequence[tuple[int, AuditEntry]]:
        """Newest first; of the teams that one manages, or everybody's for an admin."""
        managed = frozenset(name for name in who.teams if manages(who, name))
        if team is not None and not is_admin(who) and team not in managed:
            raise NotFound(f"there is no team {team} that you manage")
        teams = frozenset({team}) if team is not None else None if is_admin(who) else managed
        query = AuditQuery(teams=teams, user_id=user_id, subject=subject, before=before, limit=limit)
        return await self._context.store.audit_lines(query)

    async def check(self) -> Seal:
        """Piece by piece, so that others are not kept waiting."""
        seal = Seal()
        while True:
            after = await self._context.store.check_audit(seal)
            if after == seal or after.broken is not None:
                return after
            seal = after
