"""Google's front end in this process, on a clock that stands still until a test moves it, and the signing side of its
account: web tokens and signed addresses, written apart from the code that checks them."""

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from crucible.lab.faults import FaultKind, Faults, Rule
from crucible.lab.gcs import rsa
from crucible.lab.gcs.account import EMAIL, ServiceAccount
from crucible.lab.gcs.front import PREFIX, GcsFront
from crucible.lab.gcs.rsa import PrivateKey
from crucible.lab.http import Request, Response

URL, HOST = "http://127.0.0.1:9000", "127.0.0.1:9000"
AT = datetime(2026, 11, 17, 6, 30, tzinfo=UTC).timestamp()
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@cache
def a_key(number: int = 0) -> PrivateKey:
    """Made once for all tests; another number is somebody else's."""
    return rsa.make()


def signature(key: PrivateKey, message: bytes) -> bytes:
    size = (key.modulus.bit_length() + 7) // 8
    root = int.from_bytes(rsa.padded(message, size), "big")
    return pow(root, key.exponent, key.modulus).to_bytes(size, "big")


@cache
def _token(key_id: str, at: float) -> str:
    """Signing takes much longer than everything else."""
    return web_token(a_key(), key_id, at)


def web_token(key: PrivateKey, key_id: str, at: float, *, alg: str = "RS256", **changes: Any) -> str:
    claims = {"iss": EMAIL, "sub": EMAIL, "scope": SCOPE, "iat": int(at), "exp": int(at) + 3600, **changes}
    said = {name: value for name, value in claims.items() if value is not None}
    parts = [_url64(json.dumps(part).encode()) for part in ({"alg": alg, "typ": "JWT", "kid": key_id}, said)]
    return ".".join([*parts, _url64(signature(key, ".".join(parts).encode()))])


def signed_query(
    key: PrivateKey,
    method: str,
    path: str,
    at: float,
    *,
    expires_s: int = 60,
    host: str = HOST,
    headers: dict[str, str] | None = None,
    email: str = EMAIL,
) -> str:
    """The query that makes `method` of `path` a signed request."""
    moment = datetime.fromtimestamp(at, UTC)
    scope = f"{moment:%Y%m%d}/auto/storage/goog4_request"
    named = dict(sorted({"host": host, **(headers or {})}.items()))
    fields = {
        "X-Goog-Algorithm": "GOOG4-RSA-SHA256",
        "X-Goog-Credential": f"{email}/{scope}",
        "X-Goog-Date": f"{moment:%Y%m%dT%H%M%SZ}",
        "X-Goog-Expires": str(expires_s),
        "X-Goog-SignedHeaders": ";".join(named),
    }
    query = urlencode(fields, quote_via=quote, safe="")
    lines = [method, path, query, *(f"{name}:{value}" for name, value in named.items())]
    whole = "\n".join([*lines, "", ";".join(named), "UNSIGNED-PAYLOAD"])
    digest = hashlib.sha256(whole.encode()).hexdigest()
    text = f"GOOG4-RSA-SHA256\n{moment:%Y%m%dT%H%M%SZ}\n{scope}\n{digest}"
    return f"{query}&X-Goog-Signature={signature(key, text.encode()).hex()}"


@dataclass
class StillClock:
    at: float = AT

    def now(self) -> float:
        return self.at


@dataclass
class SmallLab:
    clock: StillClock = field(default_factory=StillClock)
    faults: Faults = field(default_factory=Faults)
    url: str = URL


class Google:
    """`google("PUT", "lab-bucket/key", b"…")` answers as a client with a web token sees it."""

    def __init__(self, home: Path) -> None:
        self.lab = SmallLab()
        self.key, self.key_id = a_key(), "0123456789abcdef0123"
        account = ServiceAccount(self.key, self.key_id, b"of access tokens")
        self.front = GcsFront(self.lab, home, wall=self.lab.clock.now, make_account=lambda: account)
        self.folder = home / "gcs"
        self.environment = asyncio.run(self.front.environment())

    def later(self, seconds: float) -> None:
        self.lab.clock.at += seconds

    def fail(self, kind: FaultKind, **rule: Any) -> None:
        self.lab.faults.add(Rule(kind=kind, **rule))

    def __call__(self, method: str, path: str, body: bytes = b"", query: str = "", **headers: str) -> "Answer":
        """`headers` are written with underscores."""
        token = _token(self.key_id, self.lab.clock.at)
        return self.bare(method, path, body, query, authorization=f"Bearer {token}", **headers)

    def bare(self, method: str, path: str, body: bytes = b"", query: str = "", **headers: str) -> "Answer":
        """Without a token."""
        said = {"host": HOST, **{name.replace("_", "-"): value for name, value in headers.items()}}
        raw = PREFIX + quote(path)
        request = Request(method=method, path=PREFIX + path, raw_path=raw, query=query, headers=said, body=b"")
        return self.asked(request, body)

    def asked(self, request: Request, body: bytes = b"") -> "Answer":
        response = asyncio.run(self.front.handle(request, _pieces(body)))
        try:
            sent = response.body if response.file is None else response.file.file.read(response.file.length)
        finally:
            response.close()
        return Answer(response, sent)


@dataclass(frozen=True)
class Answer:
    response: Response
    body: bytes

    @property
    def status(self) -> int:
        return self.response.status

    @property
    def code(self) -> str:
        """Of a refusal."""
        assert self.status >= 400, (self.status, self.body)
        return self.text("Code")

    @property
    def generation(self) -> str:
        assert self.status == 200, self.body
        return self.response.headers["x-goog-generation"]

    def text(self, element: str) -> str:
        found = re.search(f"<{element}>(.*?)</{element}>".encode(), self.body, re.DOTALL)
        assert found is not None, self.body
        return found[1].decode()


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body) or 1, 64 << 10):
        yield body[start : start + (64 << 10)]


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
