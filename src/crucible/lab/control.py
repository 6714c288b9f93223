"""The Lab's own door, for `crucible lab` and for tests: what there is, what it costs, what shall go wrong. Whoever has
the token from lab.json may do everything; nobody else anything."""

import asyncio
import hmac
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any, Protocol
from urllib.parse import parse_qs

from crucible import __version__
from crucible.lab.faults import BadRule, read_rule
from crucible.lab.http import Request, Response
from crucible.lab.lab import AT_WORK, Lab
from crucible.lab.scenario import Preempt
from crucible.model.errors import Conflict, InvalidRequest, NotFound, PlatformError, Unauthenticated
from crucible.world.facts import Market
from crucible.world.machine import Machine, Refused, State

PREFIX = "/_lab/"

Answer = Callable[[Request], Awaitable[Any]]


class Storage(Protocol):
    async def environment(self) -> dict[str, str]: ...


class Control:
    def __init__(self, lab: Lab, token: str, stopping: asyncio.Event, storage: Storage) -> None:
        self._lab = lab
        self._storage = storage
        self._token = token
        self._stopping = stopping
        self._routes: Mapping[tuple[str, str], Answer] = {
            ("GET", "status"): self._status,
            ("GET", "events"): self._events,
            ("GET", "bill"): self._bill,
            ("GET", "console"): self._console,
            ("GET", "clock"): self._clock,
            ("GET", "storage"): self._opened,
            ("GET", "faults"): self._faults,
            ("POST", "faults"): self._fail,
            ("DELETE", "faults"): self._mend,
            ("POST", "preempt"): self._preempt,
            ("POST", "shutdown"): self._shutdown,
        }

    async def handle(self, request: Request) -> Response:
        try:
            return _json(200, await self._answer(request))
        except PlatformError as error:
            said = {"error": error.code, "message": error.message, "details": dict(error.details)}
            return _json(error.status, said)

    async def _answer(self, request: Request) -> Any:
        path = request.path.removeprefix(PREFIX)
        if path == "ready":
            return {"version": __version__}
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise Unauthenticated("the Lab's token is in lab.json in its folder")
        answer = self._routes.get((request.method, path))
        if answer is None:
            raise NotFound(f"the Lab has no {request.method} {path}")
        await self._lab.settle()
        return await answer(request)

    # --- looking ------------------------------------------------------------------------------------------------

    async def _status(self, request: Request) -> Any:
        lab = self._lab
        now = lab.now()
        machines = lab.world.machines(lab.account.id, None, now, is_omniscient=True)
        counts = Counter(machine.state for machine in machines)
        shown = [machine for machine in machines if machine.state is not State.ENDED or _has(request, "all")]
        invoice = lab.world.invoice(lab.account.id, now)
        return {
            "url": lab.url,
            "pid": os.getpid(),
            "version": __version__,
            "account": lab.account.id,
            "regions": list(lab.settings.regions),
            "seed": lab.settings.seed,
            "speed": lab.clock.speed,
            "boot_scale": lab.settings.boot_scale,
            "started_at": lab.clock.started_at,
            "now": now,
            "enclosure": lab.guests.enclosure.describe(),
            "prices": "recorded" if lab.has_recorded_prices else "made up",
            "counts": {state.value: counts[state] for state in State},
            "disks": len(lab.world.disks(lab.account.id, None)),
            "microusd": invoice.microusd,
            "faults": len(lab.faults.rules()),
            "machines": [
                self._machine(machine) | {"microusd": invoice.by_resource.get(machine.id, 0)} for machine in shown
            ],
        }

    def _machine(self, machine: Machine) -> dict[str, Any]:
        return {
            "id": machine.id,
            "type": machine.type,
            "market": machine.market.value,
            "region": machine.region,
            "zone": machine.zone,
            "state": machine.state.value,
            "launched_at": machine.launched_at,
            "ended_at": machine.ended_at,
            "end": machine.end.value if machine.end else None,
            "notice_at": machine.notice_at,
            "taken_at": machine.taken_at,
            "private_address": machine.private_address,
            "public_address": machine.public_address,
            "tags": machine.tags,
        }

    async def _events(self, request: Request) -> Any:
        query = _query(request)
        notes = self._lab.journal.after(_whole(query.get("after", "0"), "after"), query.get("subject"))
        return {"items": [note.fields() for note in notes]}

    async def _bill(self, request: Request) -> Any:
        invoice = self._lab.world.invoice(self._lab.account.id, self._lab.now())
        lines = [asdict(line) for line in invoice.lines]
        return {"account": invoice.account, "until": invoice.until, "microusd": invoice.microusd, "lines": lines}

    async def _console(self, request: Request) -> Any:
        machine = self._known(_query(request).get("machine", ""))
        text = self._lab.guests.console(machine.id).decode("utf-8", "replace")
        return {"machine": machine.id, "text": text}

    async def _clock(self, request: Request) -> Any:
        clock = self._lab.clock
        return {"now": clock.now(), "started_at": clock.started_at, "speed": clock.speed}

    async def _opened(self, request: Request) -> Any:
        return await self._storage.environment()

    # --- changing -----------------------------------------------------------------------------------------------

    async def _faults(self, request: Request) -> Any:
        return {"items": [standing.fields() for standing in self._lab.faults.rules()]}

    async def _fail(self, request: Request) -> Any:
        try:
            rule = read_rule(_body(request), self._lab.now())
            name = self._lab.faults.add(rule)
        except BadRule as bad:
            raise InvalidRequest(str(bad), field=bad.field, hint=bad.hint) from None
        return {"id": name, **rule.fields()}

    async def _mend(self, request: Request) -> Any:
        try:
            return {"cleared": self._lab.faults.clear(_query(request).get("rule"))}
        except BadRule as bad:
            raise NotFound(bad.message, hint=bad.hint) from None

    async def _preempt(self, request: Request) -> Any:
        """All that are named, or none."""
        wanted = _chosen(_body(request))
        machines = self._lab.world.machines(self._lab.account.id, None, self._lab.now(), is_omniscient=True)
        for machine_id in wanted.machines:
            self._check_spot(self._known(machine_id))
        taken = [machine.id for machine in wanted.chosen(machines)]
        for machine_id in taken:
            self._lab.preempt(machine_id, wanted.notice_s)
        return {"items": [self._machine(self._lab.world.machine(machine_id)) for machine_id in taken]}

    async def _shutdown(self, request: Request) -> Any:
        self._stopping.set()
        return {"stopping": os.getpid()}

    def _known(self, machine_id: str) -> Machine:
        try:
            return self._lab.world.machine(machine_id)
        except Refused:
            raise NotFound(f"the Lab has no machine {machine_id!r:.60}", hint="see crucible lab status --all") from None

    def _check_spot(self, machine: Machine) -> None:
        if machine.market is not Market.SPOT:
            raise Conflict(f"{machine.id} is on demand; only spot machines are taken away")
        if machine.state not in AT_WORK:
            raise Conflict(f"{machine.id} is {machine.state} already")
        if machine.notice_at is not None:
            raise Conflict(f"{machine.id} is being taken away already")


def _chosen(body: Mapping[str, Any]) -> Preempt:
    """{"machines": […]} or what fits: "region", "type", "tag", "count"; and "notice_s"."""
    known = ("machines", "tag", "region", "type", "count", "notice_s")
    unknown = [name for name in body if name not in known]
    if unknown:
        raise InvalidRequest(f"{unknown[0]!r:.60} is no field of a preemption; it has {', '.join(known)}")
    said = {name: value for name, value in body.items() if value is not None}
    named = said.pop("machines", [])
    if not isinstance(named, list) or not all(isinstance(machine, str) for machine in named):
        raise InvalidRequest("machines is no list of names", field="machines")
    for name in ("tag", "region", "type"):
        if name in said and not isinstance(said[name], str):
            raise InvalidRequest(f"{name} is no text", field=name)
    for name in ("count", "notice_s"):
        value = said.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise InvalidRequest(f"{name} is no number from 0 on", field=name)
    if "tag" in said:
        name, has_value, value = said["tag"].partition("=")
        said["tag"] = (name, value if has_value else None)
    return Preempt(machines=tuple(named), **said)


def _body(request: Request) -> Mapping[str, Any]:
    try:
        said = json.loads(request.body or b"{}")
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise InvalidRequest("the body is no JSON object")
    return said


def _query(request: Request) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.query).items()}


def _has(request: Request, name: str) -> bool:
    return _query(request).get(name) == "true"


def _whole(text: str, field: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise InvalidRequest(f"{field} is no whole number", field=field)
    return int(text)


def _json(status: int, value: Any) -> Response:
    return Response(status=status, headers={"content-type": "application/json"}, body=json.dumps(value).encode())
