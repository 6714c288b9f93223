"""Who changed what, and when: written in the transaction of the change itself, and never touched again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crucible.model.ids import TokenId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """`action` is a noun and a verb ("team.create"), `subject` what was changed ("team:vision"). `details` never hold a
    secret. `team` is whose managers may read it, beside admins."""

    at: datetime
    user_id: UserId
    token_id: TokenId
    action: str
    subject: str
    team: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
