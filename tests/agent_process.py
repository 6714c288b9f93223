"""A real agent, started as a person or a provider starts it: the built archive, an interpreter, a folder."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from crucible.wire import agent as wire
from doubles.agent_server import ENROLMENT_TOKEN, ServerDouble


def rank_work(
    *argv: str,
    attempt_id: str = "att-1",
    rank: int = 0,
    stop: bool = False,
    stop_reason: str | None = None,
    token: str = "token-of-the-attempt",
    **launch: Any,
) -> wire.RankWork:
    fields: dict[str, Any] = {
        "job_id": "job-1",
        "task_id": "task-1",
        "number": 0,
        "generation": 1,
        "env": {},
        "devices": [],
        "setup": [],
        "code": None,
        "checkpoints": f"file://{tempfile.gettempdir()}/crucible-tests-nowhere",
        "checkpoint_keep": 3,
        "timeout_s": None,
        "stop_grace_s": 5.0,
        "progress_pattern": None,
        "progress_total": None,
    }
    fields |= {"attempt_id": attempt_id, "rank": rank, "argv": list(argv)} | launch
    return wire.RankWork(launch=wire.Launch(**fields), stop=stop, stop_reason=stop_reason, token=token)


def package_of(files: dict[str, str]) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return body.getvalue()


class AgentProcess:
    def __init__(self, pyz: Path, folder: Path, server: ServerDouble, python: str = sys.executable) -> None:
        self.pyz = pyz
        self.folder = folder
        self.python = python
        self.machine_id = f"machine-{folder.name}-{os.getpid()}-{time.monotonic_ns()}"
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.server_file = folder / "server.json"
        self.point_at(server)
        self.boot(servers=[server.url])

    def boot(self, **changes: Any) -> None:
        boot = {
            "servers": [],
            "server_file": str(self.server_file),
            "enrolment_token": ENROLMENT_TOKEN,
            "order_id": "order-1",
            "machine_id": self.machine_id,
            "address": "127.0.0.1",
            "devices": [],
            "power_off": None,
            "cgroup": None,
        }
        (self.folder / "boot.json").write_text(json.dumps(boot | changes))

    def point_at(self, server: ServerDouble) -> None:
        draft = self.server_file.with_suffix(".tmp")
        draft.write_text(json.dumps({"url": server.url}))
        draft.replace(self.server_file)

    def start(self, **env: str) -> "AgentProcess":
        with (self.folder / "agent.out").open("ab") as out:
            self.process = subprocess.Popen(
                [self.python, str(self.pyz), "--dir", str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, **env},
            )
        return self

    def wait(self, timeout_s: float = 20) -> int:
        assert self.process is not None
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """kill -9 of the agent alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        return (self.folder / "agent.log").read_text()

    def rank_folder(self, attempt_id: str = "att-1", rank: int = 0) -> Path:
        return self.folder / "attempts" / attempt_id / f"rank-{rank}"

    def processes(self) -> list[int]:
        """Everything that carries the machine's name, the agent's own process included."""
        return carriers("CRUCIBLE_MACHINE_ID", self.machine_id)

    def destroy(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        deadline = time.monotonic() + 10
        while (left := self.processes()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)


def carriers(name: str, value: str) -> list[int]:
    wanted = f"{name}={value}".encode()
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if wanted in environment_of(pid)]


def environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Not even a zombie counts."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"
