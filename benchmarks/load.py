"""Many clients at once, over plain sockets that stay open: little enough work that the server is what is measured."""

import socket
import threading
import time
from collections.abc import Callable, Sequence

from benchmarks.server import Server

CLIENTS = 8


def request(server: Server, method: str, path: str, body: bytes = b"") -> bytes:
    host, port = server.address
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}:{port}",
        f"Authorization: Bearer {server.token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def spread(server: Server, requests: Sequence[bytes], clients: int = CLIENTS) -> list[float]:
    """Send all of them, each client its share one after the other. Returns the seconds each took; any answer but a
    success is an error."""
    shares = [requests[n::clients] for n in range(clients)]
    took: list[list[float]] = [[] for _ in shares]
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            took[number] = _one_client(server.address, shares[number])
        except BaseException as error:
            errors.append(error)

    _all_at_once(work, clients)
    if errors:
        raise errors[0]
    return [seconds for share in took for seconds in share]


def _all_at_once(work: Callable[[int], None], clients: int) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _one_client(address: tuple[str, int], requests: Sequence[bytes]) -> list[float]:
    took = []
    with socket.create_connection(address, timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for one in requests:
            began = time.perf_counter()
            connection.sendall(one)
            _answer(connection)
            took.append(time.perf_counter() - began)
    return took


def _answer(connection: socket.socket) -> None:
    data = _more(connection)
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _more(connection)
    if not data.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(f"the server answered {data[:500]!r}")
    left = end + 4 + _length(data[:end]) - len(data)
    while left > 0:
        left -= len(_more(connection))


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 16)
    if not data:
        raise ConnectionError("the server closed the connection")
    return data


def _length(head: bytes) -> int:
    at = head.lower().index(b"content-length:") + len(b"content-length:")
    return int(head[at:].split(b"\r\n", 1)[0])
