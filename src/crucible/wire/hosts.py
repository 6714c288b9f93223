"""Own hosts in the REST API: what an operator says of one, and how it is."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Reason, Request

MAX_HOSTS = 200

HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
# Goes into SSH's own configuration and command lines of people: no spaces, quotes or control characters.
Place = Annotated[
    str, Field(min_length=1, max_length=255, pattern=r"^[^\s'\"\\\x00-\x1f\x7f-][^\s'\"\\\x00-\x1f\x7f]*$")
]
FilePath = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f\x7f-][^\x00-\x1f\x7f]*$")]
Fingerprint = Annotated[str, Field(pattern=r"^SHA256:[A-Za-z0-9+/]{43}$")]


class NewHost(Request):
    name: HostName
    address: Place
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    user: Place | None = None
    zone: HostName = "default"
    use: Literal["exclusive", "shared"] = "exclusive"
    jump: Annotated[Place, Field(max_length=1000)] | None = None
    identity_file: FilePath | None = None
    internal_address: Place | None = None
    python: FilePath | None = None
    fingerprint: Fingerprint | None = None


class NewHosts(Request):
    items: Annotated[list[NewHost], Field(min_length=1, max_length=MAX_HOSTS)]


class Drain(Request):
    reason: Reason | None = None


class HostItem(BaseModel):
    name: str
    address: str
    port: int | None
    user: str | None
    zone: str
    use: Literal["exclusive", "shared"]
    jump: str | None
    identity_file: str | None
    internal_address: str | None
    python: str | None
    host_key: str
    state: Literal["ready", "draining", "quarantined"]
    reachable: bool
    reason: str | None
    machines: int
    facts: dict[str, Any]
    added_by: str
    added_at: datetime
    checked_at: datetime | None


class Hosts(BaseModel):
    items: list[HostItem]
