"""What a signed PUT carries: bytes, or spans of files that the kernel sends by itself where it can."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Callable, List, Tuple, Union

    from .output_tree import Body as Tree

    # A file, where its bytes begin, and how many there are.
    Span = Tuple[str, int, int]
    Body = Union["Bytes", "Files", Tree]
    Moved = Callable[[int], None]

# Handed to the kernel in one call, and counted as moved when it is done.
_SEND_BYTES = 4 << 20
_BLOCK_BYTES = 1 << 20


class Unreadable(Exception):
    """A file of what is sent is not what it was."""


class Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def send(self, sock: socket.socket, is_plain: bool, on_moved: Moved) -> None:
        sock.sendall(self._data)
        on_moved(self.size)


class Files:
    """Spans one after another, as one object."""

    def __init__(self, spans: List[Span]) -> None:
        self._spans = spans
        self.size = sum(size for _, _, size in spans)

    def send(self, sock: socket.socket, is_plain: bool, on_moved: Moved) -> None:
        """Raises Unreadable for trouble with a file; OSError is the line's."""
        if len(self._spans) > 1:
            self._send_together(sock, on_moved)
            return
        ((path, offset, size),) = self._spans
        file = _open(path)
        try:
            send_file(sock, file, path, offset, size, is_plain, on_moved)
        finally:
            os.close(file)

    def _send_together(self, sock: socket.socket, on_moved: Moved) -> None:
        """Small files: a call for each would cost more than their bytes."""
        held = bytearray()
        for path, offset, size in self._spans:
            file = _open(path)
            try:
                held += _read(file, path, offset, size)
            finally:
                os.close(file)
            if len(held) >= _BLOCK_BYTES:
                sock.sendall(held)
                on_moved(len(held))
                held = bytearray()
        sock.sendall(held)
        on_moved(len(held))


def send_file(
    sock: socket.socket, file: int, path: str, offset: int, size: int, is_plain: bool, on_moved: Moved
) -> None:
    """Raises Unreadable for trouble with the file; OSError is the line's."""
    if is_plain:
        _send_by_kernel(sock, file, path, offset, size, on_moved)
    else:
        _send_by_blocks(sock, file, path, offset, size, on_moved)


def _send_by_kernel(sock: socket.socket, file: int, path: str, offset: int, size: int, on_moved: Moved) -> None:
    with os.fdopen(os.dup(file), "rb", buffering=0) as source:
        end = offset + size
        while offset < end:
            sent = sock.sendfile(source, offset, min(_SEND_BYTES, end - offset))
            if not sent:
                raise Unreadable("%s ends too early" % path)
            offset += sent
            on_moved(sent)


def _send_by_blocks(sock: socket.socket, file: int, path: str, offset: int, size: int, on_moved: Moved) -> None:
    end = offset + size
    while offset < end:
        block = _read(file, path, offset, min(_BLOCK_BYTES, end - offset))
        sock.sendall(block)
        offset += len(block)
        on_moved(len(block))


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise Unreadable(str(error)) from error


def _read(file: int, path: str, offset: int, size: int) -> bytes:
    try:
        data = os.pread(file, size, offset)
    except OSError as error:
        raise Unreadable(str(error)) from error
    if len(data) != size:
        raise Unreadable("%s ends too early" % path)
    return data
