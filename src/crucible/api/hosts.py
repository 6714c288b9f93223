"""Own hosts: registered, checked, drained and let go by admins; seen by everybody."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.core.auditing import by
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict
from crucible.model.host import HostUse
from crucible.ports.hosts import HostDesk, HostView, NewHost
from crucible.wire import hosts as wire

Force = Annotated[bool, Query(description="Drain it first; let one go that has not answered for very long")]


class HostRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/hosts", self.hosts, wire.Hosts)
        add(router, "POST", "/v1/hosts", self.add, wire.Hosts, status=201)
        add(router, "GET", "/v1/hosts/{name}", self.host, wire.HostItem)
        add(router, "DELETE", "/v1/hosts/{name}", self.remove, None, status=204)
        add(router, "POST", "/v1/hosts/{name}/check", self.check, wire.HostItem)
        add(router, "POST", "/v1/hosts/{name}/drain", self.drain, wire.HostItem)
        add(router, "POST", "/v1/hosts/{name}/resume", self.resume, wire.HostItem)

    async def hosts(self, request: Request) -> Response:
        """All of them, with what the last check found and how many machines live there."""
        return json_reply({"items": [view(one) for one in await self._desk.views()]})

    async def host(self, request: Request, name: str) -> Response:
        return json_reply(view(await self._desk.view(name)))

    async def add(self, request: Request, body: wire.NewHosts) -> Response:
        """Every host is reached and looked at; all are registered, or none."""
        new = [NewHost(**{**one.model_dump(), "use": HostUse(one.use)}) for one in body.items]
        names = [one.name for one in new]
        entry = self._entry(request, "host.add", ",".join(names), count=len(names))
        added = await self._desk.add(new, principal(request).user_id, audit=entry)
        self._changed()
        return json_reply({"items": [view(one) for one in added]}, 201)

    async def check(self, request: Request, name: str) -> Response:
        """What it has now. Well again, a host leaves its quarantine."""
        return self._done(await self._desk.check(name))

    async def drain(self, request: Request, name: str, body: wire.Drain | None = None) -> Response:
        """What runs there ends in its own time; nothing new is started."""
        reason = body.reason if body else None
        return self._done(await self._desk.drain(name, reason, audit=self._entry(request, "host.drain", name)))

    async def resume(self, request: Request, name: str) -> Response:
        return self._done(await self._desk.resume(name, audit=self._entry(request, "host.resume", name)))

    async def remove(self, request: Request, name: str, force: Force = False) -> Response:
        """Refused while machines of ours live there."""
        await self._desk.remove(name, force=force, audit=self._entry(request, "host.remove", name))
        self._changed()
        return Response(status_code=204)

    def _entry(self, request: Request, action: str, name: str, **details: Any) -> AuditEntry:
        return by(principal(request), self._deps.clock.now(), action, f"host:{name}", **details)

    @property
    def _desk(self) -> HostDesk:
        if self._deps.hosts is None:
            raise Conflict("this server keeps no own hosts: start it with --provider onprem (beside its others)")
        return self._deps.hosts

    @property
    def _changed(self) -> Callable[[], None]:
        return self._deps.hosts_changed

    def _done(self, host: HostView) -> Response:
        self._changed()
        return json_reply(view(host))


def view(seen: HostView) -> dict[str, Any]:
    host = seen.host
    return {
        "name": host.name,
        "address": host.address,
        "port": host.port,
        "user": host.user,
        "zone": host.zone,
        "use": host.use,
        "jump": host.jump,
        "identity_file": host.identity_file,
        "internal_address": host.internal_address,
        "python": host.python,
        "host_key": host.host_key,
        "state": host.state,
        "reachable": seen.problem is None,
        "reason": seen.problem or host.reason,
        "machines": seen.machines,
        "facts": {name: value for name, value in host.facts.items() if name != "machines"},
        "added_by": host.added_by,
        "added_at": host.added_at,
        "checked_at": host.checked_at,
    }
