"""Registers hosts, looks after their state, and lets them go. Whatever fails changes nothing."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, HostKeyRefused, InvalidRequest, NotFound, PlatformError, Unreachable
from crucible.model.host import Host, HostState
from crucible.model.ids import UserId
from crucible.ports.hosts import HostView, NewHost
from crucible.providers.onprem.fleet import Fleet, Sight, bounded, checked
from crucible.providers.onprem.health import LEAST_DISK_BYTES
from crucible.providers.onprem.kept_host import KeeperRefused, KeptHost
from crucible.ssh.connecting import fingerprint_of
from crucible.ssh.login import jumps_of, parse_place

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
MAX_AT_ONCE = 200
# On top of the fence: a rank may take its time to stop.
FENCE_MARGIN = timedelta(minutes=2)


class OnpremDesk:
    def __init__(self, fleet: Fleet, now: Callable[[], datetime]) -> None:
        self._fleet = fleet
        self._now = now

    async def views(self) -> Sequence[HostView]:
        return [view(sight) for sight in await self._fleet.look(anew=False)]

    async def view(self, name: str) -> HostView:
        return view(await self._sight(name))

    # --- adding -------------------------------------------------------------------------------------------------

    async def add(self, hosts: Sequence[NewHost], by: UserId, *, audit: AuditEntry | None = None) -> Sequence[HostView]:
        known = list(await self._fleet.book.hosts())
        self._check_names(hosts, known)
        found = await asyncio.gather(*(bounded(self._met(new, by)) for new in hosts))
        for new, host in zip(hosts, found, strict=True):
            if isinstance(host, Exception):
                raise about(new, host) from host
        for place, host in enumerate(found):
            check_new(host, [*known, *found[:place]])
        await self._fleet.add(found, audit)
        return [HostView(host, 0) for host in found]

    def _check_names(self, hosts: Sequence[NewHost], known: Sequence[Host]) -> None:
        if not 0 < len(hosts) <= MAX_AT_ONCE:
            raise InvalidRequest(f"name at least one host and at most {MAX_AT_ONCE}")
        taken = {host.name for host in known}
        for new in hosts:
            for what, word in (("name", new.name), ("zone", new.zone)):
                if not NAME.fullmatch(word):
                    raise InvalidRequest(f"{word!r} is no {what}: letters, digits, dot, dash and underscore")
            if new.name in taken:
                raise Conflict(f"there is a host {new.name} already: remove it first, or choose another name")
            if parse_place(new.address)[1:] != (new.address, None):
                raise InvalidRequest(f"host {new.name}: {new.address!r} is no address")
            jumps_of(new.jump)
            taken.add(new.name)

    async def _met(self, new: NewHost, by: UserId) -> Host:
        """Reached, known for what it is, and looked at."""
        host = Host(
            name=new.name,
            address=new.address,
            host_key="",
            port=new.port,
            user=new.user,
            zone=new.zone,
            use=new.use,
            jump=new.jump,
            identity_file=new.identity_file,
            internal_address=new.internal_address,
            python=new.python,
            added_by=by,
            added_at=self._now(),
        )
        host = replace(host, host_key=await self._key_of(host, new.fingerprint))
        kept = self._fleet.new(host)
        try:
            await kept.check_python()
            facts = await kept.facts()
        finally:
            kept.remote.abort()
        if facts["disk_free_bytes"] < LEAST_DISK_BYTES // 8:
            raise InvalidRequest(f"its disk is full: {facts['disk_free_bytes'] >> 20} MiB are free in {facts['home']}")
        return checked(host, facts, self._now())

    async def _key_of(self, host: Host, fingerprint: str | None) -> str:
        """The key that it shows, if known_hosts knows it or it is the one with that fingerprint."""
        kept = self._fleet.new(host)
        try:
            key = await shown_by(kept, fingerprint)
        finally:
            kept.remote.abort()
        if fingerprint is not None and fingerprint_of(key) != fingerprint:
            raise HostKeyRefused(
                f"{kept.remote.login.name} shows the key {fingerprint_of(key)}, not {fingerprint}",
                fingerprint=fingerprint_of(key),
                expected=fingerprint,
                host_key=key,
            )
        return key

    # --- its state ----------------------------------------------------------------------------------------------

    async def check(self, name: str) -> HostView:
        host = await self._fleet.host(name)
        try:
            await self._fleet.kept(host).check_python()
            await self._fleet.check(host)
        except KeeperRefused as error:
            raise InvalidRequest(f"host {name}: {error.message}") from error
        return await self.view(name)

    async def drain(self, name: str, reason: str | None, *, audit: AuditEntry | None = None) -> HostView:
        await self._fleet.change(name, lambda host: replace(host, state=HostState.DRAINING, reason=reason), audit)
        return await self.view(name)

    async def resume(self, name: str, *, audit: AuditEntry | None = None) -> HostView:
        def ready(host: Host) -> Host:
            return replace(host, state=HostState.READY, reason=None, failures=0)

        await self._fleet.change(name, ready, audit)
        return await self.view(name)

    async def remove(self, name: str, *, force: bool, audit: AuditEntry | None = None) -> None:
        if force:
            await self._fleet.change(name, lambda host: replace(host, state=HostState.DRAINING, reason="to be removed"))
        sight = await self._sight(name)
        self._check_empty(sight, force=force)
        await self._fleet.book.remove_host(sight.host, audit=audit)
        self._fleet.forget(name)

    def _check_empty(self, sight: Sight, *, force: bool) -> None:
        name = sight.host.name
        fence_s = (self._fleet.settings.fence + FENCE_MARGIN).total_seconds()
        if sight.problem is not None and (sight.live or not force):
            if not force or self._fleet.down_for_s(name) < fence_s:
                raise Conflict(
                    f"host {name} does not answer ({sight.problem}): what runs there ends by itself within "
                    f"{fence_s:g} s; after that, remove it with --force"
                )
        elif sight.live:
            now = "it is draining now" if force else "drain it, or wait"
            machines = "a machine runs" if sight.live == 1 else f"{sight.live} machines run"
            raise Conflict(f"{machines} on host {name}: {now}; remove it when they have ended")

    async def _sight(self, name: str) -> Sight:
        for sight in await self._fleet.look():
            if sight.host.name == name:
                return sight
        raise NotFound(f"there is no host {name}: `crucible hosts list` shows them")


async def shown_by(kept: KeptHost, fingerprint: str | None) -> str:
    try:
        return await kept.remote.host_key()
    except HostKeyRefused as error:
        key = error.details.get("host_key")
        if fingerprint is None or key is None:
            raise
        return str(key)


def check_new(host: Host, others: Sequence[Host]) -> None:
    """One computer under two names would be sold twice."""
    for other in others:
        same_place = (other.address, other.port or 22) == (host.address, host.port or 22) and other.jump == host.jump
        same_key = other.host_key == host.host_key and other.facts.get("hostname") == host.facts.get("hostname")
        if same_place or same_key:
            raise Conflict(f"host {host.name} is the same computer as {other.name}")


def about(new: NewHost, error: Exception) -> Exception:
    """The same error, with the host that it is about."""
    if isinstance(error, KeeperRefused):
        return InvalidRequest(f"host {new.name}: {error.message}", host=new.name)
    if isinstance(error, Unreachable | InvalidRequest):
        words = error.message if new.name in error.message else f"host {new.name}: {error.message}"
        return type(error)(words, **{**error.details, "host": new.name})
    return error if isinstance(error, PlatformError) else InvalidRequest(f"host {new.name}: {error}", host=new.name)


def view(sight: Sight) -> HostView:
    return HostView(sight.host, sight.live, sight.problem)
