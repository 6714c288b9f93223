"""Own hosts: where they are remembered, and who looks after them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crucible.model.audit import AuditEntry
from crucible.model.host import Host, HostUse
from crucible.model.ids import UserId


class HostBook(Protocol):
    """What is remembered, whatever becomes of the servers. A write names the version that it was decided on; `audit` is
    the line that is logged of it."""

    async def hosts(self) -> Sequence[Host]:
        """All, by name."""
        ...

    async def add_hosts(self, hosts: Sequence[Host], *, audit: AuditEntry | None = None) -> None:
        """All or none. Raises Conflict for a name that is taken."""
        ...

    async def save_host(self, host: Host, *, audit: AuditEntry | None = None) -> Host:
        """As it is now: one version on. Raises StaleVersion, also for one that was removed."""
        ...

    async def remove_host(self, host: Host, *, audit: AuditEntry | None = None) -> None:
        """Raises StaleVersion if somebody changed it meanwhile; absent is success."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHost:
    """What an operator says of a host; the rest is looked up there."""

    name: str
    address: str
    port: int | None = None
    user: str | None = None
    zone: str = "default"
    use: HostUse = HostUse.EXCLUSIVE
    jump: str | None = None
    identity_file: str | None = None
    internal_address: str | None = None
    python: str | None = None
    fingerprint: str | None = None  # SHA256:…, that it must show; None: known_hosts must know it


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as it is now."""

    host: Host
    machines: int  # that live there
    problem: str | None = None  # why nobody can reach it at the moment


class HostDesk(Protocol):
    """Registers, checks and retires hosts. Whatever fails changes nothing. Raises NotFound, Conflict, InvalidRequest,
    Unreachable and its children."""

    async def views(self) -> Sequence[HostView]: ...

    async def view(self, name: str) -> HostView: ...

    async def add(self, hosts: Sequence[NewHost], by: UserId, *, audit: AuditEntry | None = None) -> Sequence[HostView]:
        """Every one is reached and looked at first: all or none."""
        ...

    async def check(self, name: str) -> HostView:
        """What it has now. A host in quarantine that is in order again is used again."""
        ...

    async def drain(self, name: str, reason: str | None, *, audit: AuditEntry | None = None) -> HostView: ...

    async def resume(self, name: str, *, audit: AuditEntry | None = None) -> HostView: ...

    async def remove(self, name: str, *, force: bool, audit: AuditEntry | None = None) -> None:
        """Raises Conflict while machines of ours live there, or while nobody can tell. With `force` it is drained
        first; and one that has not answered for so long that nothing of ours can run there any more is let go."""
        ...
