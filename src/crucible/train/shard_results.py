"""What came of the items of one shard: lines in the order of the items, whatever order they come in, in a file; and the
errors of those that failed in another one."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from typing import IO, Any, Callable, Dict, List, Optional

# In one object; who has more errors than that has seen enough of them.
MAX_ERRORS_BYTES = 32 << 20
MAX_REASON = 500
# In the commit itself, for a person's first look.
SHOWN = 5
NO_RESULT = "left without a result"


class Results:
    """Threads may share it. `on_whole` is called once, when every item has its result."""

    def __init__(self, output: IO[bytes], errors: IO[bytes], items: int, on_whole: Callable[[], None]) -> None:
        self._output = output
        self._errors = errors
        self._items = items
        self._on_whole = on_whole
        self._lock = threading.Lock()
        self._waiting: Dict[int, Optional[bytes]] = {}  # by position: a line, or none of an item that failed
        self._next = 0
        self._settled = 0
        self._digest = hashlib.sha256()
        self._errors_bytes = self._unsaid = 0
        self._is_dropped = False
        self.size = 0
        self.failed = 0
        self.shown: List[Dict[str, Any]] = []

    @property
    def is_whole(self) -> bool:
        return self._settled == self._items

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def done(self, position: int, line: bytes) -> None:
        self._settle(position, line)

    def fail(self, position: int, line: Dict[str, Any]) -> None:
        with self._lock:
            if self._is_dropped:
                return
            self.failed += 1
            self._note(line)
        self._settle(position, None)

    def failed_too(self, line: Dict[str, Any]) -> None:
        """Of a command, which says so in a file."""
        with self._lock:
            self.failed += 1
            self._note(line)

    def drop(self) -> None:
        """Nobody wants them: what still comes is thrown away."""
        with self._lock:
            self._is_dropped = True

    def copy(self, source: IO[bytes]) -> None:
        """The output of all items together, as a command wrote it."""
        for block in iter(lambda: source.read(1 << 20), b""):
            self._write(block)

    def _settle(self, position: int, line: Optional[bytes]) -> None:
        with self._lock:
            if self._is_dropped:
                return
            self._waiting[position] = line
            self._settled += 1
            while self._next in self._waiting:
                self._write(self._waiting.pop(self._next) or b"")
                self._next += 1
            is_whole = self.is_whole
        if is_whole:
            self._on_whole()

    def _write(self, data: bytes) -> None:
        self._output.write(data)
        self._digest.update(data)
        self.size += len(data)

    def _note(self, line: Dict[str, Any]) -> None:
        line = dict(line, reason=str(line["reason"])[:MAX_REASON])
        if len(self.shown) < SHOWN:
            self.shown.append(line)
        data = encoded(line)
        if self._errors_bytes + len(data) > MAX_ERRORS_BYTES:
            self._unsaid += 1
            return
        self._errors.write(data)
        self._errors_bytes += len(data)

    def close(self) -> int:
        """Nothing more comes; the size of the errors."""
        if self._unsaid:
            self._errors.write(encoded({"reason": "and {} more".format(self._unsaid)}))
        self._output.flush()
        self._errors.flush()
        return self._errors.tell()


def encoded(line: Dict[str, Any]) -> bytes:
    """Raises TypeError and ValueError for what JSON does not know."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain)
    return text.encode("utf-8", "replace") + b"\n"


def result_field(result: Any) -> Dict[str, Any]:
    """Bytes have a field of their own: JSON has no word for them."""
    if isinstance(result, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(result)).decode("ascii")}
    return {"result": result}


def _plain(value: Any) -> Any:
    """Numbers and arrays of libraries that we do not import."""
    plain = getattr(value, "tolist", None)
    if plain is None:
        raise TypeError("{} has no JSON; give text, bytes, numbers, lists or dicts".format(type(value).__name__))
    return plain()
