"""The objects of a checkpoint become files again, several at a time, and every byte is checked on its way. A read that
fails is repeated from where it broke; only bytes that are wrong twice are judged."""

from __future__ import annotations

import errno
import hashlib
import os
import threading

from .courier import Courier, Declined, Unreachable
from .link import Backoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, List, Optional, Set, Tuple

    from .courier import Download
    from .manifests import NodeManifest, StoredManifest, Stowed
    from .meter import Transfer
    from .protocol import Signed

_CONNECTIONS = 4
_BLOCK_BYTES = 1 << 20
# Reads of one object that bring nothing before new signatures are asked for.
_TRIES = 5
_NO_RANGE = 416
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Corrupt(Exception):
    """What is in storage is not what was saved. The message says how."""


class Expired(Exception):
    """The signatures are not accepted: ask for others."""


class Cancelled(Exception):
    """Nobody waits for it any more."""


class _Wrong(Exception):
    """The bytes are not those that were saved."""


class Fetch:
    """Of all shards, each into a folder of its own. What is there already is not fetched again by the next `run`."""

    def __init__(
        self, shards: List[Tuple[StoredManifest, str]], transfer: Transfer, cancelled: threading.Event
    ) -> None:
        self._shards = shards
        self._transfer = transfer
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._left = [(shard, number) for shard, (one, _) in enumerate(shards) for number in range(len(one.objects))]
        self._failure: Optional[Exception] = None

    def make_files(self) -> None:
        """Empty ones, none through a link. Raises Corrupt for names that cannot be, OSError."""
        for stored, target in self._shards:
            os.makedirs(target, mode=0o700)
            for part in stored.node.parts:
                _make(target, part.name)

    def run(self, signed: List[List[Signed]]) -> None:
        """With a signed request for each object of each shard. Raises Corrupt, Expired, Unreachable, Cancelled,
        OSError."""
        self._failure = None
        done: Set[Tuple[int, int]] = set()
        work = list(self._left)
        threads = [
            threading.Thread(target=self._work, args=(work, done, signed), daemon=True, name="fetch")
            for _ in range(min(_CONNECTIONS, len(work)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._left = [each for each in self._left if each not in done]
        if self._failure is not None:
            raise self._failure
        if self._left:
            raise Unreachable("a reader broke")  # our bug: but never half a checkpoint

    def _work(self, work: List[Tuple[int, int]], done: Set[Tuple[int, int]], signed: List[List[Signed]]) -> None:
        courier = Courier()
        try:
            while self._failure is None:
                with self._lock:
                    if not work:
                        return
                    shard, number = work.pop(0)
                stored, target = self._shards[shard]
                self._fetch(courier, signed[shard][number], stored.node, stored.objects[number], target)
                with self._lock:
                    done.add((shard, number))
        except (Corrupt, Expired, Unreachable, Cancelled, OSError) as error:
            self._failure = error
        finally:
            courier.close()

    def _fetch(self, courier: Courier, signed: Signed, node: NodeManifest, each: Stowed, target: str) -> None:
        sink = _Sink(node, each, target, self._transfer.moved)
        try:
            self._fill(courier, signed, each, sink)
        except (Corrupt, Expired, Unreachable, Cancelled, OSError):
            sink.rewind()
            raise
        finally:
            sink.close()

    def _fill(self, courier: Courier, signed: Signed, each: Stowed, sink: _Sink) -> None:
        backoff, failures, is_doubted = Backoff(), 0, False
        while sink.position < each.size:
            before = sink.position
            if self._cancelled.is_set():
                raise Cancelled
            try:
                self._read(courier.get(signed, sink.position), sink, each)
            except _Wrong as error:
                # Read once more: a line may change bytes, a storage may not.
                if is_doubted:
                    raise Corrupt("the object %s %s" % (each.key, error)) from error
                is_doubted = True
                courier.close()
                sink.rewind()
            except Declined as error:
                _judge(error, each)
            except Unreachable:
                # What a broken line has brought stays.
                failures = 1 if sink.position > before else failures + 1
                if failures >= _TRIES:
                    raise
                self._cancelled.wait(backoff.next_s())

    def _read(self, download: Download, sink: _Sink, each: Stowed) -> None:
        if download.total is not None and download.total != each.size:
            download.close()
            raise _Wrong("has %d bytes instead of %d" % (download.total, each.size))
        if download.start != sink.position:
            sink.rewind()
        buffer = memoryview(bytearray(_BLOCK_BYTES))
        while sink.position < each.size:
            if self._cancelled.is_set():
                raise Cancelled
            count = download.read_into(buffer)
            if not count:
                raise _Wrong("ends after %d of %d bytes" % (sink.position, each.size))
            sink.write(buffer[:count])
        download.close()


class _Sink:
    """Takes the bytes of one object to the files that they belong to."""

    def __init__(self, node: NodeManifest, each: Stowed, target: str, on_moved: Callable[[int], None]) -> None:
        self._node = node
        self._holds = each.holds
        self._target = target
        self._on_moved = on_moved
        self._file = -1
        self._begin()

    def _begin(self) -> None:
        self.position = 0
        self._index = -1
        self._left = 0
        self._offset = 0
        self._digest = hashlib.sha256()

    def rewind(self) -> None:
        self._on_moved(-self.position)
        self.close()
        self._begin()

    def write(self, data: memoryview) -> None:
        """Raises _Wrong at the end of a piece that has another digest, OSError."""
        self._on_moved(len(data))
        self.position += len(data)
        while data:
            if not self._left:
                self._next()
            piece, data = data[: self._left], data[self._left :]
            self._digest.update(piece)
            _write_all(self._file, piece, self._offset)
            self._offset += len(piece)
            self._left -= len(piece)
            if not self._left:
                self._check()

    def _next(self) -> None:
        self._index += 1
        if self._index >= len(self._holds):
            raise _Wrong("has more bytes than it should")
        part, piece = self._holds[self._index]
        self.close()
        path = os.path.join(self._target, *self._node.parts[part].name.split("/"))
        self._file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        self._offset = piece * self._node.piece_bytes
        self._left = self._node.piece_size(part, piece)
        self._digest = hashlib.sha256()

    def _check(self) -> None:
        part, piece = self._holds[self._index]
        if self._digest.hexdigest() != self._node.digest(part, piece):
            raise _Wrong("has other bytes than were saved (piece %d of %r)" % (piece, self._node.parts[part].name))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def is_full(error: OSError) -> bool:
    return error.errno in _NO_ROOM


def _judge(error: Declined, each: Stowed) -> None:
    if error.is_absent:
        raise Corrupt("the object %s is missing (%s)" % (each.key, error)) from error
    if error.is_expired:
        raise Expired(str(error)) from error
    if error.status == _NO_RANGE:
        raise Corrupt("the object %s is shorter than it should be (%s)" % (each.key, error)) from error
    raise Unreachable(str(error)) from error


def _make(target: str, name: str) -> None:
    try:
        path = os.path.join(target, *name.split("/"))
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except (ValueError, FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise Corrupt("a file cannot be called %r" % name) from error
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            raise Corrupt("a file cannot be called %r" % name) from error
        raise


def _write_all(file: int, data: memoryview, offset: int) -> None:
    while data:
        count = os.pwrite(file, data, offset)
        data, offset = data[count:], offset + count
