"""The shapes of datasets: for people (REST) and for nodes."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from crucible.model.dataset import NAME, PLACE
from crucible.model.dataset_tree import OBJECT_BYTES
from crucible.wire.agent import Message, Short, Signed
from crucible.wire.rest import HexDigest, Request

# Objects of one question, and of one answer to a node.
MAX_OBJECTS = 500
MAX_PIECES = 20_000

DatasetName = Annotated[str, Field(pattern=rf"^{NAME}$")]
PlaceName = Annotated[str, Field(pattern=rf"^{PLACE}$")]


# --- people -----------------------------------------------------------------------------------------------


class UploadObject(Request):
    name: HexDigest
    size: Annotated[int, Field(ge=1, le=OBJECT_BYTES)]


class UploadAsked(Request):
    """Which of these are missing? The manifest, `digest`, is sent when nothing is."""

    name: DatasetName | None = None  # that it will get: better refused before anything is sent
    digest: HexDigest
    objects: Annotated[list[UploadObject], Field(default_factory=list, max_length=MAX_OBJECTS)]
    resend: bool = False  # also what is there


class SignedPut(BaseModel):
    """One request that needs no token, with exactly these headers; the address is a secret."""

    name: str  # of the object; of the manifest its digest
    url: str
    headers: dict[str, str]


class Upload(BaseModel):
    missing: list[SignedPut]
    manifest: SignedPut | None  # null: it is there
    lives_s: float


class DatasetNew(Request):
    name: DatasetName
    digest: HexDigest
    region: PlaceName | None = None


class DatasetItem(BaseModel):
    name: str  # NAME@DIGEST: what the name meant before it was given to another tree
    digest: str
    uri: str
    region: str | None
    size_bytes: int
    files: int
    user: str
    created_at: datetime


class DatasetCopyItem(BaseModel):
    place: str
    uri: str
    size_bytes: int
    created_at: datetime


class DatasetView(DatasetItem):
    copies: list[DatasetCopyItem]
    jobs: list[str]  # that need it now


class Datasets(BaseModel):
    items: list[DatasetItem]


class DatasetRemoved(BaseModel):
    removed: list[str]


# --- nodes ------------------------------------------------------------------------------------------------


class TreeRequest(Message):
    """Where the tree of an attempt's dataset can be had, from object `first` on."""

    attempt_id: Short
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    first: Annotated[int, Field(ge=0, le=10_000_000)] = 0


class TreeObject(Message):
    signed: Signed
    name: str
    size: int
    holds: list[tuple[str, int, int]]  # sha256 of a file, and which of its bytes: offset, size


class TreeReply(Message):
    """Either `wait_s`: ask again then; or the manifest and some objects."""

    wait_s: float | None = None
    reason: str = ""
    source: str = ""  # "provider/region" that it comes from; to be named when it has come
    manifest: Signed | None = None
    objects: list[TreeObject] = Field(default_factory=list)
    total: int = 0  # objects of the tree


class TreeFetched(Message):
    """So much came from there. `transfer` names it: told twice, it is paid for once."""

    attempt_id: Short
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    transfer: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    source: Annotated[str, Field(max_length=200)]
    size_bytes: Annotated[int, Field(ge=0, lt=2**62)]


class TreeNoted(Message):
    noted: bool = True
