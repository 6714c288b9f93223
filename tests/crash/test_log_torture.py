"""What a program prints arrives whole and in order, through agent, server and disk, however unreasonable it is."""

import hashlib
import http.client
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crash.server_process import ServerProcess, until
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport

STORY_WITHIN_S = 240
TERMINAL = ("completed", "failed", "cancelled")

LONG_LINE = 10_000_000
FLOOD_LINES = 1_000_000
FLOOD_LINE = "%08d " + "x" * 90  # with its newline 100 bytes: 100 MB in all


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    made = ServerProcess(tmp_path / "data", gpus=0).start().wait_ready()
    try:
        yield made
    finally:
        made.stop()


def client_of(server: ServerProcess) -> Client:
    return Client(Transport(Endpoint(server.url, (server.data / "admin-token").read_text().strip())))


def run(server: ServerProcess, folder: Path, program: str) -> str:
    """The id of a job that ran `program` to its end."""
    (folder / "program.py").write_text(program)
    spec = f"job:\n  command: [python, {folder / 'program.py'}]\n  retry: {{limit: 0}}\n"
    with client_of(server) as client:
        job_id = client.submit("torture", spec)["id"]
        until("the job ends", lambda: client.job(job_id)["status"] in TERMINAL, STORY_WITHIN_S, 0.2)
        assert client.job(job_id)["status"] == "completed", client.job(job_id)
    return job_id


def printed(server: ServerProcess, job_id: str) -> Iterator[bytes]:
    """The log as curl would fetch it."""
    place = urlsplit(server.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    token = (server.data / "admin-token").read_text().strip()
    connection.request("GET", f"/v1/jobs/{job_id}/logs?format=text", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    assert answer.status == 200
    while piece := answer.read(1 << 20):
        yield piece
    connection.close()


def test_a_line_of_ten_megabytes_arrives_as_one_line(server: ServerProcess, tmp_path: Path) -> None:
    job_id = run(server, tmp_path, f"print('before')\nprint('y' * {LONG_LINE})\nprint('after')\n")
    assert b"".join(printed(server, job_id)) == b"before\n" + b"y" * LONG_LINE + b"\nafter\n"


def test_bytes_that_are_no_text_arrive_readable_and_complete(server: ServerProcess, tmp_path: Path) -> None:
    job_id = run(server, tmp_path, "import sys\nsys.stdout.buffer.write(bytes(range(128, 256)) + b'\\nend\\n')\n")
    shown = b"".join(printed(server, job_id)).decode()
    assert shown == "".join(f"\\x{byte:02x}" for byte in range(128, 256)) + "\nend\n"


def test_a_hundred_megabytes_arrive_whole_and_in_order(server: ServerProcess, tmp_path: Path) -> None:
    program = f"import sys\nfor n in range({FLOOD_LINES}):\n    sys.stdout.write({FLOOD_LINE!r} % n + '\\n')\n"
    job_id = run(server, tmp_path, program)
    expected, found = hashlib.sha256(), hashlib.sha256()
    for n in range(FLOOD_LINES):
        expected.update((FLOOD_LINE % n + "\n").encode())
    size = 0
    for piece in printed(server, job_id):
        found.update(piece)
        size += len(piece)
    assert size == FLOOD_LINES * 100
    assert found.hexdigest() == expected.hexdigest()
