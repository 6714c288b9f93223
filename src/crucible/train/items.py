"""The items of a job that works on many: one after another, from whichever shard this process has, until none is left.

    from crucible import train

    for item in train.items():
        with item:
            item.done(model(item.value))

A result is text, bytes, or whatever JSON knows. An exception in the `with` fails that item alone. Outside a job, items
are the lines of the file that $CRUCIBLE_ITEMS names, and results go to stdout."""

from __future__ import annotations

import atexit
import itertools
import os
import sys
from typing import IO, Iterator, List, Optional, TextIO, Tuple

from .item import Item, Value, Work, base_of
from .shard_results import Results
from .stopping import should_stop

SHARDS = "CRUCIBLE_SHARDS"
ITEMS, OUTPUT, ERRORS = "CRUCIBLE_ITEMS", "CRUCIBLE_OUTPUT_FILE", "CRUCIBLE_ERRORS_FILE"
KIND, FIRST = "CRUCIBLE_ITEM_KIND", "CRUCIBLE_FIRST_ITEM"
_NO_ITEMS = "there are no items here: run it as a job with `shards:`, or set {} to a file with one item a line"


def items() -> Iterator[Item]:
    """Every item that this process is given. Results may come in any order, and after the loop."""
    for _, item in _items():
        yield item


def batches(size: int) -> Iterator[List[Item]]:
    """The same, so many at a time; the last ones of a shard may be fewer."""
    if size < 1:
        raise ValueError("a batch has at least one item, not {}".format(size))
    for _, group in itertools.groupby(_items(), key=lambda pair: id(pair[0])):
        found = (item for _, item in group)
        while True:
            batch = list(itertools.islice(found, size))
            if not batch:
                break
            yield batch


def _items() -> Iterator[Tuple[Work, Item]]:
    if os.environ.get(ITEMS):
        yield from _of_file(os.environ[ITEMS])
    elif os.environ.get(SHARDS):
        yield from _of_shards()
    else:
        raise RuntimeError(_NO_ITEMS.format(ITEMS))


def _of_shards() -> Iterator[Tuple[Work, Item]]:
    from .shard_desk import Desk

    desk = Desk()
    try:
        for work in desk.works():
            for item in work.each():
                if should_stop():
                    return
                yield work, item
    finally:
        desk.end()


class FileWork(Work):
    """Items of a file, for a command that is run once for a shard, and for a try at home."""

    def __init__(self, path: str, output: IO[bytes], errors: IO[bytes]) -> None:
        self._path = path
        results = Results(output, errors, -1, lambda: None)
        kind = os.environ.get(KIND, "names")
        super().__init__(kind, int(os.environ.get(FIRST, "0")), -1, results, base_of("code"))

    def finish(self) -> None:
        """When the program ends by itself: results may come until then."""
        if not hasattr(sys, "last_value"):
            self.give_up_open()
        self.results.close()

    def values(self) -> Iterator[Value]:
        with open(self._path, "rb") as file:
            for line in file:
                text = line.rstrip(b"\r\n").decode("utf-8", "replace")
                yield int(text) if self.kind == "numbers" else text


def _of_file(path: str) -> Iterator[Tuple[Work, Item]]:
    output, errors = _opened(os.environ.get(OUTPUT), sys.stdout), _opened(os.environ.get(ERRORS), sys.stderr)
    work = FileWork(path, output, errors)
    atexit.register(work.finish)
    for item in work.each():
        yield work, item


def _opened(path: Optional[str], otherwise: TextIO) -> IO[bytes]:
    return open(path, "ab") if path else otherwise.buffer
