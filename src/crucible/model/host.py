"""Own hosts, reached over SSH: what an operator registered, and what is known of each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.ids import UserId


class HostState(StrEnum):
    READY = "ready"
    DRAINING = "draining"  # what runs there ends in its own time; nothing new is started
    QUARANTINED = "quarantined"  # it failed too often: nothing is started until a check finds it in order


class HostUse(StrEnum):
    EXCLUSIVE = "exclusive"  # one machine of ours at a time has the whole host
    SHARED = "shared"  # as many as its GPUs allow, each with its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    name: str
    address: str  # name or address for SSH; a name may be an alias of the server's ~/.ssh/config
    host_key: str  # the public key that it must show, as in known_hosts: "ssh-ed25519 AAAA…"
    port: int | None = None
    user: str | None = None
    zone: str = "default"  # hosts of one zone reach each other: a gang stands in one
    use: HostUse = HostUse.EXCLUSIVE
    jump: str | None = None  # user@host:port, several with commas
    identity_file: str | None = None  # a private key on the server; None: its SSH agent and usual keys
    internal_address: str | None = None  # where the other hosts reach it, if not at `address`
    python: str | None = None  # that runs our agent there; None: python3
    state: HostState = HostState.READY
    reason: str | None = None  # for its state
    failures: int = 0  # in a row
    facts: Mapping[str, Any] = field(default_factory=dict)  # what the last check found
    added_by: UserId
    added_at: datetime
    checked_at: datetime | None = None
    version: int = 0
