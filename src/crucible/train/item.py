"""One item, and the shard of items that it is of. Knows no server: where items come from and results go is decided by
whoever made the shard."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, Union

from .shard_results import NO_RESULT, Results, encoded, result_field

Value = Union[str, int]
# Kinds of items that have a name worth repeating beside their result.
_NAMED = ("names", "files", "objects")
# Programs start in the folder of their code, and may go elsewhere.
_CODE = os.getcwd()


class Item:
    """One item. Say what became of it: `done(result)` or `failed(reason)`; or use it as a context, in which an
    exception is a failure of this item alone."""

    def __init__(self, work: "Work", position: int, value: Value) -> None:
        self._work = work
        self._position = position
        self._is_settled = False
        self.value = value
        self.index = work.first + position

    @property
    def path(self) -> str:
        """A file of this machine; an object of a prefix is brought here when it is first asked for."""
        return self._work.path_of(self._position, str(self.value))

    @property
    def is_settled(self) -> bool:
        return self._is_settled

    def done(self, result: Any = None) -> None:
        """Text, bytes, or whatever JSON knows. Raises TypeError and ValueError for the rest; it may then still fail."""
        line = encoded(dict(self._words(), **result_field(result)))
        self._settle()
        self._work.results.done(self._position, line)

    def failed(self, reason: object) -> None:
        words = dict(self._words(), reason=str(reason) or NO_RESULT)
        self._settle()
        self._work.results.fail(self._position, words)

    def _settle(self) -> None:
        self._is_settled = True
        self._work.handed_out.pop(self._position, None)

    def _words(self) -> Dict[str, Any]:
        if self._is_settled:
            raise RuntimeError("item {} has its result already".format(self.index))
        named = {"item": self.value} if self._work.kind in _NAMED else {}
        return dict({"index": self.index}, **named)

    def __enter__(self) -> "Item":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if error is not None and not isinstance(error, Exception):
            return False  # the whole program is to end
        if not self._is_settled:
            self.failed(NO_RESULT if error is None else "{}: {}".format(type(error).__name__, error))
        return error is not None

    def __repr__(self) -> str:
        return "Item({}, {!r})".format(self.index, self.value)


class Work:
    """Items of a text with one a line, or numbers; where their results go."""

    def __init__(self, kind: str, first: int, items: int, results: Results, base: str = "") -> None:
        self.kind = kind
        self.first = first
        self.items = items
        self.results = results
        self.is_wanted = True
        self._base = base
        self.handed_out: Dict[int, Item] = {}  # by position; without those that have their result

    def each(self) -> Iterator[Item]:
        for position, value in enumerate(self.values()):
            if not self.is_wanted:
                return  # somebody else was quicker
            item = self.handed_out[position] = Item(self, position, value)
            yield item

    def values(self) -> Iterator[Value]:
        raise NotImplementedError

    def path_of(self, position: int, value: str) -> str:
        return os.path.join(self._base, value)

    def give_up_open(self) -> None:
        """Whatever was handed out and never settled has failed."""
        for item in list(self.handed_out.values()):
            item.failed(NO_RESULT)

    def close(self) -> None:
        pass


def base_of(base: str) -> str:
    """What paths are relative to."""
    return os.environ.get("CRUCIBLE_DATASET", "") if base == "dataset" else _CODE
