"""The door of objects on this server's disk: whoever has a signed address may make that one request. No token is asked
for; the address is the right, and a secret."""

import re
from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.reply import Pulled, json_reply
from crucible.api.routing import add
from crucible.model.errors import NotFound
from crucible.ports.objects import Objects

_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{1,15})?\Z")
# Of a range, read at once.
_CHUNK_BYTES = 1 << 20


class ObjectRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        # Not part of the public description: nobody makes such an address but this server.
        add(router, "GET", "/v1/objects/{token}", self.get, None, include_in_schema=False)
        add(router, "PUT", "/v1/objects/{token}", self.put, None, include_in_schema=False)

    async def get(self, request: Request, token: str) -> Response:
        objects, key = self._deps.signed("GET", token)
        facts = await objects.head(key)
        if facts is None:
            raise NotFound("there is no such object", key=key)
        wanted = _range(request.headers.get("range"), facts.size)
        if wanted is None:
            return _sent(objects.stream(key), facts.size, 200, {})
        start, end = wanted
        said = {"content-range": f"bytes {start}-{end - 1}/{facts.size}"}
        return _sent(_cut(objects, key, start, end), end - start, 206, said)

    async def put(self, request: Request, token: str) -> Response:
        objects, key = self._deps.signed("PUT", token)
        try:
            size = await objects.put_stream(key, request.stream())
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        return json_reply({"size_bytes": size})


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """From the first to after the last byte; None: all of it, as for every range that is not understood."""
    found = _RANGE.match(header or "")
    if not found:
        return None
    start, last = int(found[1]), size - 1 if found[2] is None else min(int(found[2]), size - 1)
    if start > last:
        raise HTTPException(416, headers={"content-range": f"bytes */{size}"})
    return start, last + 1


async def _cut(objects: Objects, key: str, start: int, end: int) -> AsyncIterator[bytes]:
    while start < end:
        piece = await objects.get(key, start=start, length=min(_CHUNK_BYTES, end - start))
        if not piece:
            raise NotFound("the object became shorter while it was read")  # the answer breaks off
        yield piece
        start += len(piece)


def _sent(pieces: AsyncIterator[bytes], size: int, status: int, headers: dict[str, str]) -> Response:
    told = {"content-length": str(size), "accept-ranges": "bytes", **headers}
    return Pulled(pieces, "application/octet-stream", told, status)
