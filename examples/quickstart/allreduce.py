"""Sums vectors over all ranks through TCP: rank 0 adds them up in the order of the ranks and sends the sum to everyone,
so every rank computes with the same bits. A peer that is lost ends the training at once."""

import socket
import struct
import time

import numpy as np

CONNECT_S = 30.0  # ranks start within seconds of each other
HELLO_S = 5.0  # a rank says who it is at once
PATIENCE_S = 60.0  # no step takes so long: the peer hangs
HELLO = struct.Struct("!II")  # attempt, rank: a rank of an earlier attempt must not take part


class Gang:
    """All ranks of one attempt. With one rank it needs no network."""

    def __init__(self, rank: int, world_size: int, attempt: int, address: str, port: int) -> None:
        self.rank = rank
        self._peers: list[socket.socket] = []
        if world_size > 1 and rank == 0:
            self._peers = _accept(world_size, attempt, address, port)
        elif world_size > 1:
            self._peers = [_connect(rank, attempt, address, port)]

    def sum(self, vector: np.ndarray) -> np.ndarray:
        """The sum of everyone's `vector`. Raises ConnectionError when a peer is lost."""
        if self.rank == 0:
            total = vector.copy()
            for peer in self._peers:
                total += _receive(peer, vector.size)
            for peer in self._peers:
                peer.sendall(total.tobytes())
            return total
        self._peers[0].sendall(vector.tobytes())
        return _receive(self._peers[0], vector.size)


def _accept(world_size: int, attempt: int, address: str, port: int) -> list[socket.socket]:
    peers: dict[int, socket.socket] = {}
    deadline = time.monotonic() + CONNECT_S
    with socket.create_server((address, port), backlog=world_size) as server:  # sets SO_REUSEADDR
        while len(peers) < world_size - 1:
            server.settimeout(max(0.01, deadline - time.monotonic()))
            peer, _ = server.accept()
            rank = _greet(peer, attempt)
            if rank is None:
                peer.close()
            else:
                peers[rank] = peer
    return [peers[rank] for rank in sorted(peers)]


def _greet(peer: socket.socket, attempt: int) -> int | None:
    """The rank of a peer; None for a stranger."""
    peer.settimeout(HELLO_S)
    try:
        its_attempt, its_rank = HELLO.unpack(_read(peer, HELLO.size))
    except (ConnectionError, TimeoutError):
        return None
    peer.settimeout(PATIENCE_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return its_rank if its_attempt == attempt else None


def _connect(rank: int, attempt: int, address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + CONNECT_S
    while True:
        try:
            peer = socket.create_connection((address, port), timeout=PATIENCE_S)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.sendall(HELLO.pack(attempt, rank))
    return peer


def _receive(peer: socket.socket, size: int) -> np.ndarray:
    return np.frombuffer(_read(peer, size * 8), dtype=np.float64)


def _read(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise ConnectionError("a peer has gone")
        data += piece
    return bytes(data)
