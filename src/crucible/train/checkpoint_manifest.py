"""The manifest: what a checkpoint, or one shard of it, consists of, and the proof that nothing of it changed. Pure;
touches no file.

A manifest is accepted only in the exact bytes that `encode` makes of it, so any change of any byte shows. Format 2 has
a SHA-256 for every `piece_bytes` of a file; format 1, which is only read, had one for each file."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

# Big enough that a manifest stays small, small enough to be sent again after a cut.
PIECE_BYTES = 64 << 20
MIN_PIECE_BYTES, MAX_PIECE_BYTES = 1 << 20, 1 << 30
# Checkpoints of a few hundred thousand files are a mistake; a manifest is read into memory.
MAX_PARTS = 100_000
MAX_SHARDS = 65_536
MAX_MANIFEST_BYTES = 64 << 20
# Metadata travels with every listing.
MAX_METADATA_BYTES = 64 << 10

_ROOT = re.compile(r"parts-[0-9a-f]{16}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_SHA256_OF_NOTHING = hashlib.sha256().hexdigest()


class InvalidManifest(ValueError):
    """The message says what is wrong with it."""


@dataclass(frozen=True)
class Part:
    name: str  # relative, with forward slashes
    size: int
    pieces: Tuple[str, ...]  # SHA-256 of each piece, in order; an empty file has none


@dataclass(frozen=True)
class Origin:
    """Who saved it."""

    world_size: int = 1
    rank: int = 0
    job_id: Optional[str] = None
    attempt: int = 0


@dataclass(frozen=True)
class Manifest:
    step: int
    root: str  # the folder of the parts, beside the manifest
    parts: Tuple[Part, ...]
    is_folder: bool  # what was saved: a folder, or the one file that is its only part
    created_ms: int
    origin: Origin = Origin()
    metadata: Dict[str, Any] = field(default_factory=dict)
    shard: int = 0
    shards: int = 1
    piece_bytes: Optional[int] = PIECE_BYTES  # None: a file is one piece, however long (format 1)

    @property
    def size_bytes(self) -> int:
        return sum(part.size for part in self.parts)


def encode(manifest: Manifest) -> bytes:
    body = _body(manifest)
    return _canonical(dict(body, digest=hashlib.sha256(_canonical(body)).hexdigest()))


def decode(data: bytes) -> Manifest:
    """Raises InvalidManifest."""
    try:
        body = json.loads(data.decode("ascii"))
        manifest = _manifest(body)
        exact = encode(manifest)
    except InvalidManifest:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidManifest("the manifest cannot be read: {}".format(error)) from error
    if exact != data:
        raise InvalidManifest("the manifest does not match its digest")
    _check(manifest)
    return manifest


def is_safe_name(name: str) -> bool:
    """Whether `name` stays inside the folder it is joined to."""
    pieces = name.split("/")
    return "\0" not in name and all(piece not in ("", ".", "..") for piece in pieces)


def _body(manifest: Manifest) -> Dict[str, Any]:
    body = {
        "step": manifest.step,
        "root": manifest.root,
        "is_folder": manifest.is_folder,
        "created_ms": manifest.created_ms,
        "world_size": manifest.origin.world_size,
        "rank": manifest.origin.rank,
        "job_id": manifest.origin.job_id,
        "attempt": manifest.origin.attempt,
        "metadata": manifest.metadata,
    }
    if manifest.piece_bytes is None:
        parts = [{"name": part.name, "size": part.size, "sha256": _sha256(part)} for part in manifest.parts]
        return dict(body, format=1, parts=parts)
    parts = [{"name": part.name, "size": part.size, "pieces": list(part.pieces)} for part in manifest.parts]
    more = {"piece_bytes": manifest.piece_bytes, "shard": manifest.shard, "shards": manifest.shards}
    return dict(body, format=2, parts=parts, **more)


def _sha256(part: Part) -> str:
    return part.pieces[0] if part.pieces else _SHA256_OF_NOTHING


def _manifest(body: Dict[str, Any]) -> Manifest:
    if body["format"] not in (1, 2):
        raise InvalidManifest("format {!r} is not known here; a newer Crucible wrote it".format(body["format"]))
    is_whole = body["format"] == 1
    return Manifest(
        step=body["step"],
        root=body["root"],
        parts=tuple(_whole_part(part) if is_whole else _part(part) for part in body["parts"]),
        is_folder=body["is_folder"],
        created_ms=body["created_ms"],
        origin=Origin(body["world_size"], body["rank"], body["job_id"], body["attempt"]),
        metadata=body["metadata"],
        shard=0 if is_whole else body["shard"],
        shards=1 if is_whole else body["shards"],
        piece_bytes=None if is_whole else body["piece_bytes"],
    )


def _part(part: Dict[str, Any]) -> Part:
    return Part(part["name"], part["size"], tuple(part["pieces"]))


def _whole_part(part: Dict[str, Any]) -> Part:
    is_empty = part["size"] == 0 and part["sha256"] == _SHA256_OF_NOTHING
    return Part(part["name"], part["size"], () if is_empty else (part["sha256"],))


def _check(manifest: Manifest) -> None:
    """A digest proves only that the manifest is whole, not that an honest program wrote it."""
    if not (_is_count(manifest.step) and _is_count(manifest.origin.attempt)):
        raise InvalidManifest("the step {!r} or the attempt is not a count".format(manifest.step))
    if not (isinstance(manifest.root, str) and _ROOT.match(manifest.root)):
        raise InvalidManifest("the folder name {!r} is not one of ours".format(manifest.root))
    if not isinstance(manifest.metadata, dict):
        raise InvalidManifest("the metadata is not an object")
    _check_shard(manifest.shard, manifest.shards)
    _check_parts(manifest)


def _check_shard(shard: Any, shards: Any) -> None:
    if not (_is_count(shard) and _is_count(shards) and shard < shards <= MAX_SHARDS):
        raise InvalidManifest("there is no shard {!r} of {!r}".format(shard, shards))


def _check_parts(manifest: Manifest) -> None:
    size = manifest.piece_bytes
    if size is not None and not (_is_count(size) and MIN_PIECE_BYTES <= size <= MAX_PIECE_BYTES):
        raise InvalidManifest("pieces of {!r} bytes are not possible".format(size))
    for part in manifest.parts:
        _check_part(part, size)
    names = {part.name for part in manifest.parts}
    if len(manifest.parts) > MAX_PARTS or len(names) != len(manifest.parts):
        raise InvalidManifest("it names a part twice, or more than {} parts".format(MAX_PARTS))
    if not manifest.is_folder and len(names) != 1:
        raise InvalidManifest("a single file has one part, not {}".format(len(names)))


def _check_part(part: Part, piece_bytes: Optional[int]) -> None:
    if not (isinstance(part.name, str) and is_safe_name(part.name)):
        raise InvalidManifest("the name {!r} would leave the checkpoint's folder".format(part.name))
    if not _is_count(part.size):
        raise InvalidManifest("the size of {!r} is not a count".format(part.name))
    if not all(isinstance(piece, str) and _SHA256.match(piece) for piece in part.pieces):
        raise InvalidManifest("the SHA-256 of {!r} is malformed".format(part.name))
    if len(part.pieces) != -(-part.size // (piece_bytes or max(part.size, 1))):
        raise InvalidManifest("{!r} has {} pieces for its {} bytes".format(part.name, len(part.pieces), part.size))


def _is_count(value: Any) -> bool:
    return type(value) is int and bool(value >= 0)


def _canonical(body: Dict[str, Any]) -> bytes:
    """One text per value: sorted keys, no spaces, ASCII. Names that are not Unicode survive as escaped surrogates."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
