"""The checkpoints that a rank says it saved, read from `events.jsonl` apart from everything else: metrics that wait for
a server must not keep them waiting. Which of them are settled is on disk."""

from __future__ import annotations

import os

from . import disk
from .events import MAX_LINE_BYTES, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional

_READ_BYTES = 1 << 20
_MARK = b'"checkpoint"'


class Save:
    def __init__(self, event: Dict[str, Any], end: int) -> None:
        # The process that says so: a launcher's rank has several. None of a program that does not tell.
        self.saver: Optional[int] = event.pop("saver", None)
        self.event = event
        # Where its line ends.
        self.end = end

    @property
    def step(self) -> int:
        return int(self.event["step"])

    @property
    def roundness(self) -> int:
        """Bits at the end of its step that are zero."""
        return (self.step & -self.step).bit_length() if self.step else 64


class Saves:
    def __init__(self, path: str) -> None:
        self._path = path
        self._note = path + ".carried"
        noted = disk.read_json(self._note) or {}
        self._offset = self._settled = int(noted.get("offset", 0))
        self._is_skipping = False
        # Of those that are in storage, what nobody may have heard of yet.
        self.reports: List[Dict[str, Any]] = list(noted.get("reports", []))

    def read(self) -> List[Save]:
        """Those that were added."""
        found: List[Save] = []
        while self._read(found):
            pass
        return found

    def settle(self, save: Optional[Save], reports: List[Dict[str, Any]]) -> None:
        """Up to this one all are in storage, or never will be; None: an earlier one still waits. Raises OSError."""
        settled = self._settled if save is None else save.end
        disk.write_json(self._note, {"offset": settled, "reports": reports}, durable=True)
        self._settled = settled

    def _read(self, found: List[Save]) -> bool:
        try:
            if os.path.getsize(self._path) <= self._offset:
                return False
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except OSError:
            return False
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) <= MAX_LINE_BYTES:
            return False
        if end == 0:
            # One endless line: pass over it.
            self._is_skipping, end = True, len(data)
        else:
            self._take(data[:end], found)
        self._offset += end
        return True

    def _take(self, data: bytes, found: List[Save]) -> None:
        at = self._offset
        for line in data.split(b"\n")[:-1]:
            at += len(line) + 1
            event = parse(line) if _MARK in line and not self._is_skipping else None
            self._is_skipping = False
            if event is not None and event.pop("type") == "checkpoint":
                found.append(Save(event, at))
