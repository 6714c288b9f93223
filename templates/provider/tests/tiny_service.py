"""Tiny itself, as a double at the wire: one host with three GPUs; a machine is a process that runs its user-data."""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "a-key-of-tiny"
TYPES = {
    "small": {"gpu": None, "gpus": 0, "gpu_memory_gib": 0, "cpus": 2, "memory_gib": 4, "microusd_per_hour": 10_000},
    "gpu": {"gpu": "T4", "gpus": 1, "gpu_memory_gib": 16, "cpus": 4, "memory_gib": 16, "microusd_per_hour": 350_000},
}
STOCK = {"small": 1000, "gpu": 3}


class TinyService:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.machines: dict[str, dict[str, Any]] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.loses_answer = False  # of the next purchase: it is made, and nobody hears of it
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = urlsplit(path)
        with self._lock:
            self._look()
            match [method, *parts.path.strip("/").split("/")[1:]]:
                case ["GET", "types"]:
                    return 200, [{"name": name, "free": self._free(name), **one} for name, one in TYPES.items()]
                case ["GET", "machines"]:
                    name, _, value = parse_qs(parts.query)["tag"][0].partition("=")
                    return 200, [one for one in self.machines.values() if one["tags"].get(name) == value]
                case ["POST", "machines"]:
                    return self._buy(body)
                case ["DELETE", "machines", machine] if machine in self.machines:
                    self.end(machine, "deleted")
                    return 202, {}
                case ["GET", "machines", machine, "console"] if machine in self.machines:
                    return 200, {"text": (self.folder / machine).read_text()}
                case _:
                    return 404, {"message": "no such thing"}

    def _buy(self, body: dict[str, Any]) -> tuple[int, Any]:
        mine = [one for one in self.machines.values() if one["token"] == body["token"]]
        if not mine:
            if self._free(body["type"]) < body["count"]:
                return 409, {"code": "no_capacity", "message": f"{self._free(body['type'])} are left"}
            mine = [self._start(body, index) for index in range(body["count"])]
        return 201, mine

    def _start(self, body: dict[str, Any], index: int) -> dict[str, Any]:
        name, gpus = f"tiny-{next(self._numbers)}", int(TYPES[body["type"]]["gpus"] or 0)
        one = {key: body[key] for key in ("token", "type", "tags")}
        one |= {"id": name, "index": index, "devices": self._free_devices(body["type"])[:gpus], "state": "on"}
        one |= {"created": int(time.time()), "ended": None}
        program = self.folder / f"{name}.py"
        program.write_text(body["user_data"])
        env = {"TINY_METADATA": f"{self.url}/metadata/{name}", "CRUCIBLE_NODE_DIR": str(self.folder / f"{name}.d")}
        with (self.folder / name).open("wb") as console:
            self.processes[name] = subprocess.Popen([sys.executable, str(program)], stdout=console, env=env)
        self.machines[name] = one
        return one

    def end(self, name: str, reason: str) -> None:
        process = self.processes[name]
        process.kill()
        process.wait()
        if self.machines[name]["state"] != "off":
            self.machines[name] |= {"state": "off", "ended": int(time.time()), "reason": reason}

    def metadata(self, method: str, path: str) -> tuple[int, str]:
        _, _, name, word = path.split("/", 3)
        known = {"PUT token": "t", "GET id": name, "GET address": "127.0.0.1"}.get(f"{method} {word}")
        return (200, known) if known is not None else (404, "")

    def _look(self) -> None:
        for name, process in self.processes.items():
            if process.poll() is not None:
                self.end(name, "its process ended")

    def _free_devices(self, type_: str) -> list[str]:
        live = [one for one in self.machines.values() if one["type"] == type_ and one["state"] != "off"]
        taken = {device for one in live for device in one["devices"]}
        return [str(slot) for slot in range(STOCK[type_]) if str(slot) not in taken]

    def _free(self, type_: str) -> int:
        return STOCK[type_] - sum(one["type"] == type_ and one["state"] != "off" for one in self.machines.values())


class Handler(BaseHTTPRequestHandler):
    server: "Http"

    def _any(self) -> None:
        service, text = self.server.service, self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.startswith("/metadata/"):
            status, word = service.metadata(self.command, self.path)
            self._say(status, word.encode())
        elif self.headers.get("Authorization") != f"Bearer {KEY}":
            self._say(401, b"{}")
        elif service.refusal is not None:
            self._say(service.refusal[0], json.dumps(service.refusal[1]).encode())
        else:
            status, said = service.answer(self.command, self.path, json.loads(text or b"{}"))
            if not (self.command == "POST" and service.loses_answer):
                self._say(status, json.dumps(said).encode())

    do_GET = do_POST = do_PUT = do_DELETE = _any

    def _say(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class Http(ThreadingHTTPServer):
    daemon_threads = True
    service: TinyService


@contextmanager
def running_tiny(folder: Path) -> Iterator[TinyService]:
    http, service = Http(("127.0.0.1", 0), Handler), TinyService(folder)
    http.service, service.url = service, f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
        for name in service.processes:
            service.end(name, "the test is over")
