"""A server for workers, as far as `crucible.train` sees one: leases, renewals, commits and signed addresses over HTTP,
in memory. It decides nothing by our own code, and can lose answers, fail, and move to another port."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "cra.attempt.mac"


@dataclass
class ShardServer:
    """`text` holds items one a line; None: they are numbers."""

    run_dir: Path
    cuts: Sequence[tuple[int, int]]  # first, items
    text: bytes | None = None
    source: dict[str, Any] = field(default_factory=lambda: {"kind": "numbers", "base": "", "path": "", "list": None})
    part_bytes: int = 1 << 20
    lease_s: float = 60.0
    objects: dict[str, bytes] = field(default_factory=dict)
    commits: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    unwanted: set[int] = field(default_factory=set)
    trouble: Callable[[str, str], int | None] = lambda method, path: (
        None
    )  # a status instead of an answer; 0: none at all
    is_over: bool = False
    leases: dict[str, int] = field(default_factory=dict)  # by question

    def start(self) -> "ShardServer":
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.handle(self)

            def do_PUT(self) -> None:
                outer.handle(self)

            def do_GET(self) -> None:
                outer.handle(self)

            def log_message(self, *args: Any) -> None: ...

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        (self.run_dir / "servers.json").write_text(json.dumps({"servers": [self.url]}))
        return self

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def move(self) -> None:
        """It dies, and comes back at another port."""
        self.stop()
        self.start()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        status = self.trouble(request.command, request.path)
        if status == 0:
            request.close_connection = True
            self._answer(request, body, is_heard=False)
        elif status is not None:
            self._send(request, status, b'{"error": "busy", "message": "not now"}')
        else:
            self._answer(request, body, is_heard=True)

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes, *, is_heard: bool) -> None:
        if request.path.startswith("/v1/objects/cro."):
            status, said = self._object(request, body)
        elif request.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, said = 401, b'{"error": "unauthenticated"}'
        else:
            verb, message = request.path.rpartition("/")[2], json.loads(body)
            answer = {"lease": self.lease, "renew": self.renew, "commit": self.commit, "objects": self.located}[verb]
            self.asked.append((verb, message))
            said = b'{"error": "gone", "message": "the attempt is over"}' if self.is_over else b""
            status = 410 if self.is_over else 200
            said = said or json.dumps(answer(message)).encode()
        if is_heard:
            self._send(request, status, said)

    def _send(self, request: BaseHTTPRequestHandler, status: int, said: bytes) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(said)))
        request.end_headers()
        request.wfile.write(said)

    def _object(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes]:
        key = request.path.removeprefix("/v1/objects/cro.")
        if request.command == "PUT":
            self.objects[key] = body
            return 200, b"{}"
        data, asked = self.objects[key], request.headers.get("Range")
        if asked is None:
            return 200, data
        start, _, last = asked.removeprefix("bytes=").partition("-")
        return 206, data[int(start) : int(last) + 1]

    # --- what workers ask -------------------------------------------------------------------------------------

    def lease(self, message: dict[str, Any]) -> dict[str, Any]:
        number = self.leases.get(message["asked"])
        if number is None:
            taken = set(self.leases.values())
            number = next((n for n in range(len(self.cuts)) if n not in taken), None)
        if number is None:
            return {"shard": None, "wait_s": None, "reason": "every item is done"}
        self.leases[message["asked"]] = number
        first, items = self.cuts[number]
        ends = [0, *(at + 1 for at, byte in enumerate(self.text or b"") if byte == 10)]
        return {
            "shard": {
                "number": number,
                "first": first,
                "items": items,
                "fence": 1,
                "start": ends[first] if self.text else 0,
                "end": ends[first + items] if self.text else 0,
                "source": {**self.source, "list": self.address("list")},
                "lease_s": self.lease_s,
                "parts": [self.address(f"{number}-0")],
                "errors": self.address(f"{number}-errors"),
                "part_bytes": self.part_bytes,
            },
            "wait_s": None,
            "reason": "",
        }

    def renew(self, message: dict[str, Any]) -> dict[str, Any]:
        number = message["number"]
        if number in self.unwanted:
            return {"is_wanted": False, "parts": [], "errors": None}
        parts = [self.address(f"{number}-{part}") for part in range(message["parts"])]
        return {"is_wanted": True, "parts": parts, "errors": self.address(f"{number}-errors")}

    def commit(self, message: dict[str, Any]) -> dict[str, Any]:
        is_first = message["number"] not in self.commits
        self.commits.setdefault(message["number"], message)
        return {"verdict": "accepted" if is_first else "repeated"}

    def located(self, message: dict[str, Any]) -> dict[str, Any]:
        names = (self.text or b"").decode().splitlines()
        first, items = self.cuts[message["number"]]
        wanted = names[first : first + items][message["first"] : message["first"] + message["count"]]
        return {"objects": [self.address(f"object-{name.rpartition('/')[2]}") for name in wanted]}

    def address(self, key: str) -> dict[str, Any]:
        """Under a name that leads nowhere: objects are where the server is reached."""
        return {"url": f"http://elsewhere.invalid:9/v1/objects/cro.{key}", "headers": {}}

    def output(self) -> bytes:
        """Everything that was committed, in order."""
        found = b""
        for number in sorted(self.commits):
            size = self.commits[number].get("size", 0)
            found += b"".join(self.objects[f"{number}-{part}"] for part in range(-(-size // self.part_bytes)))
        return found

    def errors(self) -> list[dict[str, Any]]:
        found = b"".join(self.objects.get(f"{number}-errors", b"") for number in sorted(self.commits))
        return [json.loads(line) for line in found.splitlines()]
