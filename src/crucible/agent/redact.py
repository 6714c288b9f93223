"""Secrets in what a program prints become `***` before anybody stores it: the values themselves, as base64 at each of
its three offsets, quoted for URLs, escaped as in JSON, and the long lines of those that have several. Whoever wants to
get one past this can: it is for accidents.

The server uses it too, for what agents say about ends."""

from __future__ import annotations

import base64
import json
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, List, Tuple

MARK = b"***"
# What is shorter stands in ordinary text by chance.
LEAST = 8
# Of a value with several lines, those that are long enough to be its own; the first line of every key is known to all.
LEAST_LINE = 16
# So many first bytes of a form are looked for at the end of what has come.
_HEAD = 8


def forms(value: bytes) -> List[bytes]:
    """How it may stand in a text, the longest first."""
    found = {value, value.strip(), *_encoded(value), *_written(value)}
    found.update(line for line in value.splitlines() if len(line.strip()) >= LEAST_LINE and line != value)
    return sorted((each for each in found if len(each) >= LEAST), key=lambda each: (-len(each), each))


def _encoded(value: bytes) -> Iterator[bytes]:
    """What of its base64 does not depend on its neighbours, wherever it begins in what was encoded."""
    if len(value) < LEAST:
        return
    yield base64.b64encode(value)
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + value)
        first = (before * 8 + 5) // 6
        last = (before + len(value)) * 8 // 6
        for text in (whole[first:last], whole[first:last].replace(b"+", b"-").replace(b"/", b"_")):
            yield text


def _written(value: bytes) -> Iterator[bytes]:
    quoted = urllib.parse.quote_from_bytes(value, safe="").encode()
    yield quoted
    yield quoted.replace(b"%20", b"+")
    yield urllib.parse.quote_from_bytes(value).encode()
    yield _small_hex(quoted)
    try:
        text = value.decode()
    except ValueError:
        return
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode()
    yield repr(text)[1:-1].encode("utf-8", "replace")


def _small_hex(quoted: bytes) -> bytes:
    """Some write %2f for %2F."""
    parts = quoted.split(b"%")
    return b"%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


class Redactor:
    """Of one stream, in pieces of any size: what may be the beginning of a secret waits for what follows."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self._forms = sorted({form for value in values for form in forms(value)}, key=lambda each: (-len(each), each))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        if not self._forms:
            return data
        data = self._held + data
        keep = self._undecided(data)
        ready, at = self._cleaned(data, keep)
        self._held = data[at:]
        return ready

    def end(self) -> bytes:
        """What waited, when nothing follows."""
        data, self._held = self._held, b""
        return self._cleaned(data, len(data))[0]

    def text(self, words: str) -> str:
        """All of a text at once."""
        data = words.encode("utf-8", "surrogateescape")
        return self._cleaned(data, len(data))[0].decode("utf-8", "surrogateescape")

    def _cleaned(self, data: bytes, keep: int) -> Tuple[bytes, int]:
        """What is decided of it, and where the rest begins."""
        pieces, at = [], 0
        for start, end in self._places(data):
            if start >= keep:
                break
            pieces += [data[at:start], MARK]
            at = end
        end = max(at, keep)
        pieces.append(data[at:end])
        return b"".join(pieces), end

    def _places(self, data: bytes) -> List[Tuple[int, int]]:
        """Where secrets stand; those that touch each other as one."""
        found = sorted(place for form in self._forms for place in _occurrences(data, form))
        merged: List[Tuple[int, int]] = []
        for start, end in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged

    def _undecided(self, data: bytes) -> int:
        """Where the longest end begins that may be the beginning of a secret."""
        return min([_beginning(data, form) for form in self._forms] or [len(data)])


def _occurrences(data: bytes, form: bytes) -> Iterator[Tuple[int, int]]:
    start = data.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = data.find(form, start + 1)


def _beginning(data: bytes, form: bytes) -> int:
    """Where the longest end of `data` begins that is a beginning of `form`, but not all of it."""
    start = data.find(form[:_HEAD], max(0, len(data) - len(form) + 1))
    while start >= 0:
        if form.startswith(data[start:]):
            return start
        start = data.find(form[:_HEAD], start + 1)
    for size in range(min(_HEAD - 1, len(data)), 0, -1):
        if data.endswith(form[:size]):
            return len(data) - size
    return len(data)
