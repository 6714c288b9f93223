"""What is written down of a change that somebody made."""

from datetime import datetime
from typing import Any

from crucible.model.account import Principal
from crucible.model.audit import AuditEntry


def by(
    who: Principal, now: datetime, action: str, subject: str, *, team: str | None = None, **details: Any
) -> AuditEntry:
    """`details` that are None are left out; never a secret."""
    return AuditEntry(
        at=now,
        user_id=who.user_id,
        token_id=who.token_id,
        action=action,
        subject=subject,
        team=team,
        details={name: value for name, value in details.items() if value is not None},
    )
