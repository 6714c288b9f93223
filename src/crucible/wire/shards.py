"""What workers of a job say about shards of its items, and what people are shown of them. Workers are programs of the
user: `crucible.train` speaks for them, with the attempt's token.

    POST /worker/v1/shards/lease     LeaseRequest   -> LeaseReply: a shard, or when to ask again, or that all is done
    POST /worker/v1/shards/renew     RenewRequest   -> RenewReply: whether it is still wanted; signatures anew
    POST /worker/v1/shards/commit    CommitRequest  -> CommitReply: what became of it
    POST /worker/v1/shards/objects   ObjectsRequest -> ObjectsReply: where the objects of a prefix can be had

Every request may be repeated: a lease by its question, a commit by its fence.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from crucible.wire.agent import Message, Signed

# Parts of one output, each as large as one signed request carries.
MAX_PARTS = 1024
# Objects of a prefix in one answer.
MAX_OBJECTS = 1000
MAX_SHARD_ITEMS = 1_000_000

Number = Annotated[int, Field(ge=0, lt=2**31)]
Fence = Annotated[int, Field(ge=1, lt=2**31)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


# --- workers ----------------------------------------------------------------------------------------------------


class LeaseRequest(Message):
    """`asked` is random and stays the same while the answer is missing."""

    asked: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


Base = Literal["dataset", "code", ""]


class ItemSource(Message):
    """Where items are. Except for numbers, a shard has bytes of a text with one item a line: of `list`, or, with kind
    lines, of the file `path`."""

    kind: Literal["numbers", "names", "files", "objects", "lines"]
    base: Base = ""  # of files and lines: what their paths are relative to
    path: str = ""
    list: Signed | None = None


class LeasedShard(Message):
    number: int
    first: int  # number of its first item
    items: int
    fence: int
    start: int  # its bytes of the text
    end: int
    source: ItemSource
    lease_s: float  # say something within
    parts: list[Signed]  # for its output, `part_bytes` each; ask for more when it is longer
    errors: Signed  # for its errors
    part_bytes: int


class LeaseReply(Message):
    """A shard; or `wait_s`: ask again then; or neither: there is nothing left to do."""

    shard: LeasedShard | None = None
    wait_s: float | None = None
    reason: str = ""


class RenewRequest(Message):
    number: Number
    fence: Fence
    parts: Annotated[int, Field(ge=0, le=MAX_PARTS)] = 0  # so many addresses for its output are wanted


class RenewReply(Message):
    is_wanted: bool  # False: somebody else was quicker, or nobody wants the rest
    parts: list[Signed] = Field(default_factory=list)
    errors: Signed | None = None


class ItemError(Message):
    index: Annotated[int, Field(ge=0, lt=2**53)] | None = None
    item: Annotated[str, Field(max_length=4096)] | None = None
    reason: Annotated[str, Field(max_length=4096)] = ""


class CommitRequest(Message):
    """Its output and its errors are in storage; or, with `reason`, all of its items failed for that reason."""

    number: Number
    fence: Fence
    size: Annotated[int, Field(ge=0, lt=2**53)] = 0
    sha256: Sha256 | None = None
    failed: Annotated[int, Field(ge=0, le=MAX_SHARD_ITEMS)] = 0
    errors: Annotated[list[ItemError], Field(default_factory=list, max_length=16)]  # the first few
    seconds: Annotated[float, Field(ge=0, le=10**9)] = 0.0
    reason: Annotated[str, Field(max_length=4096)] | None = None


class CommitReply(Message):
    verdict: Literal["accepted", "repeated", "late", "foreign"]


class ObjectsRequest(Message):
    """Of a shard of objects: `count` of its items, from the one numbered `first` within it."""

    number: Number
    fence: Fence
    first: Annotated[int, Field(ge=0, lt=MAX_SHARD_ITEMS)] = 0
    count: Annotated[int, Field(ge=1, le=MAX_OBJECTS)] = MAX_OBJECTS


class ObjectsReply(Message):
    objects: list[Signed]


# --- people -----------------------------------------------------------------------------------------------------


class ShardCounts(BaseModel):
    """How far a job is with its items."""

    shards: int
    waiting: int
    leased: int
    done: int
    items: int
    items_done: int  # those that failed are among them
    items_failed: int
    fraction: float
    items_per_s: float | None
    eta_s: float | None
    usd_per_item: float | None
    output_bytes: int
    first_error: str | None


class ShardItem(BaseModel):
    number: int
    first: int
    items: int
    state: str
    attempt_id: str | None
    tries: int
    failed: int
    errors: list[dict[str, Any]]  # the first few
    size_bytes: int
    seconds: float
    leased_at: datetime | None
    done_at: datetime | None


class ShardPage(BaseModel):
    counts: ShardCounts
    items: list[ShardItem]
    next_after: int | None  # ask with `after` for the rest
