"""The items of a job, as text: one a line. Which names a pattern means, where each item ends, and what is said when
there are none. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from crucible.core.shards import MOST_NAMED
from crucible.model.errors import InvalidRequest

# Names that a message shows, and that a slip is compared with.
SHOWN = 3
COMPARED = 10_000
_NEWLINE = 10
CODE = "the shipped code"


@dataclass(frozen=True, slots=True)
class Items:
    count: int
    ends: Sequence[int] = ()  # the byte behind each item, of the list or of a file of lines; none of numbers
    text: bytes | None = None  # the list; None where items are numbers, or lines of a file that nodes have


def listed(names: Sequence[str], field: str) -> Items:
    """Raises InvalidRequest for names that could not stand on a line of their own."""
    if len(names) > MOST_NAMED:
        raise too_many(field)
    for name in names:
        if "\n" in name or "\r" in name:
            raise InvalidRequest(
                f"{name!r:.200} has a line break: items are written one a line; rename it", field=field
            )
    lines = [name.encode() + b"\n" for name in names]
    return Items(len(names), np.cumsum([len(line) for line in lines]).tolist(), b"".join(lines))


class LineEnds:
    """Where lines end, of bytes as they come. A last line needs no line break."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._size = 0
        self._count = 0
        self._found: list[np.ndarray] = []

    def feed(self, chunk: bytes) -> None:
        at = np.flatnonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE).astype(np.int64) + (self._size + 1)
        self._found.append(at)
        self._count += len(at)
        self._size += len(chunk)
        if self._count > MOST_NAMED:
            raise too_many(self._field)

    def items(self) -> Items:
        ends: list[int] = np.concatenate([np.zeros(0, np.int64), *self._found]).tolist()
        if self._size and (not ends or ends[-1] != self._size):
            ends.append(self._size)
        return Items(len(ends), ends)


def too_many(field: str) -> InvalidRequest:
    return InvalidRequest(f"there are more than {MOST_NAMED:,} items; make several jobs of them", field=field)


def nothing_found(glob: str, where: str, names: Sequence[str], field: str) -> InvalidRequest:
    """`names` are all that there are."""
    return InvalidRequest(f"no file of {where} matches {glob!r}; {contents(where, names)}", field=field)


def no_such_file(path: str, where: str, names: Sequence[str], field: str) -> InvalidRequest:
    near = get_close_matches(path, names[:COMPARED], n=1)
    hint = f"did you mean {near[0]}?" if near else contents(where, names)
    return InvalidRequest(f"there is no file {path!r} in {where}; {hint}", field=field)


def contents(where: str, names: Sequence[str]) -> str:
    """A few of them. An entrypoint that is shipped alone is what most people forget."""
    if not names:
        return "it is empty"
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")
    return f"it has {shown}" + ("; `code: .` ships the whole folder" if where == CODE and len(names) == 1 else "")


def matching(glob: str, names: Iterable[str]) -> list[str]:
    """In the order of their bytes. `*` and `?` stay in a folder, `**` goes through all of them."""
    pattern = re.compile("".join(_regex(glob)), re.DOTALL)
    return sorted((name for name in names if pattern.fullmatch(name)), key=str.encode)


def _regex(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            yield "(?:.+/)?"
            at += 3
            continue
        if glob.startswith("**", at):
            yield ".*"
            at += 2
            continue
        if glob[at] == "[" and (end := glob.find("]", at + 2)) > 0:
            yield _class(glob[at + 1 : end])
            at = end + 1
            continue
        yield {"*": "[^/]*", "?": "[^/]"}.get(glob[at], re.escape(glob[at]))
        at += 1


def _class(inside: str) -> str:
    """Characters of which one is meant, or with ! none."""
    negated = inside[0] in "!^"
    body = inside[1:] if negated else inside
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", body)
    return f"(?!/)[{'^' if negated else ''}{escaped}]"
