"""R13: a server that is told to stop ends long polls and followers at once, lets requests finish, and never hangs."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from crucible.api.app import ApiSettings
from crucible.ports.streams import LogLine

from .conftest import Server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    server = Server(folder=tmp_path, settings=ApiSettings(version="1", providers=("fake",)))
    server.start()
    yield server
    if server.is_running:
        server.stop()


def test_long_polls_followers_and_sockets_end_at_once(own_server: Server) -> None:
    server = own_server
    agent = server.agent(server.submit()).begin()
    version = server.call("GET", "/agent/v1/work", agent.key).json["version"]
    answers: dict[str, Any] = {}

    def poll() -> None:
        answers["poll"] = server.call("GET", f"/agent/v1/work?seen={version}&wait=60", agent.key).status

    def follow() -> None:
        response, connection = server.open(f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true")
        answers["log"] = response.read()
        connection.close()

    def watch() -> None:
        url = f"ws://127.0.0.1:{server.port}/v1/jobs/{agent.launch['job_id']}/stream"
        with connect(url, additional_headers={"Authorization": f"Bearer {server.tokens['alice']}"}) as socket_:
            answers["first"] = json.loads(socket_.recv())
            try:
                while True:
                    answers["cursor"] = json.loads(socket_.recv())["cursor"]
            except ConnectionClosed as closed:
                answers["code"] = closed.rcvd.code if closed.rcvd else None

    agent.report("a line")
    threads = [threading.Thread(target=work) for work in (poll, follow, watch)]
    before = server.tasks()
    for thread in threads:
        thread.start()
    while server.tasks() < before + 4 or "cursor" not in answers:
        time.sleep(0.01)
    assert server.stop() < 3
    for thread in threads:
        thread.join(10)
    assert answers["poll"] in (200, 429)
    assert answers["log"] == b"a line\n"
    assert answers["code"] in (1001, 1012)


def test_a_request_under_way_is_finished(own_server: Server) -> None:
    import hashlib

    content = b"x" * 300_000
    digest = hashlib.sha256(content).hexdigest()
    connection = http.client.HTTPConnection("127.0.0.1", own_server.port, timeout=20)
    connection.putrequest("PUT", f"/v1/packages/{digest}")
    connection.putheader("Authorization", f"Bearer {own_server.tokens['alice']}")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders()
    connection.send(content[:100_000])
    before = own_server.tasks()
    stopping = threading.Thread(target=own_server.stop)
    stopping.start()
    while own_server.accepts():
        time.sleep(0.01)
    connection.send(content[100_000:])
    assert connection.getresponse().status == 201
    connection.close()
    stopping.join(20)
    assert not stopping.is_alive() and before


def test_readers_that_do_not_read_cannot_hold_it_up(own_server: Server) -> None:
    server = own_server
    agent = server.agent(server.submit()).begin()
    path = f"/v1/jobs/{agent.launch['job_id']}"
    head = f"Host: localhost\r\nAuthorization: Bearer {server.tokens['alice']}\r\n"
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    stuck = []
    for request in (
        f"GET {path}/stream HTTP/1.1\r\n{head}{upgrade}\r\n",
        f"GET {path}/logs?follow=true HTTP/1.1\r\n{head}\r\n",
    ):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request.encode())
        stuck.append(client)
    for n in range(200):
        lines = [LogLine(0, 0, n * 100 + i, 1, "out", "z" * 1000) for i in range(100)]
        server.run(server.append(agent.launch, lines))
    assert server.stop() < 12
    for client in stuck:
        client.close()
