"""Datasets: what an upload still has to send, to register a tree, to look and to remove."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.model.dataset import Dataset, DatasetCopy
from crucible.ports.objects import Signed
from crucible.wire import datasets as wire


class DatasetRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/datasets", self.list, wire.Datasets)
        add(router, "POST", "/v1/datasets", self.register, wire.DatasetItem, status=201)
        add(router, "POST", "/v1/datasets/uploads", self.upload, wire.Upload)
        add(router, "GET", "/v1/datasets/{name}", self.get, wire.DatasetView)
        add(router, "DELETE", "/v1/datasets/{name}", self.remove, wire.DatasetRemoved)

    async def list(self, request: Request) -> Response:
        return json_reply({"items": [item(one) for one in await self._deps.datasets.all()]})

    async def upload(self, request: Request, body: wire.UploadAsked) -> Response:
        """Which of these objects are missing, each with the address that it is to be put to; and that of the manifest,
        which is put last."""
        missing, manifest = await self._deps.datasets.upload(principal(request), body)
        return json_reply(
            {
                "missing": [put(name, signed) for name, signed in missing],
                "manifest": None if manifest is None else put(body.digest, manifest),
                "lives_s": self._deps.checkpoints.lives_s,
            }
        )

    async def register(self, request: Request, body: wire.DatasetNew) -> Response:
        """Gives a name to a tree whose objects are all there."""
        return json_reply(item(await self._deps.datasets.register(principal(request), body)), 201)

    async def get(self, request: Request, name: str) -> Response:
        found = await self._deps.datasets.find(name)
        copies, jobs = await self._deps.datasets.details(found.digest)
        return json_reply({**item(found), "copies": [copy(one) for one in copies], "jobs": list(jobs)})

    async def remove(self, request: Request, name: str) -> Response:
        """Refused while a job that is not over needs it."""
        return json_reply({"removed": await self._deps.datasets.remove(principal(request), name)})


def item(one: Dataset) -> dict[str, Any]:
    return {
        "name": one.name,
        "digest": one.digest,
        "uri": one.uri,
        "region": one.region,
        "size_bytes": one.size_bytes,
        "files": one.files,
        "user": one.user_id,
        "created_at": one.created_at,
    }


def copy(one: DatasetCopy) -> dict[str, Any]:
    return {"place": one.place, "uri": one.uri, "size_bytes": one.size_bytes, "created_at": one.created_at}


def put(name: str, signed: Signed) -> dict[str, Any]:
    return {"name": name, "url": signed.url, "headers": dict(signed.headers)}
