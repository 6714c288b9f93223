"""What a machine printed, as its seller shows it: the last of it, in a file that cannot grow without end. A machine
that prints faster than anybody reads is held back."""

import asyncio
import os
from pathlib import Path

# What EC2 keeps.
KEPT_BYTES = 64 << 10
# The file is cut when it is so long, to what is kept.
MOST_BYTES = 4 * KEPT_BYTES
MOST_BYTES_PER_S = 1 << 20
BLOCK = 64 << 10


class Console:
    """Reads from the pipe `end`, which it closes at last."""

    def __init__(self, path: Path, end: int) -> None:
        self._path = path
        self._end = end
        self._length = 0
        self._this_second = 0
        self._loop = asyncio.get_running_loop()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._is_open = True
        os.set_blocking(end, False)
        self._loop.add_reader(end, self._read)

    def write(self, block: bytes) -> None:
        os.write(self._file, block)
        self._length += len(block)
        if self._length > MOST_BYTES:
            kept = os.pread(self._file, KEPT_BYTES, self._length - KEPT_BYTES)
            os.ftruncate(self._file, 0)
            os.write(self._file, kept)
            self._length = len(kept)

    def last(self) -> bytes:
        if not self._is_open:
            return _tail(self._path)
        return os.pread(self._file, KEPT_BYTES, max(0, self._length - KEPT_BYTES))

    def close(self) -> None:
        """Everything that was printed is read first."""
        if self._is_open:
            self._loop.remove_reader(self._end)
            for _ in range(MOST_BYTES_PER_S // BLOCK):
                if not self._take():
                    break
            self._is_open = False
            os.close(self._end)
            os.close(self._file)

    def _read(self) -> None:
        taken = self._take()
        if taken == 0:  # everybody who could print has ended
            self._loop.remove_reader(self._end)
        self._this_second += taken or 0
        if self._this_second > MOST_BYTES_PER_S:
            self._loop.remove_reader(self._end)
            self._loop.call_later(1.0, self._go_on)

    def _go_on(self) -> None:
        self._this_second = 0
        if self._is_open:
            self._loop.add_reader(self._end, self._read)

    def _take(self) -> int | None:
        """How many bytes it took; None if there are none now."""
        try:
            block = os.read(self._end, BLOCK)
        except BlockingIOError:
            return None
        if block:
            self.write(block)
        return len(block)


def _tail(path: Path) -> bytes:
    try:
        return path.read_bytes()[-KEPT_BYTES:]
    except OSError:
        return b""
