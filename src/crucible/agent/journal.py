"""What a rank printed, on disk until the server has it: a folder of segments, each a sequence of frames.

One supervisor writes, one agent reads; either may be killed at any moment. A frame holds whole lines, or one piece of
a line that was too long or too slow to wait for, so the records it stands for never depend on who reads it or when.
A segment is named after the number of records written before it. Segments the server has are deleted; when the rest
passes a limit the oldest is replaced by one record that says how much is missing, so the numbers stay gapless."""

from __future__ import annotations

import fcntl
import os
import struct

from .cutter import MAX_LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Tuple

# Deleting needs whole segments, and the reader must not have more than two in flight: larger than any report.
SEGMENT_BYTES = 8 << 20
# What one rank may keep on disk while no server takes it.
LIMIT_BYTES = 1 << 30

OUT, ERR, SYS = b"o", b"e", b"s"
WORDS = {OUT: "out", ERR: "err", SYS: "sys"}

# stream, 1 if the last line is only a piece, number of records, bytes of payload, milliseconds since 1970
HEADER = struct.Struct(">sBIIQ")
# No honest frame is larger: one read plus one held line.
_LARGEST_FRAME = 4 * MAX_LINE_BYTES


def records_in(payload: bytes) -> int:
    return payload.count(b"\n") + (not payload.endswith(b"\n"))


class Frame:
    __slots__ = ("at_ms", "count", "is_piece", "payload", "size", "stream")

    def __init__(self, stream: bytes, is_piece: bool, count: int, at_ms: int, payload: bytes) -> None:
        self.stream = stream
        self.is_piece = is_piece
        self.count = count
        self.at_ms = at_ms
        self.payload = payload
        self.size = HEADER.size + len(payload)


class Writer:
    """Appends frames. A disk that refuses costs output, counted and said, never the rank."""

    def __init__(self, folder: str, segment_bytes: int = SEGMENT_BYTES, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._limit_bytes = limit_bytes
        self._records = 0
        self._file = -1
        self._size = 0
        self._lost_bytes = 0
        os.makedirs(folder, mode=0o700, exist_ok=True)

    def append(self, stream: bytes, payload: bytes, is_piece: bool, at_ms: int) -> None:
        self._tell_loss(at_ms)
        if not self._write(stream, payload, is_piece, at_ms):
            self._lost_bytes += len(payload)

    def close(self, at_ms: int) -> None:
        self._tell_loss(at_ms)
        self._close_segment()

    def _tell_loss(self, at_ms: int) -> None:
        words = b"%d bytes of output were lost here: the disk of the node refused them\n" % self._lost_bytes
        if self._lost_bytes and self._write(SYS, words, False, at_ms):
            self._lost_bytes = 0

    def _write(self, stream: bytes, payload: bytes, is_piece: bool, at_ms: int) -> bool:
        data = pack(stream, payload, is_piece, at_ms)
        try:
            if self._file < 0 or self._size >= self._segment_bytes:
                self._open_segment()
            written = os.write(self._file, data)
            if written < len(data):
                os.ftruncate(self._file, self._size)
                return False
        except OSError:
            return False
        self._size += len(data)
        self._records += records_in(payload)
        return True

    def _open_segment(self) -> None:
        path = os.path.join(self._folder, "%015d" % self._records)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._close_segment()
        self._file, self._size = file, 0
        try:
            with Locked(self._folder):
                drop_oldest(self._folder, self._limit_bytes)
        except OSError:
            pass  # a full disk has no room for the note either; the next segment tries again

    def _close_segment(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def add_line(folder: str, text: str, at_ms: int) -> None:
    """A line of the agent's at the end of a log that nobody writes any more. A disk that refuses costs the line."""
    names = segments(folder)
    line = text.replace("\n", " ").encode("utf-8", "replace")[:MAX_LINE_BYTES] + b"\n"
    try:
        with open(os.path.join(folder, names[-1] if names else "%015d" % 0), "ab", buffering=0) as file:
            file.write(pack(SYS, line, False, at_ms))
    except OSError:
        pass


def pack(stream: bytes, payload: bytes, is_piece: bool, at_ms: int) -> bytes:
    return HEADER.pack(stream, is_piece, records_in(payload), len(payload), at_ms) + payload


def segments(folder: str) -> List[str]:
    """Names, oldest first."""
    try:
        return sorted(name for name in os.listdir(folder) if name.isdigit())
    except OSError:
        return []


class Locked:
    """The writer drops and the reader deletes segments, never at the same time."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._folder, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def drop_oldest(folder: str, limit_bytes: int) -> None:
    """Replaces whole segments by one record until the rest fits.

    The two oldest are spared, because what the reader has sent without an answer lies there, and a number that was
    ever sent must keep its meaning; so is the newest, which is being written."""
    names = segments(folder)
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in names}
    droppable = names[2:-1]
    while sum(sizes.values()) > limit_bytes and droppable:
        # The first may already stand for earlier losses: it then swallows its neighbour, so that one record remains.
        first = droppable[0]
        bytes_before, lines_before = _read_gap(os.path.join(folder, first))
        victim = droppable[1] if bytes_before and len(droppable) > 1 else first
        if bytes_before and victim == first:
            return
        payload_bytes, lines = _measure(os.path.join(folder, victim))
        sizes[first] = _write_gap(os.path.join(folder, first), bytes_before + payload_bytes, lines_before + lines)
        if victim != first:
            os.unlink(os.path.join(folder, victim))
            del sizes[victim]
            droppable.remove(victim)


_GAP = b" bytes of output were dropped here ("
_GAP_END = b" lines): no server took them and the spool of the node was full\n"


def _write_gap(path: str, lost_bytes: int, lost_lines: int) -> int:
    at_ms = next(frames(path, 0)).at_ms
    data = pack(SYS, b"%d%s%d%s" % (lost_bytes, _GAP, lost_lines, _GAP_END), False, at_ms)
    temporary = path + ".tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)
    return len(data)


def _read_gap(path: str) -> Tuple[int, int]:
    """Bytes and lines that the segment already stands for; zeros if it is an ordinary one."""
    if os.path.getsize(path) > 4096:
        return 0, 0
    first = next(frames(path, 0))
    if first.stream != SYS or not first.payload.endswith(_GAP_END):
        return 0, 0
    lost_bytes, _, rest = first.payload.partition(_GAP)
    return int(lost_bytes), int(rest[: -len(_GAP_END)])


def _measure(path: str) -> Tuple[int, int]:
    payload_bytes = lines = 0
    for each in frames(path, 0):
        payload_bytes += len(each.payload)
        lines += each.count
    return payload_bytes, lines


def frames(path: str, offset: int) -> Iterator[Frame]:
    """Whole frames from `offset` on. Ends at the first that is torn or not there yet."""
    try:
        file = open(path, "rb")  # noqa: SIM115 (closed below)
    except FileNotFoundError:
        return
    with file:
        file.seek(offset)
        while True:
            head = file.read(HEADER.size)
            if len(head) < HEADER.size:
                return
            stream, is_piece, count, size, at_ms = HEADER.unpack(head)
            if stream not in WORDS or size > _LARGEST_FRAME:
                return
            payload = file.read(size)
            if len(payload) < size:
                return
            yield Frame(stream, bool(is_piece), count, at_ms, payload)
