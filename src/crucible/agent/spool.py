"""What a server still has to get of one rank's journal, in records with numbers.

The server's acknowledgement is the truth: reading goes on from there, whatever this process remembers. Only the number
with which the oldest kept segment begins is saved, since everything after it can be counted again."""

from __future__ import annotations

import json
import os
from collections import deque

from . import disk, epitaph, journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Deque, Dict, List, Optional

# The end of a log that goes into the report of a failure.
_LAST_LINES = 20
_LAST_CHARS = 4096
# `journal.drop_oldest` spares the two oldest segments: only from them may a record be sent.
_SENT_SEGMENTS = 2


class Spool:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._cursor = os.path.join(folder, "cursor.json")
        saved = disk.read_json(self._cursor) or {}
        self._segment: Optional[str] = saved.get("segment")
        # The number of the first record of the segment, of the frame at `_offset`, and of the one the server wants.
        self._segment_number = self._frame_number = self.acknowledged = int(saved.get("n", 0))
        self._offset = 0
        # Past the end of what was ever read; lines below were shown to `on_lines` already.
        self.read_to = self.acknowledged

    def batch(self, limit_bytes: int, on_lines: Optional[Callable[[List[str]], None]] = None) -> List[bytes]:
        """Records from the acknowledged one on, as JSON without brackets, until they pass `limit_bytes`.

        `on_lines` gets the text of every record once."""
        texts: List[bytes] = []
        size, n, offset = 0, self._frame_number, self._offset
        for segment in self._kept()[:_SENT_SEGMENTS]:
            for frame in journal.frames(self._path(segment), offset):
                if size >= limit_bytes:
                    return texts
                records = records_of(n, frame)
                n += len(records)
                offset += frame.size
                self._show(records, on_lines)
                wanted = [record for record in records if record["n"] >= self.acknowledged]
                if wanted:
                    texts.append(encode(wanted))
                    size += len(texts[-1])
            if self._after(segment, offset) is None:
                break
            offset = 0
        if not texts:
            # Everything there is lies below what the server has.
            self.acknowledge(self.acknowledged)
        return texts

    def acknowledge(self, n: int) -> None:
        """The server has everything below `n`. Deletes the segments that are no longer needed."""
        if n < self._frame_number:
            self._rewind(n)
        self.acknowledged = n
        kept = self._kept()
        while kept and not self._skip(kept[0], n) and self._after(kept[0], self._offset) is not None:
            if not self._move_to(kept[1]):
                return
            kept = self._kept()

    def is_empty(self) -> bool:
        """Nothing to send of what is written now."""
        kept = self._kept()
        return not kept or (len(kept) == 1 and self._size(kept[0]) <= self._offset)

    def last_lines(self) -> List[str]:
        frames: Deque[journal.Frame] = deque(maxlen=epitaph.LOOK_BACK_LINES)
        for segment in journal.segments(self._folder)[-2:]:
            frames.extend(journal.frames(self._path(segment), 0))
        lines = [record["x"] for frame in frames for record in records_of(0, frame)]
        return shorten(epitaph.telling(lines)[-_LAST_LINES:], _LAST_CHARS)

    def _show(self, records: List[Dict[str, Any]], on_lines: Optional[Callable[[List[str]], None]]) -> None:
        if on_lines is not None:
            on_lines([record["x"] for record in records if record["n"] >= self.read_to])
        self.read_to = max(self.read_to, records[-1]["n"] + 1)

    def _rewind(self, n: int) -> None:
        """The server has less than we thought. What is no longer here cannot be sent: then number on from `n`."""
        self._offset = 0
        if n < self._segment_number:
            self._segment_number = n
            self._save(self._segment, n)
        self._frame_number = self._segment_number

    def _skip(self, segment: str, n: int) -> bool:
        """Moves to the frame that holds record `n`; False if the segment ends before it."""
        for frame in journal.frames(self._path(segment), self._offset):
            if self._frame_number + frame.count > n:
                return True
            self._frame_number += frame.count
            self._offset += frame.size
        return False

    def _kept(self) -> List[str]:
        names = [name for name in journal.segments(self._folder) if self._segment is None or name >= self._segment]
        if names and self._segment is None:
            self._segment = names[0]
        return names

    def _after(self, segment: str, offset: int) -> Optional[str]:
        """The next segment, once `segment` is read to its end: the writer never returns to an older one."""
        later = [name for name in journal.segments(self._folder) if name > segment]
        return later[0] if later and self._size(segment) <= offset else None

    def _move_to(self, segment: str) -> bool:
        """False if the disk refuses the note of it: then nothing is deleted, and the next time is soon enough."""
        if not self._save(segment, self._frame_number):
            return False
        self._segment, self._segment_number, self._offset = segment, self._frame_number, 0
        with journal.Locked(self._folder):
            for name in journal.segments(self._folder):
                if name < segment:
                    os.unlink(self._path(name))
        return True

    def _save(self, segment: Optional[str], n: int) -> bool:
        try:
            disk.write_json(self._cursor, {"segment": segment, "n": n}, durable=True)
        except OSError:
            return False
        return True

    def _path(self, segment: str) -> str:
        return os.path.join(self._folder, segment)

    def _size(self, segment: str) -> int:
        try:
            return os.path.getsize(self._path(segment))
        except OSError:
            return 0


def records_of(n: int, frame: journal.Frame) -> List[Dict[str, Any]]:
    """The records a frame stands for, numbered from `n`. Bytes that are not UTF-8 become backslash escapes."""
    word = journal.WORDS[frame.stream]
    lines = frame.payload.decode("utf-8", "backslashreplace").split("\n")
    if not lines[-1]:
        lines.pop()
    at_ms = frame.at_ms
    records: List[Dict[str, Any]] = [{"n": i, "t": at_ms, "s": word, "x": line} for i, line in enumerate(lines, n)]
    if frame.is_piece:
        records[-1]["p"] = True
    return records


def encode(records: List[Dict[str, Any]]) -> bytes:
    return json.dumps(records, ensure_ascii=False, separators=(",", ":"))[1:-1].encode()


def shorten(lines: List[str], limit: int) -> List[str]:
    """The last lines that fit; the oldest one is cut in front."""
    kept: List[str] = []
    for line in reversed(lines):
        if limit <= 0:
            break
        kept.append(line[-limit:])
        limit -= len(kept[-1]) + 1
    return kept[::-1]
