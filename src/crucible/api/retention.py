"""Keeping and forgetting: how long things are kept, jobs that stay, what is known of a person, and their end here."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import Pulled, json_reply
from crucible.api.routing import add, job_id_of
from crucible.core import retention as core
from crucible.engine.retention import ASKED_S, COUNTED
from crucible.model.errors import NotFound
from crucible.model.ids import UserId
from crucible.model.retention import Kept, Pruned, Retained
from crucible.wire import retention as wire

MOST_KEPT = 1000


class RetentionRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/retention", self.show, wire.RetentionView)
        add(router, "PUT", "/v1/retention/{what}", self.set, wire.KeptKind)
        add(router, "POST", "/v1/retention/run", self.run, wire.Ran)
        add(router, "GET", "/v1/kept", self.kept, wire.KeptJobs)
        add(router, "PUT", "/v1/jobs/{job_id}/keep", self.keep, wire.KeptChange)
        add(router, "DELETE", "/v1/jobs/{job_id}/keep", self.unkeep, wire.KeptChange)
        answer = {"content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}}}
        add(router, "GET", "/v1/users/{user}/export", self.export, None, responses={200: answer})
        add(router, "DELETE", "/v1/users/{user}", self.forget, wire.Forgotten)

    # --- how long ---------------------------------------------------------------------------------------------

    async def show(self, request: Request) -> Response:
        """Every kind of thing that is kept by age. Money is kept for ever."""
        return json_reply({"items": [await self._kind(what) for what in Kept]})

    async def set(self, request: Request, what: str, body: wire.NewAge) -> Response:
        kind = core.kind_of(what)
        await self._deps.retention.set(principal(request), kind, core.days_of(body.age))
        return json_reply(await self._kind(kind))

    async def run(self, request: Request, body: wire.Run) -> Response:
        """Remove what is old, for some seconds; ask again until it is done. A dry run only counts."""
        if body.dry_run:
            due = await self._deps.retention.due()
            more = [what for what, count in due.items() if count >= COUNTED]
            return json_reply(ran(Pruned(due, 0, not any(due.values())), more, is_dry=True))
        return json_reply(ran(await self._deps.retention.pass_once(ASKED_S), (), is_dry=False))

    async def _kind(self, what: Kept) -> dict[str, Any]:
        age = (await self._deps.retention.ages())[what]
        found = (await self._deps.retention.stored()).get(what, Retained(what=what))
        set_by = "admin" if found.days is not None else self._deps.retention.set_by(what)
        days = None if age is None else age.days
        return {"what": what, "days": days, "set_by": set_by, "ran_at": found.ran_at, "removed": found.removed}

    # --- jobs that stay -----------------------------------------------------------------------------------------

    async def kept(self, request: Request) -> Response:
        """By you, the newest first; an admin sees everybody's."""
        found = await self._deps.retention.kept(principal(request), MOST_KEPT)
        return json_reply({"items": [{"id": one.job_id, "user_id": one.user_id, "at": one.at} for one in found]})

    async def keep(self, request: Request, job_id: str) -> Response:
        """However old it gets."""
        who = principal(request)
        job = await self._deps.service.find(who, job_id_of(job_id))
        await self._deps.retention.keep(who, job)
        return json_reply({"id": job.id, "kept": True})

    async def unkeep(self, request: Request, job_id: str) -> Response:
        """It goes when it is old."""
        who = principal(request)
        job = await self._deps.service.find(who, job_id_of(job_id))
        await self._deps.retention.unkeep(who, job)
        return json_reply({"id": job.id, "kept": False})

    # --- people -------------------------------------------------------------------------------------------------

    async def export(self, request: Request, user: str, logs: bool = False) -> Response:
        """Everything that is stored about a person, as a tar archive of JSON lines; secrets are never in it."""
        who, whom = principal(request), user_id_of(user)
        pieces = await self._deps.privacy.export(who, whom, logs)
        return Pulled(pieces, "application/x-tar", {"Content-Disposition": 'attachment; filename="export.tar"'})

    async def forget(self, request: Request, user: str, keep_jobs: bool = False) -> Response:
        """A pseudonym takes their place, and what they ran is removed, unless it is kept for their team. Refused while
        jobs of theirs are not over. It goes on by itself; ask again to hear whether it is done."""
        erasure, is_done = await self._deps.privacy.forget(principal(request), user_id_of(user), keeps_jobs=keep_jobs)
        return json_reply(
            {
                "user_id": erasure.user_id,
                "pseudonym": erasure.pseudonym,
                "keeps_jobs": erasure.keeps_jobs,
                "is_done": is_done,
            }
        )


def user_id_of(text: str) -> UserId:
    """What cannot be the id of a person never reaches the database."""
    if not text.isprintable() or len(text) > 200:
        raise NotFound("no such user")
    return UserId(text)


def ran(done: Pruned, at_least: Sequence[Kept], *, is_dry: bool) -> dict[str, Any]:
    return {
        "dry_run": is_dry,
        "removed": {what.value: count for what, count in done.removed.items()},
        "at_least": at_least,
        "freed_bytes": done.freed_bytes,
        "is_done": done.is_done,
    }
