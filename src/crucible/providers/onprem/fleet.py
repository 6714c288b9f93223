"""All own hosts together: looked at in parallel, each within its own time, so that one that is dead delays nobody. Of a
host that does not answer, what was last seen there is told: absence would be a lie."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from crucible.model.audit import AuditEntry
from crucible.model.errors import NotFound, PlatformError, StaleVersion, Unreachable
from crucible.model.host import Host, HostState
from crucible.ports.hosts import HostBook
from crucible.providers.onprem.kept_host import KeeperRefused, KeptHost, Program, login_of
from crucible.providers.onprem.settings import OnpremSettings
from crucible.providers.onprem.stock import Standing

log = logging.getLogger("crucible.onprem")

# Two looks that are closer than this are one.
FRESH_S = 2.0
# A host that did not answer is asked again so often, by a task of its own: nobody waits for it any more.
PROBE_EVERY_S = 2.0
# So many starts in a row that failed: it is the host.
FAILURES = 3
LOST_RACES = 5


@dataclass(frozen=True, slots=True)
class Sight:
    """One host, as it was seen or last remembered."""

    host: Host
    machines: tuple[Mapping[str, Any], ...]
    taken: tuple[Mapping[str, Any], ...]
    problem: str | None = None  # why it was not seen now

    @property
    def standing(self) -> Standing:
        return Standing(self.host, self.taken, self.problem is None)

    @property
    def live(self) -> int:
        return sum(machine["state"] != "gone" for machine in self.machines)


@dataclass(frozen=True, slots=True)
class Down:
    """A host that does not answer."""

    since: float  # monotonic
    why: str


class Fleet:
    def __init__(
        self,
        book: HostBook,
        *,
        deployment: str,
        program: Program,
        url: str,
        settings: OnpremSettings,
        now: Callable[[], datetime],
        fresh_s: float = FRESH_S,
    ) -> None:
        self.book = book
        self.settings = settings
        self._now = now
        self._deployment = deployment
        self._program = program
        self._url = url
        self._fresh_s = fresh_s
        self._kept: dict[str, KeptHost] = {}
        self._looking = asyncio.Lock()
        self._sights: tuple[float, tuple[Sight, ...]] | None = None
        self._changes = 0
        self._down: dict[str, Down] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}  # what is done beside: "check h1", "probe h2"

    # --- hosts --------------------------------------------------------------------------------------------------

    async def host(self, name: str) -> Host:
        for host in await self.book.hosts():
            if host.name == name:
                return host
        raise NotFound(f"there is no host {name}: `crucible hosts list` shows them")

    def kept(self, host: Host) -> KeptHost:
        """With its connection; a new one if it is reached in another way now."""
        known = self._kept.get(host.name)
        if known is not None and (login_of(known.host), known.host.python) == (login_of(host), host.python):
            known.host = host
            return known
        if known is not None:
            known.remote.abort()
        self._kept[host.name] = self.new(host)
        return self._kept[host.name]

    def new(self, host: Host) -> KeptHost:
        return KeptHost(host, self._deployment, self._program, self._url, self.settings)

    def forget(self, name: str) -> None:
        known = self._kept.pop(name, None)
        self._down.pop(name, None)
        self.look_again()
        if known is not None:
            known.remote.abort()

    async def change(self, name: str, change: Callable[[Host], Host], audit: AuditEntry | None = None) -> Host:
        """Load, decide, write; again if somebody was faster."""
        changed = await self._write(name, change, audit)
        self.look_again()
        return changed

    async def _write(self, name: str, change: Callable[[Host], Host], audit: AuditEntry | None = None) -> Host:
        for _ in range(LOST_RACES):
            host = await self.host(name)
            after = change(host)
            if after == host:
                return host
            try:
                return await self.book.save_host(after, audit=audit)
            except StaleVersion:
                continue
        raise StaleVersion(f"host {name} is being changed by others")

    async def add(self, hosts: Sequence[Host], audit: AuditEntry | None = None) -> None:
        await self.book.add_hosts(hosts, audit=audit)
        self.look_again()

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for kept in self._kept.values():
            kept.remote.abort()
        self._kept.clear()

    # --- looking ------------------------------------------------------------------------------------------------

    async def look(self, *, anew: bool = True) -> tuple[Sight, ...]:
        """Every host; a look that was just made is shared unless it must be `anew`."""
        async with self._looking:
            if not anew and self._sights is not None and time.monotonic() - self._sights[0] < self._fresh_s:
                return self._sights[1]
            began = self._changes
            hosts = await self.book.hosts()
            sights = tuple(await asyncio.gather(*(self._look_at(host) for host in hosts)))
            self._sights = (time.monotonic(), sights) if began == self._changes else None
            return sights

    def look_again(self) -> None:
        """Something has changed: what was seen before, or is being looked at now, is not so any more."""
        self._changes += 1
        self._sights = None

    def down_for_s(self, name: str) -> float:
        """How long this server has tried in vain to reach it."""
        down = self._down.get(name)
        return 0.0 if down is None else time.monotonic() - down.since

    async def _look_at(self, host: Host) -> Sight:
        down = self._down.get(host.name)
        if down is not None:
            self._beside(f"probe {host.name}", self._probe, host)
            return remembered(host, down.why)
        seen = await self._seen(host)
        if seen.problem is None:
            self._check_if_due(host)
        return seen

    async def _seen(self, host: Host) -> Sight:
        limit_s = self.settings.answer_limit.total_seconds()
        try:
            async with asyncio.timeout(limit_s):
                seen = await self._listed(host)
        except (PlatformError, TimeoutError, OSError) as error:
            why = getattr(error, "message", None) or f"no answer within {limit_s:g} s"
            since = self._down[host.name].since if host.name in self._down else time.monotonic()
            self._down[host.name] = Down(since, why)
            return remembered(host, why)
        self._down.pop(host.name, None)
        return await self._noted(seen)

    async def _probe(self, host: Host) -> None:
        """One try; a connection over which nothing comes is given up."""
        if (await self._seen(host)).problem is None:
            log.info("host %s answers again", host.name)
            return
        self.kept(host).remote.abort()
        await asyncio.sleep(PROBE_EVERY_S)

    def _beside(self, name: str, act: Callable[[Host], Awaitable[None]], host: Host) -> None:
        """At most one of a name at a time."""
        if name not in self._tasks:
            self._tasks[name] = asyncio.ensure_future(act(host))
            self._tasks[name].add_done_callback(lambda _: self._tasks.pop(name, None))

    async def _listed(self, host: Host) -> Sight:
        kept = self.kept(host)
        answer = await kept.ask("list", timeout_s=self.settings.answer_limit.total_seconds())
        machines = tuple(answer["machines"])
        if any(machine["state"] != "gone" for machine in machines):
            # A new connection, or a new server: what runs there must find its way back.
            await kept.route(answer["server_url"])
        return Sight(host, machines, tuple(answer["taken"]))

    async def _noted(self, sight: Sight) -> Sight:
        """What was seen is remembered for the time when the host does not answer, by any server."""
        before = {machine["id"]: machine for machine in sight.host.facts.get("machines", ())}
        if list(before.values()) == list(sight.machines):
            return sight
        failed = [m for m in sight.machines if never_came(m) and not never_came(before.get(m["id"], {}))]
        try:
            host = await self._write(sight.host.name, lambda host: with_machines(host, sight.machines))
            for machine in failed:
                host = await self.note_failure(host.name, str(machine["reason"]))
        except (StaleVersion, NotFound):
            return sight
        return replace(sight, host=host)

    # --- trouble ------------------------------------------------------------------------------------------------

    async def note_failure(self, name: str, reason: str) -> Host:
        """A machine could not be started there."""
        host = await self.change(name, lambda host: failed_once(host, reason))
        if host.state is HostState.QUARANTINED:
            log.warning("host %s is in quarantine: %s", name, host.reason)
        return host

    async def note_success(self, name: str) -> None:
        await self.change(name, lambda host: replace(host, failures=0))

    def _check_if_due(self, host: Host) -> None:
        at = host.checked_at
        if at is None or not self._now() - self.settings.recheck_every <= at <= self._now():
            self._beside(f"check {host.name}", self._checked_quietly, host)

    async def _checked_quietly(self, host: Host) -> None:
        try:
            await self.check(host)
        except (PlatformError, OSError) as error:
            log.warning("host %s cannot be checked: %s", host.name, error)

    async def check(self, host: Host) -> Host:
        """What it has now. Well again, it leaves its quarantine. Raises Unreachable, KeeperRefused, InvalidRequest."""
        facts = await self.kept(host).facts()
        self._down.pop(host.name, None)
        return await self.change(host.name, lambda host: checked(host, facts, self._now()))


# --- how a host changes ---------------------------------------------------------------------------------------


def checked(host: Host, facts: Mapping[str, Any], now: datetime) -> Host:
    known = {**facts, "machines": host.facts.get("machines", [])}
    if host.state is HostState.QUARANTINED:
        host = replace(host, state=HostState.READY, reason=None)
    return replace(host, facts=known, checked_at=now, failures=0)


def failed_once(host: Host, reason: str) -> Host:
    host = replace(host, failures=host.failures + 1)
    if host.failures < FAILURES or host.state is not HostState.READY:
        return host
    return replace(host, state=HostState.QUARANTINED, reason=f"{host.failures} starts in a row failed: {reason[:300]}")


def with_machines(host: Host, machines: Sequence[Mapping[str, Any]]) -> Host:
    return replace(host, facts={**host.facts, "machines": [dict(machine) for machine in machines]})


def remembered(host: Host, why: str) -> Sight:
    machines = tuple(host.facts.get("machines", ()))
    live = [machine for machine in machines if machine["state"] != "gone"]
    claims = tuple({"devices": machine["devices"], "exclusive": machine["exclusive"]} for machine in live)
    return Sight(host, machines, claims, why)


def never_came(machine: Mapping[str, Any]) -> bool:
    """Its agent did not start, and nobody told it to end."""
    return machine.get("state") == "gone" and not machine["has_run"] and "did not start" in str(machine["reason"])


async def bounded(call: Awaitable[Any]) -> Any:
    """The answer, or the error: one host's trouble is not another's."""
    try:
        return await call
    except (Unreachable, KeeperRefused, PlatformError, OSError) as error:
        return error
