"""What `crucible.train` appends to `events.jsonl`: metrics, progress, checkpoints. One JSON object per line.

Metrics are numbered by their place among the valid metric lines, so reading the file again gives the same numbers. A
line that cannot be meant is skipped; job code writes this file, so nothing in it is trusted."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import deque

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Optional, Tuple

# Longer lines are not ours: checkpoint metadata is small, metrics are few.
MAX_LINE_BYTES = 256 << 10
# Read no further while so much waits for a server; the file itself is the spool.
_MAX_WAITING_BYTES = 8 << 20
_READ_BYTES = 1 << 20
# The place is saved so often that a restart reads at most about this much again.
_SAVE_EVERY_BYTES = 256 << 10
_MAX_VALUES = 1000
_MAX_NAME = 256
_MAX_URI = 4096
_LARGEST = 2**63 - 1
# The protocol's MAX_SHARDS.
MAX_SHARDS = 65_536
_SHA256 = re.compile("[0-9a-f]{64}")


class Events:
    def __init__(self, path: str, carried: Optional[List[Dict[str, Any]]] = None) -> None:
        """Checkpoints are reported as soon as they are read, unless an agent carries them to storage first: `carried`
        are those that it had there, and nobody has heard of."""
        self._path = path
        self._is_carried = carried is not None
        self._cursor = path + ".cursor"
        saved = disk.read_json(self._cursor) or {}
        self._offset = self._saved_offset = self._size_read = int(saved.get("offset", 0))
        # The number of the first waiting metric; and how many more lie ahead that the server already has.
        self.acknowledged = int(saved.get("metrics", 0))
        self._known = 0
        # With the length of their lines.
        self._metrics: Deque[Tuple[Dict[str, Any], int]] = deque()
        self._waiting_bytes = 0
        self._is_skipping = False
        self.checkpoints: List[Dict[str, Any]] = list(carried or [])
        self.progress: Optional[Dict[str, Any]] = None
        self.is_checkpointing = False
        # Lines that could not be meant.
        self.refused = 0

    def read(self) -> None:
        """Takes the lines that are complete."""
        if self._waiting_bytes >= _MAX_WAITING_BYTES:
            return
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read(_READ_BYTES)
        except OSError:
            return
        self._size_read = self._offset + len(data)
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) > MAX_LINE_BYTES:
            # One endless line: pass over what is there, and over the rest of it later.
            self._is_skipping, end = True, len(data)
        elif end:
            lines = data[:end].split(b"\n")[:-1]
            self._take(lines[1:] if self._is_skipping else lines)
            self._is_skipping = False
        self._offset += end

    def metrics(self, limit_bytes: int) -> List[Dict[str, Any]]:
        """The first that wait, numbered: as many as fit, at least one."""
        first: List[Dict[str, Any]] = []
        for record, size in self._metrics:
            if limit_bytes <= 0:
                break
            limit_bytes -= size
            first.append(dict(record, n=self.acknowledged + len(first)))
        return first

    def first_checkpoints(self, limit_bytes: int) -> List[Dict[str, Any]]:
        """As many as fit, at least one."""
        first: List[Dict[str, Any]] = []
        for event in self.checkpoints:
            if limit_bytes <= 0:
                break
            limit_bytes -= len(json.dumps(event))
            first.append(event)
        return first

    def acknowledge(self, n: int) -> None:
        """The server has the metrics below `n`; if it has less than we thought, number on from there."""
        self._known += max(0, n - self.acknowledged - len(self._metrics))
        for _ in range(min(n - self.acknowledged, len(self._metrics))):
            self._waiting_bytes -= self._metrics.popleft()[1]
        self.acknowledged = n
        self._save()

    def deliver(self, checkpoints: List[Dict[str, Any]]) -> None:
        """A report with these was taken."""
        self.checkpoints = [each for each in self.checkpoints if each not in checkpoints]
        self._save()

    def has_news(self) -> bool:
        """A cheap look, made often: something waits, or something was written since the last reading."""
        return bool(self._metrics or self.checkpoints) or _size(self._path) > self._size_read

    def is_empty(self) -> bool:
        """Nothing to send of what is written now, except an unfinished line."""
        return not self._metrics and not self.checkpoints and self._unread() == 0

    def _unread(self) -> int:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                return file.read(_READ_BYTES).rfind(b"\n") + 1
        except OSError:
            return 0

    def _save(self) -> None:
        if self._metrics or self.checkpoints or self._known or self._is_skipping:
            return
        if self._offset - self._saved_offset >= _SAVE_EVERY_BYTES:
            self._saved_offset = self._offset
            try:
                disk.write_json(self._cursor, {"offset": self._offset, "metrics": self.acknowledged})
            except OSError:
                pass  # an older place is as good, only slower

    def _take(self, lines: List[bytes]) -> None:
        for line in lines:
            event = parse(line)
            if event is None:
                self.refused += bool(line.strip())
                continue
            kind = event.pop("type")
            if kind == "metrics":
                self._take_metrics(event, len(line))
            elif kind == "progress":
                self.progress = event
            elif kind in ("checkpoint_began", "checkpoint_failed"):
                self.is_checkpointing = kind == "checkpoint_began"
            else:
                self.is_checkpointing = False
                event.pop("saver", None)
                if not self._is_carried:
                    self.checkpoints.append(event)

    def _take_metrics(self, event: Dict[str, Any], size: int) -> None:
        if self._known:
            self._known -= 1
        else:
            self._metrics.append((event, size))
            self._waiting_bytes += size


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def parse(line: bytes) -> Optional[Dict[str, Any]]:
    """The event as a report says it, with its type; None if it cannot be meant."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    reader = _READERS.get(str(event.get("type")))
    parsed = None if reader is None else reader(event)
    return None if parsed is None else dict(parsed, type=event["type"])


def _metrics(event: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    values = event.get("values")
    if not isinstance(values, dict) or not values or len(values) > _MAX_VALUES:
        return None
    finite = {name: _number(value) for name, value in values.items() if len(name) <= _MAX_NAME}
    return {"t": _time(event), "step": _integer(event.get("step")), "v": finite}


def _progress(event: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    step, total = _integer(event.get("step")), _integer(event.get("total"))
    fraction = _number(event.get("fraction"))
    if step is None and fraction is None:
        return None
    return progress(step, total, fraction)


def progress(step: Optional[int], total: Optional[int], fraction: Optional[float]) -> Dict[str, Any]:
    if fraction is None and step is not None and total:
        fraction = step / total
    clipped = None if fraction is None else min(1.0, max(0.0, fraction))
    return {"step": step, "total_steps": total, "fraction": clipped}


def _nothing_more(event: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    return {}


def _checkpoint(event: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    step, size, uri = _integer(event.get("step")), _integer(event.get("size_bytes")), event.get("uri")
    digest, metadata = event.get("manifest_sha256"), event.get("metadata") or {}
    if step is None or size is None or not isinstance(uri, str) or not 0 < len(uri) <= _MAX_URI:
        return None
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest) or not isinstance(metadata, dict):
        return None
    shard, shards = _integer(event.get("shard", 0)), _integer(event.get("shards", 1))
    if shard is None or shards is None or not shard < shards <= MAX_SHARDS:
        return None
    parsed = {
        "step": step,
        "uri": uri,
        "size_bytes": size,
        "manifest_sha256": digest,
        "metadata": _plain(metadata),
        "at_ms": _time(event),
        "shard": shard,
        "shards": shards,
    }
    saver = _integer(event.get("rank"))
    return parsed if saver is None else dict(parsed, saver=saver)


_READERS = {
    "metrics": _metrics,
    "progress": _progress,
    "checkpoint_began": _nothing_more,
    "checkpoint_failed": _nothing_more,
    "checkpoint": _checkpoint,
}


def _number(value: object) -> Optional[float]:
    """None for what JSON cannot say: a diverged loss is reported as missing, not as a broken message."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _integer(value: object) -> Optional[int]:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        return None
    return value


def _time(event: Dict[str, Any]) -> int:
    at_ms = _integer(event.get("t"))
    return int(time.time() * 1000) if at_ms is None else at_ms


def _plain(value: Any) -> Any:
    """The same without numbers that are not finite, which strict JSON cannot hold."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
