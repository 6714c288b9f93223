"""What the API answers about secrets, as types over plain JSON. No answer holds a value."""

from typing import TypedDict


class Secret(TypedDict):
    name: str
    owner_kind: str  # user, project, team
    owner: str
    version: int
    set_by: str
    set_at: str
    used_at: str | None


class KeyRotated(TypedDict):
    key_id: str
    secrets: int
    forgotten: list[str]
    damaged: list[str]
