"""Work on many items: which items, how many at a time, and what becomes of those that fail. Workers of the job lease
shards of items, a few seconds to a few minutes of work each; what a shard's output is, is decided once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from crucible.model.attempt import Outcome
from crucible.model.ids import AttemptId, JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Where the items come from: one of the first five says it."""

    count: int | None = None  # items are the numbers 0 … count - 1
    items: tuple[str, ...] = ()
    glob: str | None = None  # files of the dataset, or of the shipped code
    prefix: str | None = None  # objects below an address
    lines: str | None = None  # of a file of the dataset or of the shipped code
    size: int | None = None  # items of one shard; None: 1 with count, else so that each worker comes about 20 times
    workers: int | None = None  # at most so many at a time
    max_errors: int | None = None  # more failed items fail the job; None: any number
    reissue_after: float = 2.0  # a shard that takes so many times the median is given to a second worker
    lease: timedelta = timedelta(minutes=10)  # a worker that says nothing for so long has lost its shard


class ShardState(StrEnum):
    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Items [first, first + items). Executed at least once; its output is committed exactly once."""

    job_id: JobId
    number: int
    first: int
    items: int
    start: int = 0  # its items are these bytes of the job's list, or of the file of lines;
    end: int = 0  # none where items are numbers
    state: ShardState = ShardState.WAITING
    fence: int = 0  # grows with every lease; of a shard that is done: the one that did it
    attempt_id: AttemptId | None = None  # whose lease is the newest; of a shard that is done: who did it
    asked: str | None = None  # the question that the newest lease answered: repeated, it gets the same answer
    leased_at: datetime | None = None
    expires_at: datetime | None = None  # unless its worker says something before
    is_second: bool = False  # the newest lease was given while an older one was at work
    tries: int = 0  # how often a program ended with it unfinished
    output: str | None = None  # key of the committed output below the job's outputs; None: no item has any
    size_bytes: int = 0
    sha256: str | None = None
    failed: int = 0  # items that failed, for good
    errors: tuple[Mapping[str, Any], ...] = field(default=())  # the first few: index, item, reason
    seconds: float = 0.0  # that the committed try took
    done_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardTally:
    """All shards of a job, counted."""

    shards: int = 0
    waiting: int = 0
    leased: int = 0
    done: int = 0
    items: int = 0
    items_done: int = 0  # those that failed are among them
    items_failed: int = 0
    output_bytes: int = 0
    seconds: float = 0.0  # that the committed tries took together
    first_error: str | None = None  # why an item failed


@dataclass(frozen=True, slots=True)
class Held:
    """A shard that is leased, and what became of the attempt with its newest lease."""

    shard: Shard
    outcome: Outcome | None = None  # None: it lives
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Desk:
    """What a worker finds when it asks."""

    again: Shard | None = None  # what it was given when it asked the same before
    waiting: Shard | None = None  # the first of them
    held: tuple[Held, ...] = ()  # all of them, if none waits
    recent: tuple[float, ...] = ()  # seconds that the last ones took, if none waits
    own: int = 0  # shards that its attempt holds


@dataclass(frozen=True, slots=True)
class Turn:
    """`given` to the asker, or nothing now and perhaps in `wait_s`, or nothing that it could ever do. The items of
    `dropped` have failed: no program survives them."""

    given: Shard | None = None
    wait_s: float | None = None
    dropped: tuple[Shard, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.given is None and self.wait_s is None
