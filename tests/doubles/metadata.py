"""A double of a cloud's metadata service (version 2 of EC2's): session tokens, who the machine is, and notices."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from doubles.http_server import Handler, Request, serving

META = "/latest/meta-data/"


class MetadataDouble:
    def __init__(self) -> None:
        self.words = {META + "instance-id": "i-0123456789abcdef0", META + "local-ipv4": "10.0.0.7"}
        self.tokens: set[str] = set()
        self.is_silent = False
        self.problems: list[str] = []
        self.requests: list[Request] = []
        self.url = ""

    def take_back(self, in_s: float, skew_s: float = 0) -> str:
        """As a cloud does; returns the time that it names."""
        at = datetime.now(UTC) + timedelta(seconds=in_s + skew_s)
        text = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.words[META + "spot/instance-action"] = json.dumps({"action": "terminate", "time": text})
        return text

    def hint(self) -> None:
        self.words[META + "events/recommendations/rebalance"] = json.dumps({"noticeTime": "2026-01-01T00:00:00Z"})

    def asked(self, path: str) -> int:
        return sum(request.path == META + path for request in self.requests)

    def wait_for(self, path: str, times: int, timeout_s: float = 20) -> None:
        deadline = time.monotonic() + timeout_s
        while self.asked(path) < times:
            assert time.monotonic() < deadline, f"{path} was asked for {self.asked(path)} times"
            time.sleep(0.02)

    def answer(self, request: Request, http: Handler) -> None:
        self.requests.append(request)
        if self.is_silent:
            http.hang_up()
        elif request.method == "PUT" and request.path == "/latest/api/token":
            ttl = request.headers.get("x-aws-ec2-metadata-token-ttl-seconds", "")
            if not 1 <= int(ttl or 0) <= 21600:
                self.problems.append(f"a token for {ttl!r} seconds")
            self.tokens.add(token := secrets.token_urlsafe(16))
            _say(http, 200, token)
        elif request.headers.get("x-aws-ec2-metadata-token") not in self.tokens:
            _say(http, 401, "")
        else:
            word = self.words.get(request.path)
            _say(http, 404 if word is None else 200, word or "")


def _say(http: Handler, status: int, text: str) -> None:
    body = text.encode()
    http.send_response(status)  # with a Date, as the real one
    http.send_header("Content-Length", str(len(body)))
    http.end_headers()
    http.wfile.write(body)


@contextmanager
def running_metadata() -> Iterator[MetadataDouble]:
    double = MetadataDouble()
    with serving(double.answer) as http:
        double.url = http.url
        yield double
    assert double.problems == []
