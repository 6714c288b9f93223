"""One POST to where somebody wants it: to an address that was checked, without redirects, within a time, and reading
little of the answer."""

import asyncio
import contextlib
import re
import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from crucible import __version__
from crucible.endpoints import Origin
from crucible.model.errors import SendFailed, SendRefused
from crucible.notify.outside import Outside

TIMEOUT_S = 20.0
MAX_HEAD = 16 << 10
MOST_ADDRESSES = 4  # of a host that are tried
MAX_ANSWER = 512  # bytes that are read of what they say
_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")
# Not now, but perhaps later.
_LATER = (408, 425, 429)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)  # by lower-case name
    text: str = ""


class Poster:
    def __init__(self, outside: Outside, tls: ssl.SSLContext | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self.outside = outside
        self._tls = tls or ssl.create_default_context()
        self._timeout_s = timeout_s

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Raises SendFailed, SendRefused, InvalidRequest; what is not 2xx is one of them."""
        origin = self.outside.check(url)
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._exchange(origin, request(origin, url, body, headers))
        except TimeoutError:
            raise SendFailed(f"{origin} did not answer within {self._timeout_s:.0f} s") from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise SendFailed(f"{origin}: {_words(error)}") from error
        return taken(origin, answer)

    async def _exchange(self, origin: Origin, sent: bytes) -> Answer:
        reader, writer = await self._connected(origin, await self.outside.addresses(origin))
        try:
            writer.write(sent)
            await writer.drain()
            return await _answer(reader)
        finally:
            writer.transport.abort()

    async def _connected(self, origin: Origin, addresses: Sequence[str]) -> tuple[StreamReader, StreamWriter]:
        """To the first of them that takes it, each for its share of the time: many a host has an IPv6 address that
        leads nowhere from here."""
        *others, last = addresses[:MOST_ADDRESSES]
        for address in others:
            with contextlib.suppress(OSError):  # a time that is over is one
                async with asyncio.timeout(self._timeout_s / (len(others) + 1)):
                    return await self._connection(origin, address)
        return await self._connection(origin, last)

    async def _connection(self, origin: Origin, address: str) -> tuple[StreamReader, StreamWriter]:
        is_secure = origin.scheme == "https"
        return await asyncio.open_connection(
            address,
            origin.port,
            ssl=self._tls if is_secure else None,
            server_hostname=origin.host if is_secure else None,
            limit=MAX_HEAD,
        )


def request(origin: Origin, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = {
        "Host": str(origin).partition("://")[2],
        "User-Agent": f"crucible/{__version__}",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body


async def _answer(reader: StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    found = _STATUS.match(head)
    if found is None:
        raise SendFailed("it does not speak HTTP")
    lines = (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:] if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    text = (await reader.read(MAX_ANSWER)).decode("utf-8", "replace") if int(found[1]) >= 300 else ""
    return Answer(int(found[1]), headers, text)


def taken(origin: Origin, answer: Answer) -> Answer:
    status = answer.status
    if 200 <= status < 300:
        return answer
    said = " ".join(answer.text.split())[:200]
    words = f"{origin} answered {status}" + (f": {said}" if said.isprintable() and said else "")
    if 300 <= status < 400:
        raise SendRefused(f"{words}; redirects are not followed")
    if status >= 500 or status in _LATER:
        raise SendFailed(words, retry_after_s=_seconds(answer.headers.get("retry-after", "")))
    raise SendRefused(words)


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, asyncio.IncompleteReadError):
        return "it hung up without an answer"
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
