"""What the server says about work on many items."""

from typing import NotRequired, TypedDict


class ShardCounts(TypedDict):
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


class ItemError(TypedDict):
    index: NotRequired[int]
    item: NotRequired[str]
    reason: str


class ShardItem(TypedDict):
    number: int
    first: int
    items: int
    state: str
    attempt_id: str | None
    tries: int
    failed: int
    errors: list[ItemError]  # the first few
    size_bytes: int
    seconds: float
    leased_at: str | None
    done_at: str | None


class ShardPage(TypedDict):
    counts: ShardCounts
    items: list[ShardItem]
    next_after: int | None
