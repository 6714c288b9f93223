"""Somebody at a shell, for tests that use the command line as a person does."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 90.0


class Person:
    """Somebody at a shell: a home, a folder to work in, and the `crucible` command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.data = folder / "data"
        self.folder.mkdir(parents=True)
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))},
            "HOME": str(folder),
            "CRUCIBLE_HOME": str(self.data),
            "PYTHONWARNINGS": "default",
        }

    def start(self, *argv: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "crucible.cli.entry", *argv],
            cwd=self.folder,
            env={**self.env, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        with self.start(*argv, **more) as process:
            out, err = process.communicate(timeout=LIMIT_S)
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def json(self, *argv: str) -> dict[str, object]:
        ran = self.run(*argv, "-o", "json")
        assert ran.returncode == 0, ran.stderr
        value: dict[str, object] = json.loads(ran.stdout)
        return value

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name

    def until(self, what: str, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < end, f"not in time: {what}"
            time.sleep(0.1)

    def leave(self) -> None:
        """Nothing of theirs runs any more."""
        live = self.run("ps", "-q").stdout.split() if (self.data / "server.json").exists() else []
        if live:
            self.run("cancel", *live)
            for job in live:
                self.run("wait", job, "--timeout", "30")
        self.run("server", "stop")
