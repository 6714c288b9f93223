"""Where the output of a process is cut: whole lines as soon as they are there, pieces of a line that is too long or
too slow. It never looks at a clock or a file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

# A longer line is cut into pieces; the protocol's MAX_LINE_BYTES.
MAX_LINE_BYTES = 64 << 10
# An unfinished line is released as a piece when its first byte is this old.
FLUSH_AFTER_S = 1.0


class Cutter:
    """Turns the bytes of one stream into the payloads of frames."""

    def __init__(self) -> None:
        self._held = b""
        self._since = 0.0

    def feed(self, data: bytes, now: float) -> List[Tuple[bytes, bool]]:
        """Payloads that are ready, each with whether it is only a piece. `data` is at most MAX_LINE_BYTES."""
        if not self._held:
            self._since = now
        data = self._held + data
        end = data.rfind(b"\n") + 1
        lines, self._held = data[:end], data[end:]
        ready: List[Tuple[bytes, bool]] = []
        # Only the first line can be too long: the others arrived in one read.
        while lines.find(b"\n") > MAX_LINE_BYTES:
            piece = lines[: _boundary(lines, MAX_LINE_BYTES)]
            ready.append((piece, True))
            lines = lines[len(piece) :]
        if lines:
            ready.append((lines, False))
            self._since = now
        while len(self._held) > MAX_LINE_BYTES:
            ready.append((self._release(_boundary(self._held, MAX_LINE_BYTES)), True))
        return ready

    def flush_at(self) -> float:
        """When the unfinished line becomes due; infinite if there is none."""
        return self._since + FLUSH_AFTER_S if self._held else float("inf")

    def flush(self, now: float) -> List[Tuple[bytes, bool]]:
        """The unfinished line, without the first bytes of a character whose rest has not come."""
        self._since = now
        size = _boundary(self._held, len(self._held))
        return [(self._release(size), True)] if size else []

    def end(self) -> List[Tuple[bytes, bool]]:
        """The last line, which nobody ended."""
        return [(self._release(len(self._held)), False)] if self._held else []

    def _release(self, size: int) -> bytes:
        piece, self._held = self._held[:size], self._held[size:]
        return piece


def _boundary(data: bytes, size: int) -> int:
    """The largest cut of at most `size` that does not split a UTF-8 character; `size` itself if it is not UTF-8."""
    for back in range(1, min(4, size) + 1):
        byte = data[size - back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return size - back if needed > back and size > back else size
        if byte < 0x80:
            break
    return size
