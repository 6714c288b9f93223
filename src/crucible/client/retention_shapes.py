"""Keeping and forgetting, as the API tells it."""

from typing import TypedDict


class KeptKind(TypedDict):
    what: str
    days: int | None  # None: for ever
    set_by: str  # admin, server, default
    ran_at: str | None
    removed: int


class Ran(TypedDict):
    dry_run: bool
    removed: dict[str, int]
    at_least: list[str]
    freed_bytes: int
    is_done: bool


class KeptJob(TypedDict):
    id: str
    user_id: str
    at: str


class KeptChange(TypedDict):
    id: str
    kept: bool


class Forgotten(TypedDict):
    user_id: str
    pseudonym: str
    keeps_jobs: bool
    is_done: bool
