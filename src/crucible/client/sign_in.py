"""Signing in with a browser: this program waits at a port of this computer for the browser to come back. The secret
that it began with never leaves it but to the server, so nobody else can use what the browser carries."""

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from crucible.model.errors import Unauthenticated

WAIT_S = 600.0
_PAGE = b"<!doctype html><meta charset=utf-8><title>Crucible</title><p>Signed in. You can close this page."
_SORRY = b"<!doctype html><meta charset=utf-8><title>Crucible</title><p>That did not work; the terminal says why."


@dataclass
class Visit:
    """One sign-in. `address` is where the browser is to go."""

    server: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48), repr=False)
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    answer: dict[str, str] | None = None
    listener: HTTPServer = field(init=False)

    def __post_init__(self) -> None:
        self.listener = HTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def address(self) -> str:
        redirect = f"http://127.0.0.1:{self.listener.server_port}/"
        query = {"redirect": redirect, "challenge": challenge_of(self.verifier), "state": self.state}
        return f"{self.server}/v1/login/oidc?{urlencode(query)}"

    def wait(self, limit_s: float = WAIT_S) -> str:
        """The code that the browser brought. Raises Unauthenticated."""
        until = time.monotonic() + limit_s
        try:
            while self.answer is None:
                self.listener.timeout = until - time.monotonic()
                if self.listener.timeout <= 0:
                    raise Unauthenticated("nobody came back from the sign-in; try again: crucible login URL --sso")
                self.listener.handle_request()
        finally:
            self.listener.server_close()
        if "code" not in self.answer:
            why = self.answer.get("error_description") or self.answer.get("error", "no reason was given")
            raise Unauthenticated(f"the sign-in was refused: {why}")
        return self.answer["code"]

    def take(self, path: str) -> bool:
        """What the browser brings; anything else than an answer to this very sign-in is passed over."""
        told = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        if not secrets.compare_digest(told.get("state", "").encode(), self.state.encode()):
            return False
        self.answer = told
        return "code" in told


def challenge_of(verifier: str) -> str:
    """S256 of RFC 7636."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _handler(visit: Visit) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # of a connection that says nothing

        def do_GET(self) -> None:
            is_good = visit.take(self.path)
            self.send_response(200 if is_good else 400)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(_PAGE if is_good else _SORRY)

        def log_message(self, format: str, *args: Any) -> None:
            """The address holds a code: it is not for the terminal."""

    return Handler
