"""A job template that somebody stored on the server, as its text says it. What the text means is `spec.template`'s."""

from dataclasses import dataclass
from datetime import datetime

from crucible.model.ids import UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTemplate:
    name: str
    user_id: UserId  # who may change and remove it, besides admins
    body: str
    created_at: datetime  # of this text
