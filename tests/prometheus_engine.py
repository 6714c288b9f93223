"""A real Prometheus on loopback, in a folder of its own, with the configuration and the rules of `deploy/prometheus`:
only addresses and intervals are others."""

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml
from engines.debian import PATH

DEPLOY = Path(__file__).parents[1] / "deploy" / "prometheus"
START_LIMIT_S = 60.0
# A rate of a second is worth asking for after two of them.
EVERY = "1s"


def tool(name: str) -> str:
    found = shutil.which(name, path=PATH)
    assert found is not None, f"{name} is missing: make engines"
    return found


class Prometheus:
    """`with Prometheus(folder, "127.0.0.1:8000", token) as prometheus: prometheus.query("up")`."""

    def __init__(self, folder: Path, target: str, token: str) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        secret = folder / "token"
        secret.write_text(token)
        secret.chmod(0o600)
        config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": EVERY, "evaluation_interval": EVERY}
        config["rule_files"] = [str(DEPLOY / name) for name in config["rule_files"]]
        (scrape,) = config["scrape_configs"]
        scrape["authorization"]["credentials_file"] = str(secret)
        scrape["static_configs"][0]["targets"] = [target]
        self.config = folder / "prometheus.yml"
        self.config.write_text(yaml.safe_dump(config))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])

    def __enter__(self) -> "Prometheus":
        argv = [
            tool("prometheus"),
            f"--config.file={self.config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]
        with (self.folder / "log").open("ab") as log:
            environ = {**os.environ, "GOMAXPROCS": "1"}
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)
        deadline = time.monotonic() + START_LIMIT_S
        while not self._is_ready():
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, "Prometheus is not ready"
            time.sleep(0.05)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series; an expression that it does not understand fails the test."""
        answer = self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def last_look(self) -> str:
        """How it last fared with the server, for a person who must find out what went wrong."""
        targets = self._get("/api/v1/targets")["data"]["activeTargets"]
        return ", ".join(f"{one['health']} {one['lastError']} after {one['lastScrapeDuration']} s" for one in targets)

    def rules(self) -> list[dict[str, Any]]:
        groups = self._get("/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, path: str) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as reply:
                answer: dict[str, Any] = json.load(reply)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        return answer

    def _is_ready(self) -> bool:
        """This one, and not another that was given the port meanwhile."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                flags = self._get("/api/v1/status/flags")["data"]
        except OSError:
            return False
        return bool(flags["storage.tsdb.path"] == str(self.folder / "data"))
