"""Uploads in parts that are under way: begun, filled in any order, put together or given up."""

import hashlib
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crucible.lab.gcs.errors import GcsError, invalid, no_such_upload
from crucible.lab.gcs.spool import Spool

MOST_PARTS = 10_000
LEAST_BYTES = 5 << 20  # of every part but the last
PIECE_BYTES = 1 << 20  # copied at a time


@dataclass(frozen=True, slots=True)
class Part:
    path: Path
    size: int
    md5: bytes

    @property
    def etag(self) -> str:
        return f'"{self.md5.hex()}"'


@dataclass(frozen=True, slots=True)
class Upload:
    bucket: str
    key: str
    content_type: str
    parts: dict[int, Part] = field(default_factory=dict)


class Uploads:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._uploads: dict[str, Upload] = {}

    def begin(self, bucket: str, key: str, content_type: str) -> str:
        name = secrets.token_urlsafe(24)
        self._uploads[name] = Upload(bucket, key, content_type)
        return name

    def add(self, name: str, bucket: str, key: str, number: int, spool: Spool) -> Part:
        """A part that was sent before is replaced. Raises GcsError."""
        if not 1 <= number <= MOST_PARTS:
            invalid(f"Part numbers are between 1 and {MOST_PARTS}.")
        parts = self.find(name, bucket, key).parts
        older = parts.get(number)
        parts[number] = Part(spool.keep(self._folder), spool.size, spool.md5)
        if older is not None:
            older.path.unlink(missing_ok=True)
        return parts[number]

    def find(self, name: str, bucket: str, key: str) -> Upload:
        """Raises GcsError."""
        upload = self._uploads.get(name)
        if upload is None or (upload.bucket, upload.key) != (bucket, key):
            raise no_such_upload(name)
        return upload

    def end(self, name: str, bucket: str, key: str) -> Upload:
        """From now on nobody else finds it; its parts are the caller's. Raises GcsError."""
        upload = self.find(name, bucket, key)
        del self._uploads[name]
        return upload


def chosen(upload: Upload, named: Sequence[tuple[int, str]]) -> list[Part]:
    """The parts that the completion names, if they are there as it says. Raises GcsError."""
    numbers = [number for number, _ in named]
    if not numbers or sorted(set(numbers)) != numbers:
        raise GcsError("InvalidPartOrder", "The parts must be named once each, in ascending order.")
    found = [_named(upload.parts, number, etag) for number, etag in named]
    if any(part.size < LEAST_BYTES for part in found[:-1]):
        raise GcsError("EntityTooSmall", f"Every part but the last has at least {LEAST_BYTES} bytes.")
    return found


def joined(parts: Sequence[Part], target: Path) -> None:
    """Takes a moment for each GiB: not on the loop."""
    with target.open("xb") as file:
        for part in parts:
            with part.path.open("rb") as source:
                shutil.copyfileobj(source, file, PIECE_BYTES)


def etag_of(parts: Sequence[Part]) -> str:
    """Of the digests, not of the bytes: whoever compares it with an MD5 of the whole finds no match, as at Google."""
    digest = hashlib.md5(b"".join(part.md5 for part in parts), usedforsecurity=False)
    return f'"{digest.hexdigest()}-{len(parts)}"'


def discard(upload: Upload) -> None:
    for part in upload.parts.values():
        part.path.unlink(missing_ok=True)


def _named(parts: Mapping[int, Part], number: int, etag: str) -> Part:
    part = parts.get(number)
    if part is None or part.etag.strip('"') != etag.strip('"'):
        raise GcsError("InvalidPart", f"Part {number} is not there, or has another ETag than you say.")
    return part
