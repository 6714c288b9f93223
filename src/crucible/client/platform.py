"""Seed 003's way in: code and requirements to a running job, and back to a handle. All decisions are the server's, but
for one that it is told of: without a number of GPUs, a job takes one if there is one."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, Unpack

from crucible.client import shapes
from crucible.client.api import Client
from crucible.client.async_client import AsyncClient
from crucible.client.code import of_path, of_text
from crucible.client.handle import Job
from crucible.client.lookup import find_job
from crucible.client.requirements import Requirements
from crucible.client.speaking import say
from crucible.client.submission import Code, Details, Submission, filling
from crucible.client.template_shapes import Value


class MLPlatform:
    """`endpoint` and `token` go before what is configured; without any server configured, the embedded one is used and
    started when it is first needed. May be used by several threads, inside an event loop and outside."""

    def __init__(self, endpoint: str | None = None, token: str | None = None) -> None:
        self._endpoint = endpoint
        self._token = token
        self._lock = threading.Lock()
        self._opened: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """The connections; jobs go on."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @property
    def client(self) -> Client:
        """The REST API, for whatever is not here."""
        with self._lock:
            if self._opened is None:
                self._opened = self._connect()
            return self._opened

    def submit(
        self,
        code: Code,
        requirements: Requirements | None = None,
        preferences: Mapping[str, Any] | None = None,
        **details: Unpack[Details],
    ) -> Job:
        """`code` is the text of a Python script, or the `Path` of a file or folder (then with `entrypoint`). Raises
        InvalidRequest and its children."""
        return self._job(*Submission.make(code, requirements, preferences, **details).send(self.client))

    async def asubmit(
        self,
        code: Code,
        requirements: Requirements | None = None,
        preferences: Mapping[str, Any] | None = None,
        **details: Unpack[Details],
    ) -> Job:
        """As `submit`, without holding up the event loop. Cancelled, the job may or may not exist."""
        made = Submission.make(code, requirements, preferences, **details)
        async with AsyncClient(self._connect) as client:
            submitted, notes = await client.call(made.send)
            return await client.call(lambda _: self._job(submitted, notes))

    def use(
        self,
        template: str,
        parameters: Mapping[str, Value] | None = None,
        *,
        name: str | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> Job:
        """A job from a template. Fields of the job in `spec` go before what the template says. Raises InvalidSpec."""
        return self._job(self.client.submit(name, filling(template, parameters, spec)), ())

    def plan(
        self,
        code: Code,
        requirements: Requirements | None = None,
        preferences: Mapping[str, Any] | None = None,
        **details: Unpack[Details],
    ) -> shapes.Plan:
        """Where `submit` would run it, what it would cost and why; only the spec is sent."""
        made, notes = Submission.make(code, requirements, preferences, **details).plan(self.client)
        return {**made, "notes": [*made.get("notes", []), *notes]}

    def recommend(
        self, code: Code, preferences: Mapping[str, Any] | None = None, requirements: Requirements | None = None
    ) -> shapes.Recommendations:
        """What the code needs, line by line, and the backends that suit it, the best first. It is read, never run."""
        found = of_path(code) if isinstance(code, Path) else of_text(code)
        wishes = {**(requirements or Requirements()).wishes(), **(preferences or {})}
        made = self.client.recommend(found.files, entrypoint=found.entrypoint, preferences=wishes)
        return {**made, "notes": [*found.notes, *made["notes"]]}

    def job(self, id_or_name: str) -> Job:
        """An id, the beginning of one, or a name: the newest job of that name. Raises NotFound or AmbiguousJob."""
        return Job(find_job(self.client, id_or_name), self.client, self._connect)

    def jobs(
        self, *, status: str | None = None, name: str | None = None, limit: int | None = 50
    ) -> list[shapes.JobBrief]:
        """Newest first."""
        return list(self.client.all_jobs(status=status, name=name, limit=limit))

    def _job(self, made: shapes.Submitted, notes: tuple[str, ...]) -> Job:
        for note in notes:
            say(note)
        return Job(made["id"], self.client, self._connect, notes)

    def _connect(self) -> Client:
        return Client.open(self._endpoint, self._token)
