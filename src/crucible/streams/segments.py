"""The files of one stream: `<folder>/<channel>-000000.seg` and on, and a lock file. Plain blocking file work on byte
offsets; what the bytes mean is decided elsewhere. Whoever writes holds the lock."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crucible.model.errors import Busy, StorageFailed

# How much is read at once when scanning forwards or backwards.
BLOCK_BYTES = 1 << 18


class SegmentFiles:
    def __init__(self, folder: Path, channel: str) -> None:
        self._folder = folder
        self._channel = channel

    def path(self, number: int) -> Path:
        return self._folder / f"{self._channel}-{number:06d}.seg"

    @property
    def is_begun(self) -> bool:
        """Somebody has written here, or was about to."""
        return self._folder.exists()

    def numbers(self) -> list[int]:
        """Of the segments that are there, in order."""
        lead, tail = f"{self._channel}-", ".seg"
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        found = (name[len(lead) : -len(tail)] for name in names if name.startswith(lead) and name.endswith(tail))
        return sorted(int(number) for number in found if number.isdigit())

    def exists(self, number: int) -> bool:
        return self.path(number).exists()

    def size(self, number: int) -> int:
        try:
            return self.path(number).stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise self._failed("look at", number, error) from error

    def changed_s(self, number: int) -> float:
        """When it was last written to, since 1970; for ever ago if it is not there."""
        try:
            return self.path(number).stat().st_mtime
        except OSError:
            return 0.0

    def remove(self, number: int) -> None:
        """Absent is success."""
        try:
            self.path(number).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed("remove", number, error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Several servers may share the folder. Never waits: raises Busy."""
        path = self._folder / f"{self._channel}.lock"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageFailed(f"cannot write in {self._folder}: {error.strerror}; check disk and rights") from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Busy("another server is writing this stream; try again", retry_after_s=0.2) from error
            yield
        finally:
            os.close(handle)

    def append(self, number: int, at: int, data: bytes) -> None:
        """Write `data` at offset `at`, the end, and make it durable; on failure the file is as before."""
        try:
            is_new = not self.exists(number)
            handle = os.open(self.path(number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._write(handle, at, data)
            finally:
                os.close(handle)
            if is_new:
                self._sync_folders()
        except OSError as error:
            raise self._failed("write", number, error) from error

    def truncate(self, number: int, size: int) -> None:
        try:
            os.truncate(self.path(number), size)
        except OSError as error:
            raise self._failed("repair", number, error) from error

    def read(self, number: int, start: int, stop: int) -> bytes:
        """Nothing, if it was removed meanwhile."""
        try:
            handle = os.open(self.path(number), os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(handle, max(0, stop - start), start)
            finally:
                os.close(handle)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._failed("read", number, error) from error

    def read_lines(self, number: int, start: int, stop: int, limit: int) -> tuple[int, bytes]:
        """Whole lines from `start` on, about `limit` bytes but at least one line if one ends before `stop`; with the
        offset where they begin, because a start inside a line moves to the next one."""
        begin = max(0, start - 1)  # the byte before tells whether `start` begins a line
        size = limit + 1
        while True:
            data = self.read(number, begin, min(stop, begin + size))
            first = data.find(b"\n") + 1 if start > 0 else 0
            end = data.rfind(b"\n") + 1
            if end > first:
                return begin + first, data[first:end]
            if begin + size >= stop:
                return begin + first if first else start, b""
            size *= 2

    def backwards(self, number: int, stop: int) -> Iterator[tuple[int, bytes]]:
        """Blocks of the segment from `stop` down to 0, each with its offset, small ones first."""
        size = BLOCK_BYTES >> 6
        while stop > 0:
            start = max(0, stop - size)
            yield start, self.read(number, start, stop)
            stop = start
            size = min(size * 4, BLOCK_BYTES)

    def _write(self, handle: int, at: int, data: bytes) -> None:
        view = memoryview(data)
        position = at
        try:
            while view:
                written = os.pwrite(handle, view, position)
                position += written
                view = view[written:]
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, at)
            raise

    def _sync_folders(self) -> None:
        """A new file is durable only when its folder is, and a new folder only when its parent is."""
        for folder in (self._folder, self._folder.parent):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _failed(self, verb: str, number: int, error: OSError) -> StorageFailed:
        return StorageFailed(f"cannot {verb} {self.path(number)}: {error.strerror}; check disk space and rights")
