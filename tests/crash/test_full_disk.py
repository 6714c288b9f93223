"""No room, no rights: a clear error, nothing half-written, and work as before once there is room again."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.server_process import SERVER, ServerProcess, until
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from crucible.model.errors import StorageFailed

SPEC = "job:\n  command: [echo, hello]\n"
TERMINAL = ("completed", "failed", "cancelled")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(folder)], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"needs the right to mount: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def client_of(server: ServerProcess) -> Client:
    return Client(Transport(Endpoint(server.url, (server.data / "admin-token").read_text().strip())))


def finishes(client: Client, job_id: str) -> bool:
    until("the job ends", lambda: client.job(job_id)["status"] in TERMINAL, 60)
    return client.job(job_id)["status"] == "completed"


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return ballast


def test_a_full_disk_refuses_new_work_and_loses_none_of_the_old(small_disk: Path, tmp_path: Path) -> None:
    server = ServerProcess(small_disk / "data", gpus=0)
    server.log = tmp_path / "server.log"
    server.start().wait_ready()
    try:
        with client_of(server) as client:
            before = client.submit("before", SPEC)["id"]
            assert finishes(client, before)
            ballast = fill(small_disk)
            with pytest.raises(StorageFailed) as refused:
                for number in range(200):  # what is left of a page may take a few
                    client.submit(f"refused-{number}", SPEC + f"  # {'x' * 4000}\n")
            assert "full" in refused.value.message or "space" in refused.value.message
            assert client.job(before)["status"] == "completed"
            ballast.unlink()
            assert finishes(client, client.submit("after", SPEC)["id"])
            until("everything accepted ends", lambda: all(j["status"] in TERMINAL for j in client.all_jobs()), 120)
    finally:
        server.stop()
    with sqlite3.connect(small_disk / "data" / "crucible.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_folder_that_cannot_be_written_is_refused_at_once(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    argv = [sys.executable, *SERVER, "--data-dir", str(small_disk / "data")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert done.returncode == 1
    assert "cannot be written" in done.stderr and "--data-dir" in done.stderr
    assert "Traceback" not in done.stderr
