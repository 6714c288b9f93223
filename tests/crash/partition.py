"""A network between nodes and their server that can be cut: a TCP proxy that holds back what it has in hand, in one
direction or both. Nobody is told, as with a real one; what was under way arrives when it is healed."""

import contextlib
import socket
import threading
from collections.abc import Iterator

CHUNK = 65536
BACKLOG = 128


class Partition:
    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._requests = threading.Event()  # set: they pass
        self._replies = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._sockets: list[socket.socket] = []
        self._is_over = False
        self.heal()
        threading.Thread(target=self._accept, daemon=True, name="partition").start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self, *, requests: bool = True, replies: bool = True) -> None:
        for passes, is_cut in ((self._requests, requests), (self._replies, replies)):
            passes.clear() if is_cut else passes.set()

    def heal(self) -> None:
        self._requests.set()
        self._replies.set()

    def close(self) -> None:
        self._is_over = True
        self.heal()
        for each in (self._listener, *self._sockets):
            shut(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_over:
                node, _ = self._listener.accept()
                self._sockets.append(node)
                threading.Thread(target=self._join, args=(node,), daemon=True, name="partition").start()

    def _join(self, node: socket.socket) -> None:
        """Even the first packet must come through."""
        self._requests.wait()
        try:
            server = socket.create_connection(self._server, timeout=5)
        except OSError:
            shut(node)
            return
        server.settimeout(None)
        self._sockets.append(server)
        threading.Thread(target=self._pass, args=(server, node, self._replies), daemon=True, name="partition").start()
        self._pass(node, server, self._requests)

    def _pass(self, source: socket.socket, target: socket.socket, passes: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                passes.wait()
                target.sendall(data)
        passes.wait()
        shut(source)
        shut(target)


def shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def partition(port: int) -> Iterator[Partition]:
    made = Partition(("127.0.0.1", port))
    try:
        yield made
    finally:
        made.close()
