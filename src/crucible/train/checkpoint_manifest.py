"""The manifest: what a checkpoint consists of, and the proof that nothing of it changed. Pure; touches no file.

A manifest is accepted only in the exact bytes that `encode` makes of it, so any change of any byte shows."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

FORMAT = 1
# Checkpoints of a few hundred thousand files are a mistake; a manifest is read into memory.
MAX_PARTS = 100_000
MAX_MANIFEST_BYTES = 64 << 20
# Metadata travels with every listing.
MAX_METADATA_BYTES = 64 << 10

_ROOT = re.compile(r"parts-[0-9a-f]{16}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class InvalidManifest(ValueError):
    """The message says what is wrong with it."""


@dataclass(frozen=True)
class Part:
    name: str  # relative, with forward slashes
    size: int
    sha256: str


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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
    return {
        "format": FORMAT,
        "step": manifest.step,
        "root": manifest.root,
        "is_folder": manifest.is_folder,
        "parts": [{"name": part.name, "size": part.size, "sha256": part.sha256} for part in manifest.parts],
        "created_ms": manifest.created_ms,
        "world_size": manifest.origin.world_size,
        "rank": manifest.origin.rank,
        "job_id": manifest.origin.job_id,
        "attempt": manifest.origin.attempt,
        "metadata": manifest.metadata,
    }


def _manifest(body: Dict[str, Any]) -> Manifest:
    if body["format"] != FORMAT:
        raise InvalidManifest("format {!r} is not known here; a newer Crucible wrote it".format(body["format"]))
    return Manifest(
        step=body["step"],
        root=body["root"],
        parts=tuple(Part(part["name"], part["size"], part["sha256"]) for part in body["parts"]),
        is_folder=body["is_folder"],
        created_ms=body["created_ms"],
        origin=Origin(body["world_size"], body["rank"], body["job_id"], body["attempt"]),
        metadata=body["metadata"],
    )


def _check(manifest: Manifest) -> None:
    """A digest proves only that the manifest is whole, not that an honest program wrote it."""
    names = [part.name for part in manifest.parts]
    if not (isinstance(manifest.step, int) and manifest.step >= 0):
        raise InvalidManifest("the step {!r} is not a count".format(manifest.step))
    if not (isinstance(manifest.root, str) and _ROOT.match(manifest.root)):
        raise InvalidManifest("the folder name {!r} is not one of ours".format(manifest.root))
    if len(names) > MAX_PARTS or len(set(names)) != len(names):
        raise InvalidManifest("it names a part twice, or more than {} parts".format(MAX_PARTS))
    if not manifest.is_folder and len(names) != 1:
        raise InvalidManifest("a single file has one part, not {}".format(len(names)))
    for part in manifest.parts:
        _check_part(part)


def _check_part(part: Part) -> None:
    if not (isinstance(part.name, str) and is_safe_name(part.name)):
        raise InvalidManifest("the name {!r} would leave the checkpoint's folder".format(part.name))
    if not (isinstance(part.size, int) and part.size >= 0):
        raise InvalidManifest("the size of {!r} is not a count".format(part.name))
    if not (isinstance(part.sha256, str) and _SHA256.match(part.sha256)):
        raise InvalidManifest("the SHA-256 of {!r} is malformed".format(part.name))


def _canonical(body: Dict[str, Any]) -> bytes:
    """One text per value: sorted keys, no spaces, ASCII. Names that are not Unicode survive as escaped surrogates."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
