"""Keeping and forgetting in the REST API."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Request


class NewAge(Request):
    age: Annotated[str, Field(max_length=20, description="90d, 12w, 2y, never or default")]


class Run(Request):
    dry_run: bool = False


class KeptKind(BaseModel):
    what: str
    days: int | None  # null: for ever
    set_by: Literal["admin", "server", "default"]
    ran_at: datetime | None
    removed: int  # in all


class RetentionView(BaseModel):
    items: list[KeptKind]


class Ran(BaseModel):
    dry_run: bool
    removed: dict[str, int]
    at_least: list[str]  # of these there are more
    freed_bytes: int
    is_done: bool


class KeptJob(BaseModel):
    id: str
    user_id: str
    at: datetime


class KeptJobs(BaseModel):
    items: list[KeptJob]


class KeptChange(BaseModel):
    id: str
    kept: bool


class Forgotten(BaseModel):
    user_id: str
    pseudonym: str
    keeps_jobs: bool
    is_done: bool
