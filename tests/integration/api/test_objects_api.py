"""The door of objects on the server's disk: signed addresses, over HTTP."""

import http.client
import logging
import os
import resource
import socket
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crucible.api.deps import ApiSettings
from crucible.model.storage import PIECE_BYTES, parse
from crucible.ports.objects import Method, Objects

from .conftest import Reply, Server, eventually

HOUR = timedelta(hours=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def objects(server: Server, folder: Path) -> Objects:
    return server.door.objects(parse(folder.as_uri()))


def path_of(server: Server, objects: Objects, method: Method, key: str, lives: timedelta = HOUR) -> str:
    (signed,) = server.run(objects.sign(method, [key], lives))
    assert signed.url.startswith(f"http://127.0.0.1:{server.port}/v1/objects/") and not signed.headers
    return urlsplit(signed.url).path


def test_an_address_lets_anybody_put_and_get(server: Server, objects: Objects, folder: Path) -> None:
    body = os.urandom(3 << 20)
    key = "parts/ü #1/00000"
    reply = server.call("PUT", path_of(server, objects, "PUT", key), None, body=body)
    assert (reply.status, reply.json) == (200, {"size_bytes": len(body)})
    assert (folder / key).read_bytes() == body
    reply = server.call("GET", path_of(server, objects, "GET", key), None)
    assert (reply.status, reply.body) == (200, body)
    assert reply.headers["Content-Length"] == str(len(body))


def test_a_body_without_a_length_is_taken_too(server: Server, objects: Objects, folder: Path) -> None:
    pieces = (b"x" * 100_000 for _ in range(20))
    assert server.call("PUT", path_of(server, objects, "PUT", "k"), None, body=pieces).status == 200
    assert (folder / "k").stat().st_size == 2_000_000


def test_part_of_an_object_can_be_asked_for(server: Server, objects: Objects) -> None:
    body = os.urandom(2_500_000)
    server.run(objects.put("k", body))
    path = path_of(server, objects, "GET", "k")

    def ranged(text: str) -> Reply:
        return server.call("GET", path, None, headers={"Range": text})

    for text, start, end in (("0-0", 0, 1), ("10-2000000", 10, 2_000_001), ("2499999-", 2_499_999, 2_500_000)):
        reply = ranged(f"bytes={text}")
        assert (reply.status, reply.body) == (206, body[start:end]), text
        assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/2500000"
    assert ranged("bytes=5-99999999").body == body[5:]
    beyond = ranged("bytes=2500000-")
    assert (beyond.status, beyond.headers["Content-Range"]) == (416, "bytes */2500000")
    for text in ("bytes=0-1,5-6", "lines=1-2", "bytes=x-y"):
        assert ranged(text).body == body, text


def test_an_absent_object_is_not_found(server: Server, objects: Objects) -> None:
    reply = server.call("GET", path_of(server, objects, "GET", "absent"), None)
    assert (reply.status, reply.json["error"]) == (404, "not_found")


def test_expired_and_forged_addresses_say_so_and_change_nothing(server: Server, objects: Objects, folder: Path) -> None:
    server.run(objects.put("k", b"old"))
    expired = path_of(server, objects, "PUT", "k", -timedelta(seconds=5))
    reply = server.call("PUT", expired, None, body=b"new")
    assert (reply.status, reply.json["error"]) == (403, "address_expired")
    assert "ask for a new one" in reply.json["message"]
    good = path_of(server, objects, "PUT", "k")
    for forged in (good[:-1] + ("0" if good[-1] != "0" else "1"), "/v1/objects/x", "/v1/objects/%C3%A9", good + ".x"):
        reply = server.call("PUT", forged, None, body=b"new")
        assert (reply.status, reply.json["error"]) == (403, "forbidden"), forged
    reply = server.call("GET", good, "admin")
    assert (reply.status, "signed for PUT" in reply.text) == (403, True)
    assert (folder / "k").read_bytes() == b"old"


def test_a_whole_piece_fits_and_little_more(server: Server, objects: Objects, folder: Path) -> None:
    path = path_of(server, objects, "PUT", "k")
    assert server.call("PUT", path, None, body=bytes(PIECE_BYTES)).status == 200
    limit = ApiSettings(version="").max_object_bytes
    headers = {"Content-Length": str(limit + 1)}
    assert server.call("PUT", path, None, body=b"", headers=headers).status == 413
    chunks = (bytes(1 << 20) for _ in range((limit >> 20) + 1))
    assert server.call("PUT", path, None, body=chunks).status == 413
    assert [file.name for file in folder.iterdir()] == ["k"]
    assert (folder / "k").stat().st_size == PIECE_BYTES


def test_a_sender_that_goes_away_leaves_nothing(server: Server, objects: Objects, folder: Path) -> None:
    path = path_of(server, objects, "PUT", "k")
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as sending:
        head = f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n"
        sending.sendall(head.encode() + bytes(2_000_000))
        eventually(lambda: folder.exists() and list(folder.iterdir()))
    eventually(lambda: not list(folder.iterdir()))
    assert server.call("GET", path_of(server, objects, "GET", "k"), None).status == 404


def test_a_full_disk_is_said_and_leaves_the_old_object(server: Server, objects: Objects, folder: Path) -> None:
    server.run(objects.put("k", b"old"))
    path = path_of(server, objects, "PUT", "k")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, limits[1]))
    try:
        reply = server.call("PUT", path, None, body=bytes(8 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (reply.status, reply.json["error"]) == (507, "storage_failed")
    assert [file.name for file in folder.iterdir()] == ["k"]
    assert (folder / "k").read_bytes() == b"old"


def test_an_address_is_not_written_into_the_log(
    server: Server, objects: Objects, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: object, **more: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("crucible.blobs.file_objects.FileObjects.head", broken)
    path = path_of(server, objects, "GET", "k")
    with caplog.at_level(logging.ERROR, "crucible.api"):
        assert server.call("GET", path, None).status == 500
    assert "/v1/objects/…" in caplog.text
    assert path.rpartition("/")[2] not in caplog.text


def test_two_requests_keep_one_connection(server: Server, objects: Objects) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        for number in range(3):
            connection.request("PUT", path_of(server, objects, "PUT", f"k{number}"), body=bytes(1 << 20))
            reply = connection.getresponse()
            assert (reply.status, reply.getheader("connection")) == (200, None)
            reply.read()
    finally:
        connection.close()
