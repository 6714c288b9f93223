"""One shard in the hands of this process: its items, as they are read, and what becomes of them."""

from __future__ import annotations

import io
import os
import tempfile
import time
from typing import IO, Any, Callable, Dict, Iterator, Optional, Union

from .item import Value, Work, base_of
from .run_info import RUN_DIR
from .shard_link import Link, Over, Refused, patiently
from .shard_results import Results

# Objects of a prefix whose addresses are asked for at once.
_OBJECTS_AT_ONCE = 100


class LeasedWork(Work):
    """A shard that a server has leased to this process. Its files lie in a folder that goes with it."""

    def __init__(self, link: Link, lease: Dict[str, Any], on_whole: Callable[["LeasedWork"], None]) -> None:
        self._link = link
        self.lease = lease
        self.number, self.fence = int(lease["number"]), int(lease["fence"])
        self.began = time.monotonic()
        self.reason: Optional[str] = None  # why all of its items have failed
        self._folder = tempfile.TemporaryDirectory(prefix="shard-", dir=os.environ[RUN_DIR])
        self.output, self.errors = self.file("output"), self.file("errors")
        results = Results(self.output, self.errors, int(lease["items"]), lambda: on_whole(self))
        source = lease["source"]
        super().__init__(source["kind"], int(lease["first"]), int(lease["items"]), results, base_of(source["base"]))
        self._addresses: Dict[int, Dict[str, Any]] = {}

    @property
    def folder(self) -> str:
        return self._folder.name

    def file(self, name: str) -> IO[bytes]:
        return open(os.path.join(self.folder, name), "w+b")

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def close(self) -> None:
        self.output.close()
        self.errors.close()
        self._folder.cleanup()

    # --- its items ----------------------------------------------------------------------------------------------

    def values(self) -> Iterator[Value]:
        if self.kind == "numbers":
            for number in range(self.first, self.first + self.items):
                yield number
            return
        with self.text() as text:
            for line in lines_of(text, int(self.lease["end"]) - int(self.lease["start"])):
                yield line.rstrip(b"\r\n").decode("utf-8", "replace")

    def text(self) -> IO[bytes]:
        """Standing at the first of its lines."""
        source, start, end = self.lease["source"], int(self.lease["start"]), int(self.lease["end"])
        if self.kind == "lines":
            file = io.FileIO(os.path.join(self._base, source["path"]))
            file.seek(start)
            return io.BufferedReader(file)
        text = self.file("items")
        patiently(self._link.patience, lambda: self._fetch(text, start, end), lambda: True)
        text.seek(0)
        return text

    def _fetch(self, target: IO[bytes], start: int, end: int) -> None:
        target.seek(0)
        target.truncate()
        self._link.get(self.lease["source"]["list"], target, start, end)

    def path_of(self, position: int, value: str) -> str:
        if self.kind != "objects":
            return super().path_of(position, value)
        path = os.path.join(self.folder, "objects", "%d-%s" % (position, os.path.basename(value)))
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            patiently(self._link.patience, lambda: self._bring(position, path), lambda: self._forget(position))
        return path

    def _bring(self, position: int, path: str) -> None:
        if position not in self._addresses:
            self._locate(position)
        draft = path + ".part"
        with open(draft, "wb") as file:
            self._link.get(self._addresses[position], file)
        os.replace(draft, path)

    def _locate(self, position: int) -> None:
        asked = {"number": self.number, "fence": self.fence, "first": position, "count": _OBJECTS_AT_ONCE}
        found = self._link.ask("/worker/v1/shards/objects", asked)["objects"]
        self._addresses = dict(enumerate(found, position))

    def _forget(self, position: int) -> bool:
        """Its address may have expired."""
        self._addresses.pop(position, None)
        return True

    # --- what the server hears ----------------------------------------------------------------------------------

    def renew(self, link: Link, parts: int = 0) -> Dict[str, Any]:
        """What the server says; a shard that it does not know any more is not wanted."""
        try:
            asked = {"number": self.number, "fence": self.fence, "parts": parts}
            said = link.ask("/worker/v1/shards/renew", asked)
        except Refused:
            said = {"is_wanted": False}
        if not said["is_wanted"]:
            self.is_wanted = False
        return said


def lines_of(text: IO[bytes], size: int) -> Iterator[bytes]:
    """Those of the next `size` bytes."""
    left = size
    while left > 0:
        line = text.readline()
        if not line:
            raise Over("the text of the items is shorter than it should be")
        left -= len(line)
        yield line


def lease_work(link: Link, asked: str, on_whole: Callable[[LeasedWork], None]) -> Optional[Union[LeasedWork, float]]:
    """A shard; or after how many seconds to ask again; or None: there is nothing left to do."""
    said = link.ask("/worker/v1/shards/lease", {"asked": asked})
    if said["shard"] is not None:
        return LeasedWork(link, said["shard"], on_whole)
    return None if said["wait_s"] is None else float(said["wait_s"])
