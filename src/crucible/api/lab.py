"""The Lab that this server buys in, for its page in the browser: seen by everybody, broken by admins. A browser cannot
ask it itself: it lives elsewhere, and its token is the server's."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import lab_views as views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of, named
from crucible.core.rights import sees_job
from crucible.model.account import Principal
from crucible.model.errors import NoLab, NotFound
from crucible.ports.lab import LabDoor, LabMachine
from crucible.wire import lab as wire

NONE_HERE = "this server does not buy in a Lab: it was started without the Lab's environment"
START = 'crucible lab up; eval "$(crucible lab env aws)"; then start the server in that shell'
# What a machine printed last; a browser need not carry more.
CONSOLE_CHARS = 64_000

After = Annotated[int, Query(ge=0, lt=2**53, description="Only what came after this number")]
Limit = Annotated[int, Query(ge=1, le=wire.MOST_SHOWN, description="The newest so many")]
MachineName = Annotated[str | None, Query(max_length=64)]
All = Annotated[bool, Query(description="Machines that have ended, too")]


class LabRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/lab", self.status, wire.LabStatus)
        add(router, "GET", "/v1/lab/bill", self.bill, wire.LabBill)
        add(router, "GET", "/v1/lab/events", self.events, wire.LabNotes)
        add(router, "GET", "/v1/lab/machines/{machine}/console", self.console, wire.LabConsole)
        add(router, "POST", "/v1/lab/preempt", self.preempt, wire.LabMachines)
        add(router, "GET", "/v1/lab/faults", self.faults, wire.LabFaults)
        add(router, "POST", "/v1/lab/faults", self.fail, wire.LabFault, status=201)
        add(router, "DELETE", "/v1/lab/faults/{name}", self.mend, None, status=204)

    async def status(self, request: Request, all: All = False) -> Response:
        """Its machines, its clock and its bill so far; or why there is none, and what to type."""
        try:
            seen = await self._door.status(has_ended=all)
        except NoLab as none:
            said = {"is_running": False, "reason": none.message, "hint": none.details.get("hint"), "lab": None}
            return json_reply(said)
        shown = views.newest(seen.machines)
        jobs = await self._seen_jobs(principal(request), shown)
        lab = views.status(seen, shown, jobs)
        return json_reply({"is_running": True, "reason": None, "hint": None, "lab": lab})

    async def bill(self, request: Request) -> Response:
        return json_reply(views.bill(await self._door.bill()))

    async def events(
        self, request: Request, after: After = 0, machine: MachineName = None, limit: Limit = 200
    ) -> Response:
        """What happened there, the oldest first; of more than `limit` the newest."""
        notes = await self._door.notes(after, machine)
        return json_reply({"items": [asdict(note) for note in notes[-limit:]]})

    async def console(self, request: Request, machine: str) -> Response:
        """What a machine printed, its end."""
        text = await self._door.console(named(machine, "machine"))
        cut = text[-CONSOLE_CHARS:]
        return json_reply({"machine": machine, "text": cut, "is_cut": len(cut) < len(text)})

    async def preempt(self, request: Request, body: wire.Preempt) -> Response:
        """Takes spot machines away, as a seller does when others pay more. Those that are named, all or none."""
        door, who = self._door, principal(request)
        asked = body.model_dump(exclude_none=True, exclude_defaults=True)
        await self._deps.audits.note(who, "lab.preempt", "lab", **asked)
        fitting = {"region": body.region, "type": body.type, "count": body.count}
        taken = await door.preempt(body.machines, body.notice_s, **fitting)
        jobs = await self._seen_jobs(who, taken)
        return json_reply({"items": [views.machine(one, jobs) for one in taken]})

    async def faults(self, request: Request) -> Response:
        """The rules, how often each struck, and what can be made to go wrong."""
        door = self._door
        items = [asdict(one) for one in await door.faults()]
        return json_reply({"items": items, "kinds": [asdict(kind) for kind in door.kinds()]})

    async def fail(self, request: Request, body: wire.NewFault) -> Response:
        """Makes something go wrong, from now on or for a while."""
        door, rule = self._door, body.model_dump(by_alias=True, exclude_none=True)
        await self._deps.audits.note(principal(request), "lab.fail", "lab", rule=rule)
        return json_reply(asdict(await door.fail(rule)), 201)

    async def mend(self, request: Request, name: str) -> Response:
        """It goes wrong no more."""
        door, rule = self._door, named(name, "rule")
        await self._deps.audits.note(principal(request), "lab.mend", "lab", rule=rule)
        await door.mend(rule)
        return Response(status_code=204)

    @property
    def _door(self) -> LabDoor:
        if self._deps.lab is None:
            raise NoLab(NONE_HERE, hint=START)
        return self._deps.lab

    async def _seen_jobs(self, who: Principal, machines: Iterable[LabMachine]) -> set[str]:
        tagged = {one.tags[views.JOB] for one in machines if views.JOB in one.tags}
        return {job for job in tagged if await self._sees(who, job)}

    async def _sees(self, who: Principal, job: str) -> bool:
        """A tag may be anybody's: of another server that buys in the same Lab, or of a client that made it up."""
        try:
            return sees_job(who, await self._deps.store.job(job_id_of(job)))
        except NotFound:
            return False
