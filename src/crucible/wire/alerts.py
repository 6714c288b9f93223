"""Alerts in the REST API: rules, channels, notices."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import MAX_PAGE, Name, Request

Kind = Literal["budget", "failure", "stall", "deadline", "price", "provider", "leak"]
Level = Literal["info", "warning", "critical"]
ChannelWord = Literal["email", "slack", "webhook", "apprise"]
MarketWord = Literal["on_demand", "spot", "reserved"]
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
TimeOfDay = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
Secret = Annotated[str, Field(min_length=16, max_length=200, pattern=r"^[!-~]+$")]

MAX_CHANNELS = 20
DAY_S = 86_400


class Scope(Request):
    kind: Literal["server", "team", "project", "user", "job"] = "server"
    name: Word = ""  # for jobs a pattern: train-*


class PriceWish(Request):
    gpu: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[ -~]+$")]
    provider: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9_-]*$")] = ""
    market: MarketWord | None = None
    below_usd: Annotated[float, Field(gt=0, le=1e6)] | None = None  # of one GPU for an hour
    drop: Annotated[float, Field(gt=0, lt=1)] | None = None  # 0.2: by a fifth


class QuietHours(Request):
    start: TimeOfDay
    end: TimeOfDay
    time_zone: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_+/-]+$")] = "UTC"
    critical_passes: bool = True


class RuleNew(Request):
    name: Name
    team: Name | None = None  # a team's rule; its managers keep it
    kinds: Annotated[list[Kind], Field(default_factory=list, max_length=20)]
    least: Level = "info"
    scope: Annotated[Scope, Field(default_factory=Scope)]
    price: PriceWish | None = None
    channels: Annotated[list[Name], Field(min_length=1, max_length=MAX_CHANNELS)]
    quiet: QuietHours | None = None
    window_s: Annotated[int, Field(ge=0, le=DAY_S)] = 300
    enabled: bool = True


class RuleChange(Request):
    """What is left out stays as it is."""

    name: Name | None = None
    kinds: Annotated[list[Kind], Field(max_length=20)] | None = None
    least: Level | None = None
    scope: Scope | None = None
    price: PriceWish | None = None  # null: no longer
    channels: Annotated[list[Name], Field(min_length=1, max_length=MAX_CHANNELS)] | None = None
    quiet: QuietHours | None = None  # null: no longer
    window_s: Annotated[int, Field(ge=0, le=DAY_S)] | None = None
    enabled: bool | None = None
    muted_until: datetime | None = None  # null: no longer


class ChannelNew(Request):
    name: Name
    team: Name | None = None
    kind: ChannelWord
    address: Annotated[str, Field(min_length=1, max_length=2000)]
    secret: Secret | None = None  # of a webhook; left out: one is made up, and told once


class Rotate(Request):
    secret: Secret | None = None


class NoticeListQuery(BaseModel):
    kind: Annotated[str, Field(max_length=200, description="One or several kinds, with commas between them")] = ""
    least: Annotated[Level, Field(description="No less severe than this")] = "info"
    job: Annotated[str, Field(max_length=64, pattern=r"^[0-9A-Za-z-]*$")] = ""
    before: Annotated[int | None, Field(ge=1, lt=1 << 62, description="`next_before` of a page")] = None
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50


# --- answers --------------------------------------------------------------------------------------


class RuleItem(BaseModel):
    id: str
    name: str
    user: str
    team: str | None
    kinds: list[Kind]
    least: Level
    scope: Scope
    price: PriceWish | None
    channels: list[str]
    quiet: QuietHours | None
    window_s: int
    enabled: bool
    muted_until: datetime | None
    created_at: datetime


class Rules(BaseModel):
    items: list[RuleItem]


class ChannelItem(BaseModel):
    id: str
    name: str
    user: str
    team: str | None
    kind: ChannelWord
    to: str  # mail addresses, or a host: the rest of an address is secret
    created_at: datetime


class ChannelMade(ChannelItem):
    secret: str | None  # that was made up: shown this once


class Channels(BaseModel):
    items: list[ChannelItem]


class Tested(BaseModel):
    delivery: str  # the id that it was sent with


class NoticeItem(BaseModel):
    seq: int
    key: str
    at: datetime
    kind: Kind
    severity: Level
    title: str
    text: str
    team: str | None
    project: str | None
    user: str | None
    job: str | None
    details: dict[str, Any]


class Notices(BaseModel):
    items: list[NoticeItem]
    next_before: int | None


class DeliveryItem(BaseModel):
    id: str
    channel_id: str
    channel: str
    rule_id: str
    state: Literal["waiting", "sent", "dead"]
    tries: int
    error: str | None
    created_at: datetime
    not_before: datetime
    ended_at: datetime | None


class Deliveries(BaseModel):
    items: list[DeliveryItem]
