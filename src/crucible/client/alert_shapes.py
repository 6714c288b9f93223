"""What the API answers about alerts, as types over plain JSON."""

from typing import Any, TypedDict


class Scope(TypedDict):
    kind: str
    name: str


class PriceWish(TypedDict):
    gpu: str
    provider: str
    market: str | None
    below_usd: float | None
    drop: float | None


class QuietHours(TypedDict):
    start: str
    end: str
    time_zone: str
    critical_passes: bool


class AlertRule(TypedDict):
    id: str
    name: str
    user: str
    team: str | None
    kinds: list[str]  # none: all
    least: str
    scope: Scope
    price: PriceWish | None
    channels: list[str]
    quiet: QuietHours | None
    window_s: int
    enabled: bool
    muted_until: str | None
    created_at: str


class AlertChannel(TypedDict):
    id: str
    name: str
    user: str
    team: str | None
    kind: str
    to: str
    created_at: str


class AlertChannelMade(AlertChannel):
    secret: str | None


class Notice(TypedDict):
    seq: int
    key: str
    at: str
    kind: str
    severity: str
    title: str
    text: str
    team: str | None
    project: str | None
    user: str | None
    job: str | None
    details: dict[str, Any]


class NoticePage(TypedDict):
    items: list[Notice]
    next_before: int | None


class Delivery(TypedDict):
    id: str
    channel_id: str
    channel: str
    rule_id: str
    state: str
    tries: int
    error: str | None
    created_at: str
    not_before: str
    ended_at: str | None
