"""Buckets and what is in them: names in order, one generation of each object, its bytes in a file of its own. A change
is one step between two awaits, so that of several who want the same only one finds it as it expected."""

import re
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crucible.lab.gcs.errors import GcsError, invalid, no_such_bucket, no_such_key

DEFAULT_BUCKET = "lab-bucket"
LONGEST_KEY = 1024  # bytes
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", re.ASCII)
# Listings are XML, which cannot carry them; Google refuses line ends too.
_UNSPEAKABLE = re.compile("[\x00-\x08\x0a-\x0d\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    key: str
    path: Path
    size: int
    etag: str  # with its quotes
    content_type: str
    generation: int
    modified_at: float


class Bucket:
    def __init__(self, name: str, folder: Path, wall: Callable[[], float]) -> None:
        self.name = name
        self.folder = folder
        self.keys: list[str] = []  # in the order of their UTF-8, which is that of their code points
        self._blobs: dict[str, Blob] = {}
        self._wall = wall
        self._generation = 0

    def get(self, key: str) -> Blob | None:
        return self._blobs.get(key)

    def find(self, key: str) -> Blob:
        """Raises GcsError."""
        blob = self._blobs.get(key)
        if blob is None:
            raise no_such_key(key)
        return blob

    def put(self, key: str, path: Path, size: int, etag: str, content_type: str) -> Blob:
        """`path` belongs to the object from now on; those who read what was there before read on."""
        now = self._wall()
        self._generation = max(self._generation + 1, int(now * 1e6))  # microseconds, as Google counts; never twice
        older = self._blobs.get(key)
        if older is None:
            insort(self.keys, key)
        else:
            older.path.unlink(missing_ok=True)
        self._blobs[key] = Blob(
            key=key,
            path=path,
            size=size,
            etag=etag,
            content_type=content_type,
            generation=self._generation,
            modified_at=now,
        )
        return self._blobs[key]

    def remove(self, key: str) -> None:
        """Raises GcsError."""
        blob = self.find(key)
        del self._blobs[key]
        del self.keys[bisect_left(self.keys, key)]
        blob.path.unlink(missing_ok=True)


class Buckets:
    def __init__(self, folder: Path, wall: Callable[[], float]) -> None:
        self._folder = folder
        self._wall = wall
        self._buckets: dict[str, Bucket] = {}

    def create(self, name: str) -> Bucket:
        """Raises GcsError."""
        if not _BUCKET.fullmatch(name) or ".." in name:
            raise GcsError("InvalidBucketName", f"The specified bucket is not valid: {name}")
        if name in self._buckets:
            raise GcsError("BucketAlreadyOwnedByYou", f"Your previous request to create {name} succeeded.", 409)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._buckets[name] = Bucket(name, self._folder, self._wall)
        return self._buckets[name]

    def find(self, name: str) -> Bucket:
        """Raises GcsError."""
        bucket = self._buckets.get(name)
        if bucket is None:
            raise no_such_bucket(name)
        return bucket


def check_key(key: str) -> None:
    """Raises GcsError."""
    if not 1 <= len(key.encode("utf-8", "surrogatepass")) <= LONGEST_KEY:
        invalid(f"The name of an object has 1 to {LONGEST_KEY} bytes.")
    if key in (".", "..") or key.startswith(".well-known/acme-challenge/") or _UNSPEAKABLE.search(key):
        invalid("The name of an object is not . or .., has no control characters, and no .well-known/acme-challenge/.")
