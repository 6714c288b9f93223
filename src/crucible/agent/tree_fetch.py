"""The objects of a dataset become files again, several at a time. Every byte is checked: of small files on their way,
of large ones when all their parts are there."""

from __future__ import annotations

import hashlib
import os
import threading

from . import dataset_tree
from .courier import Courier, Declined, Unreachable
from .dataset_tree import BadDataset
from .fetch import Cancelled
from .link import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Optional, Set

    from .courier import Download
    from .dataset_tree import File, Manifest
    from .protocol import TreeObject

_CONNECTIONS = 4
_BLOCK_BYTES = 1 << 20
# Reads of one object that break before new signatures are asked for.
_TRIES = 5
# Bytes that were wrong so often are wrong in storage, not on the line.
_DOUBTS = 2


class Outdated(Exception):
    """What was signed cannot be had: ask anew. `is_missing`: storage says that there is no such object."""

    def __init__(self, words: str, is_missing: bool) -> None:
        super().__init__(words)
        self.is_missing = is_missing


class _Wrong(Exception):
    """Other bytes than were registered."""


class TreeFetch:
    """Into `part`/tree. Objects that have come are noted in `part`/done, so that the next agent need not bring them."""

    def __init__(self, part: str, manifest: Manifest, cancelled: threading.Event) -> None:
        self._tree = os.path.join(part, "tree")
        self._done_path = os.path.join(part, "done")
        self._manifest = manifest
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._failure: Optional[Exception] = None
        self._done = _done(part)
        self._unchecked: Set[str] = {file.sha256 for file in manifest.first.values() if file.size}
        dataset_tree.make_files(self._tree, manifest)

    @staticmethod
    def brought(part: str) -> int:
        return sum(_done(part).values())

    @property
    def moved(self) -> int:
        return sum(self._done.values())

    def run(self, objects: List[TreeObject]) -> None:
        """Raises Outdated, Unreachable, BadDataset, Cancelled, OSError."""
        self._failure = None
        for each in objects:
            self._check_holds(each)
        work = [each for each in objects if each.name not in self._done]
        threads = [
            threading.Thread(target=self._work, args=(work,), daemon=True, name="dataset")
            for _ in range(min(_CONNECTIONS, len(work)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure

    def check_rest(self) -> None:
        """Whatever was not checked on its way, also what an earlier agent brought. Raises BadDataset, Cancelled."""
        for sha256 in sorted(self._unchecked):
            if self._cancelled.is_set():
                raise Cancelled
            file = self._manifest.first[sha256]
            if not dataset_tree.is_right(os.path.join(self._tree, file.path), file):
                os.unlink(self._done_path)  # nobody knows which part: the next try brings all of them
                raise BadDataset("%r has other bytes in storage than were registered; add it with --resend" % file.path)
            self._unchecked.discard(sha256)

    def _check_holds(self, each: TreeObject) -> None:
        for sha256, offset, size in each.holds:
            file = self._manifest.first.get(sha256)
            if file is None or offset < 0 or size <= 0 or offset + size > file.size:
                raise BadDataset("the object %s holds what is not in the manifest" % each.name[:12])
        if sum(size for _, _, size in each.holds) != each.size:
            raise BadDataset("the object %s is not as large as what it holds" % each.name[:12])

    def _work(self, work: List[TreeObject]) -> None:
        courier = Courier()
        try:
            while self._failure is None:
                with self._lock:
                    if not work:
                        return
                    each = work.pop(0)
                self._fetch(courier, each)
                self._note(each)
        except (Outdated, BadDataset, Unreachable, Cancelled, OSError) as error:
            self._failure = error
        finally:
            courier.close()

    def _note(self, each: TreeObject) -> None:
        with self._lock:
            with open(self._done_path, "a", encoding="ascii") as file:
                file.write("%s %d\n" % (each.name, each.size))
            self._done[each.name] = each.size
            self._unchecked -= {sha256 for sha256, _, size in each.holds if size == self._manifest.first[sha256].size}

    def _fetch(self, courier: Courier, each: TreeObject) -> None:
        backoff, breaks, doubts = Backoff(), 0, 0
        while True:
            if self._cancelled.is_set():
                raise Cancelled
            try:
                self._read(courier, each)
                return
            except _Wrong as error:
                doubts += 1
                if doubts >= _DOUBTS:
                    raise BadDataset("%s; add the dataset again with --resend" % error) from error
            except Declined as error:
                raise Outdated("the object %s: %s" % (each.name[:12], error), error.is_absent) from error
            except Unreachable:
                breaks += 1
                if breaks >= _TRIES:
                    raise
            courier.close()
            self._cancelled.wait(backoff.next_s())

    def _read(self, courier: Courier, each: TreeObject) -> None:
        download = courier.get(each.signed, 0)
        if download.total is not None and download.total != each.size:
            download.close()
            raise _Wrong("the object %s has %d bytes instead of %d" % (each.name[:12], download.total, each.size))
        buffer = memoryview(bytearray(_BLOCK_BYTES))
        for sha256, offset, size in each.holds:
            self._piece(download, buffer, self._manifest.first[sha256], offset, size)
        download.close()

    def _piece(self, download: Download, buffer: memoryview, file: File, offset: int, size: int) -> None:
        digest, left = hashlib.sha256(), size
        target = os.open(os.path.join(self._tree, file.path), os.O_WRONLY | os.O_NOFOLLOW)
        try:
            while left:
                if self._cancelled.is_set():
                    raise Cancelled
                count = download.read_into(buffer[: min(left, _BLOCK_BYTES)])
                if not count:
                    raise _Wrong("an object ends before %r does" % file.path)
                digest.update(buffer[:count])
                _write_all(target, buffer[:count], offset)
                offset, left = offset + count, left - count
        finally:
            os.close(target)
        if size == file.size and digest.hexdigest() != file.sha256:
            raise _Wrong("%r has other bytes in storage than were registered" % file.path)


def _write_all(target: int, data: memoryview, offset: int) -> None:
    while data:
        count = os.pwrite(target, data, offset)
        data, offset = data[count:], offset + count


def _done(part: str) -> Dict[str, int]:
    """Names and sizes of objects that have come. Half a line, of an agent that died, is none."""
    found: Dict[str, int] = {}
    try:
        with open(os.path.join(part, "done"), encoding="ascii") as file:
            for line in file:
                name, _, size = line.partition(" ")
                if line.endswith("\n") and size.strip().isdigit():
                    found[name] = int(size)
    except (OSError, ValueError):
        pass
    return found
