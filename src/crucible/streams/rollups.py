"""Samples added up, on files: `<task>/metrics.60-000000.seg` and on. Plain blocking file work; what is added up, and
when, is decided elsewhere. Whoever writes holds the lock of the files.

    [rank, start_ms, name, count, invalid, low, high, total, last, last_ms, step]     one stretch, as JSON
    =	offset	lowest start	highest start                                         ends a block

A block is written at once. Its last line says up to which offset of the stream everything is in the blocks so far: what
a crash left without that line was never there, and is taken away by whoever writes next. One stretch may be in several
blocks: readers add them up."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from crucible.core.rollup import Buckets, put
from crucible.model.metrics import Bucket
from crucible.streams.segments import SegmentFiles

# A file is followed by the next one when it has reached this size, so that old ones can go.
FILE_BYTES = 4 << 20
# Read at a time.
BLOCK_BYTES = 1 << 20
_END = b"=\t"


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the last whole block ends, and what it says."""

    number: int = 0
    size: int = 0  # bytes of whole blocks in that file
    offset: int = 0  # of the stream: everything before is added up
    lowest_ms: int | None = None  # starts in that file
    highest_ms: int | None = None


class Rollup:
    """One resolution of one stream."""

    def __init__(self, folder: Path, channel: str, resolution_ms: int, file_bytes: int = FILE_BYTES) -> None:
        self.resolution_ms = resolution_ms
        self.files = SegmentFiles(folder, f"{channel}.{resolution_ms // 1000}")
        self._file_bytes = file_bytes

    def mark(self) -> Mark:
        for number in reversed(self.files.numbers()):
            found = self._mark_in(number)
            if found is not None:
                return found
        return Mark()

    def append(self, mark: Mark, buckets: Buckets, offset: int) -> Mark:
        """A block behind `mark`, which was read under the lock."""
        if mark.size >= self._file_bytes:
            mark = Mark(mark.number + 1, 0, mark.offset)
        if self.files.size(mark.number) > mark.size:
            self.files.truncate(mark.number, mark.size)  # what a crash left
        starts = [start for _, _, start in buckets]
        low = min([*starts, *([] if mark.lowest_ms is None else [mark.lowest_ms])], default=None)
        high = max([*starts, *([] if mark.highest_ms is None else [mark.highest_ms])], default=None)
        lines = [_encode(rank, name, bucket) for (rank, name, _), bucket in sorted(buckets.items())]
        block = b"".join(lines) + f"=\t{offset}\t{_text(low)}\t{_text(high)}\n".encode()
        self.files.append(mark.number, mark.size, block)
        return Mark(mark.number, mark.size + len(block), offset, low, high)

    def read(self, from_ms: int | None, to_ms: int | None, names: Collection[str] | None) -> tuple[Buckets, int]:
        """Stretches that may be in the range, and the offset up to which they are complete."""
        found: Buckets = {}
        offset = 0
        for number in self.files.numbers():
            mark = self._mark_in(number)
            if mark is None:
                continue
            offset = mark.offset
            if self._is_outside(mark, from_ms, to_ms):
                continue
            for rank, name, bucket in self._lines(number, mark.size):
                if names is None or name in names:
                    put(found, rank, name, bucket)
        return found, offset

    def remove_older(self, than_s: float) -> int:
        """Files that nobody has written to since; the one with the mark stays."""
        last = self.mark().number
        old = [n for n in self.files.numbers() if n < last and self.files.changed_s(n) < than_s]
        for number in old:
            self.files.remove(number)
        return len(old)

    def _is_outside(self, mark: Mark, from_ms: int | None, to_ms: int | None) -> bool:
        if mark.lowest_ms is None or mark.highest_ms is None:
            return True
        is_over = from_ms is not None and mark.highest_ms + self.resolution_ms <= from_ms
        return is_over or (to_ms is not None and mark.lowest_ms >= to_ms)

    def _mark_in(self, number: int) -> Mark | None:
        """Backwards: the last line that ends a block. None if the file has none."""
        rest = b""
        for start, block in self.files.backwards(number, self.files.size(number)):
            data = block + rest
            whole = data.rfind(b"\n") + 1
            at = max(data.rfind(b"\n" + _END, 0, whole) + 1, 0 if start == 0 and data.startswith(_END) else -1)
            if data[at : at + 2] == _END and (end := data.find(b"\n", at)) >= 0:
                return _mark(number, start + end + 1, data[at:end])
            rest = data
        return None

    def _lines(self, number: int, size: int) -> Iterator[tuple[int, str, Bucket]]:
        position = 0
        while position < size:
            begin, data = self.files.read_lines(number, position, size, BLOCK_BYTES)
            if not data:
                return
            for line in data.splitlines():
                if not line.startswith(_END):
                    yield _decode(line)
            position = begin + len(data)


def _mark(number: int, size: int, line: bytes) -> Mark:
    _, offset, low, high = line.split(b"\t")
    return Mark(number, size, int(offset), int(low) if low else None, int(high) if high else None)


def _text(value: int | None) -> str:
    return "" if value is None else str(value)


def _encode(rank: int, name: str, one: Bucket) -> bytes:
    # Floats come back as they were; NaN and the infinities too, which only the standard library's JSON can write.
    fields = (
        rank,
        one.start_ms,
        name,
        one.count,
        one.invalid,
        one.low,
        one.high,
        one.total,
        one.last,
        one.last_ms,
        one.step,
    )
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _decode(line: bytes) -> tuple[int, str, Bucket]:
    rank, start, name, count, invalid, low, high, total, last, last_ms, step = json.loads(line)
    return rank, name, Bucket(start, count, invalid, low, high, total, last, last_ms, step)
