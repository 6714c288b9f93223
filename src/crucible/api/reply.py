"""Answers: JSON written by orjson, times in UTC with a Z, not-a-number as null; and bodies that are made while they are
read, at the reader's pace."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

_OPTIONS = orjson.OPT_UTC_Z


def encoded(value: Any) -> bytes:
    return orjson.dumps(value, default=_plain, option=_OPTIONS)


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(value), status, headers, "application/json")


class Pulled(Response):
    """A body of unknown length, unless the headers tell it. The next piece is made only when the last one has left; an
    empty piece is not sent, it only gives a chance to notice that the reader has gone."""

    def __init__(
        self, pieces: AsyncIterator[bytes], media_type: str, headers: Mapping[str, str], status: int = 200
    ) -> None:
        super().__init__(None, status, headers, media_type)
        if "content-length" not in headers:
            del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self._pieces:
                if gone.done():
                    return
                if piece:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            if isinstance(self._pieces, AsyncGenerator):
                await self._pieces.aclose()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (frozenset, set)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
