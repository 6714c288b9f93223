"""The shapes of what tasks leave behind: for people (REST) and for nodes."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from crucible.model.dataset_tree import OBJECT_BYTES
from crucible.wire.agent import Message, Short, Signed
from crucible.wire.datasets import MAX_OBJECTS

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


# --- people -----------------------------------------------------------------------------------------------


class OutputItem(BaseModel):
    task: int
    digest: str  # of the tree; an input of another job is tree://DIGEST
    size_bytes: int
    files: int
    created_at: datetime


class Outputs(BaseModel):
    items: list[OutputItem]
    next_cursor: str | None


class SignedGet(BaseModel):
    """One request that needs no token, with exactly these headers; the address is a secret."""

    name: str  # of the object; of the manifest its digest
    size: int | None = None
    url: str
    headers: dict[str, str]


class OutputView(OutputItem):
    """Its manifest and some of its objects, from number `first` on, in the order that follows from the manifest."""

    manifest: SignedGet
    first: int
    objects: list[SignedGet]
    total: int  # objects of the tree
    lives_s: float


# --- nodes ------------------------------------------------------------------------------------------------


class OutputObject(Message):
    name: Sha256
    size: Annotated[int, Field(ge=1, le=OBJECT_BYTES)]


class OutputAsked(Message):
    """Which of these objects of the tree are missing? With `resend` also those that are there: signed anew."""

    attempt_id: Short
    digest: Sha256
    objects: Annotated[list[OutputObject], Field(default_factory=list, max_length=MAX_OBJECTS)]
    resend: bool = False


class MissingObject(Message):
    name: str
    signed: Signed


class OutputReply(Message):
    missing: list[MissingObject]
    manifest: Signed | None  # to be put last; None: it is there
    lives_s: float


class OutputWhole(Message):
    """All of it was put; is it there? Answered with 409 if it is not."""

    attempt_id: Short
    digest: Sha256


class OutputFound(Message):
    """It is: a report may name it."""

    size_bytes: int
    files: int
