"""Real frameworks under a real server with real agents: several machines of the local provider are a gang."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crucible.client.api import TERMINAL, Client
from crucible.providers.local import processes

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "frameworks"
LIMIT_S = 150.0


def python_of(framework: str) -> str:
    """Of the environment that `make engines` makes."""
    path = ROOT / "engines" / "frameworks.py"
    spec = importlib.util.spec_from_file_location("crucible_test_engines", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return str(module.python_of(framework))


def until(what: str, is_so: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, f"not in time: {what}"
        time.sleep(0.1)


class Shop:
    """A server of its own that sells machines on this computer."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))},
            "HOME": str(folder),
            "CRUCIBLE_HOME": str(self.data),
        }

    def run(self, *argv: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "crucible.cli.entry", *argv],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def client(self) -> Client:
        self.run("ps")
        return Client.open(*_endpoint(self.data))

    def submit(self, **spec: Any) -> "Running":
        job = {"code": str(EXAMPLES), "retry": {"limit": 0}, **spec}
        job["env"] = {"OMP_NUM_THREADS": "1", **job.get("env", {})}
        path = self.data.parent / f"{job['name']}.json"
        path.write_text(json.dumps({"job": job}))
        return Running(self, self.run("submit", "-ydq", str(path)).strip())


class Running:
    def __init__(self, shop: Shop, job_id: str) -> None:
        self._shop = shop
        self.id = job_id

    def view(self) -> dict[str, Any]:
        return dict(json.loads(self._shop.run("describe", self.id, "-o", "json")))

    def lines(self) -> list[str]:
        return self._shop.run("logs", self.id).splitlines()

    def wait_for(self, words: str) -> None:
        until(words, lambda: any(re.search(words, line) for line in self.lines()) or self._is_over())
        assert any(re.search(words, line) for line in self.lines()), "\n".join(self.lines()[-40:])

    def finish(self) -> list[str]:
        """What it printed, once it has completed."""
        until("the job is over", self._is_over)
        view = self.view()
        assert view["status"] == "completed", f"{view['reason']}\n" + "\n".join(self.lines()[-60:])
        return self.lines()

    def attempts(self) -> list[dict[str, Any]]:
        with self._shop.client() as client:
            return [dict(each) for each in client.attempts(self.id)]

    def kill_machine(self, rank: int) -> None:
        """kill -9 of everything on the machine of that rank."""
        for path in self._shop.data.glob(f"local/machines/*/attempts/*/rank-{rank}/launch.json"):
            if json.loads(path.read_text())["job_id"] == self.id:
                machine = path.parents[3].name
                for pid in processes.carriers([machine]).get(machine, []):
                    processes.signal_carrier(pid, machine, signal.SIGKILL)

    def _is_over(self) -> bool:
        return self.view()["status"] in TERMINAL


def told(lines: list[str], words: str) -> str:
    """What the one line with these words says after them."""
    (found,) = [line.partition(words)[2].strip() for line in lines if words in line]
    return found


def _endpoint(data: Path) -> tuple[str, str]:
    server = json.loads((data / "server.json").read_text())
    return str(server["url"]), (data / "admin-token").read_text().strip()


@contextmanager
def shop(folder: Path) -> Iterator[Shop]:
    made = Shop(folder)
    try:
        yield made
    finally:
        live = made.run("ps", "-q").split()
        if live:
            made.run("cancel", *live)
            until("nothing runs", lambda: not made.run("ps", "-q").split(), 60)
        made.run("server", "stop")
