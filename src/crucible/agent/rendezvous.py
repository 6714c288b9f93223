"""A TCP port kept free for the ranks of this node: bound so that nobody else is given it, never listened on, and let go
just before the ranks start."""

from __future__ import annotations

import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class Rendezvous:
    def __init__(self, port: int = 0) -> None:
        """With 0 the system chooses. Raises OSError."""
        self._socket: Optional[socket.socket] = _bind(port)
        self.port: int = port if self._socket is None else self._socket.getsockname()[1]

    def release(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def hold(self) -> bool:
        """Again, when no rank runs; False if somebody else has the port now."""
        if self._socket is None:
            self._socket = _bind(self.port)
        return self._socket is not None


def _bind(port: int) -> Optional[socket.socket]:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Connections of earlier ranks may still linger on it.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        # Ranks listen on every address, so that is what must be free.
        sock.bind(("", port))
    except OSError:
        sock.close()
        if port == 0:
            raise
        return None
    return sock
