"""The manifest of a checkpoint in storage (ADR 13), and the node's manifest inside it, read as hostile text: a digest
proves that it is whole, not that an honest program wrote it. The agent and `train` have readers of their own."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# A manifest is read into memory: that of a node may have 64 MiB, and is quoted within the one in storage.
MAX_STORED_BYTES = 192 << 20
MAX_PARTS = 100_000
MAX_SHARDS = 65_536
MAX_STEP = 10**18 - 1
PIECE_BYTES = (1 << 20, 1 << 30)
# Larger than any file of today; also the piece of a format that has one SHA-256 for a whole file.
LARGEST = 1 << 60

_SLOT = re.compile(r"[0-9]{5}-[0-9]{5}-[0-9a-f]{16}\Z")
_PART_KEY = re.compile(r"parts/([0-9]{5}-[0-9]{5}-[0-9a-f]{16})/[0-9]{5}\Z")
_ROOT = re.compile(r"parts-[0-9a-f]{16}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class BadManifest(ValueError):
    """The message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file: a SHA-256 for each piece of it, in order."""

    name: str
    size: int
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManifest:
    """What the training script wrote. `text` is its manifest word for word."""

    step: int
    root: str
    parts: tuple[Part, ...]
    is_folder: bool
    piece_bytes: int
    created_ms: int
    job_id: str | None
    attempt: int
    shard: int
    shards: int
    metadata: Mapping[str, Any]
    text: str

    @property
    def size_bytes(self) -> int:
        return sum(part.size for part in self.parts)

    def piece_size(self, part: int, piece: int) -> int:
        return min(self.piece_bytes, self.parts[part].size - piece * self.piece_bytes)

    def pieces(self) -> Iterator[tuple[int, int]]:
        return ((number, piece) for number, part in enumerate(self.parts) for piece in range(len(part.pieces)))


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Pieces one after another, each as (part, piece)."""

    key: str
    size: int
    holds: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class StoredManifest:
    slot: str  # "" for one that a machine saved into a folder
    node: NodeManifest
    objects: tuple[StoredObject, ...]


def is_slot(text: str) -> bool:
    return _SLOT.match(text) is not None


def slot_of_part(key: str) -> str | None:
    """The slot that an object was written under; None: not an object of a slot."""
    found = _PART_KEY.match(key)
    return found[1] if found else None


def read_stored(data: bytes, slot: str) -> StoredManifest:
    """The manifest that was stored under `slot`. Raises BadManifest."""
    body = _verified(data, MAX_STORED_BYTES)
    try:
        if body["format"] != 1:
            raise BadManifest(f"format {body['format']!r} is not known here")
        node = read_node(body["manifest"])
        said = tuple(body[name] for name in ("slot", "attempt", "step", "shard", "shards"))
        objects = tuple(_object(one) for one in body["objects"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _lacking(error) from error
    if said != (slot, node.attempt, node.step, node.shard, node.shards):
        raise BadManifest("it is the manifest of another checkpoint")
    _check_objects(node, objects)
    return StoredManifest(slot, node, objects)


def read_node(text: str) -> NodeManifest:
    """Format 2, or 1 with one SHA-256 for each file. Raises BadManifest."""
    body = _verified(text.encode("ascii", "replace"), MAX_STORED_BYTES)
    try:
        is_old = body["format"] == 1
        if not is_old and body["format"] != 2:
            raise BadManifest(f"format {body['format']!r} is not known here")
        node = NodeManifest(
            step=body["step"],
            root=body["root"],
            parts=tuple(Part(one["name"], one["size"], _pieces(one, is_old)) for one in body["parts"]),
            is_folder=body["is_folder"],
            piece_bytes=LARGEST if is_old else body["piece_bytes"],
            created_ms=body["created_ms"],
            job_id=body["job_id"],
            attempt=body["attempt"],
            shard=0 if is_old else body["shard"],
            shards=1 if is_old else body["shards"],
            metadata=body["metadata"],
            text=text,
        )
        _check_node(node, is_old)
    except (KeyError, TypeError, AttributeError) as error:
        raise _lacking(error) from error
    return node


def write_stored(manifest: StoredManifest) -> str:
    """In the exact words that an agent writes and reads."""
    node = manifest.node
    body = {
        "format": 1,
        "slot": manifest.slot,
        "attempt": node.attempt,
        "step": node.step,
        "shard": node.shard,
        "shards": node.shards,
        "manifest": node.text,
        "objects": [
            {"key": one.key, "size": one.size, "holds": [list(held) for held in one.holds]} for one in manifest.objects
        ],
    }
    return _canonical({**body, "digest": hashlib.sha256(_canonical(body)).hexdigest()}).decode("ascii")


def whole_files(node: NodeManifest, folder: str) -> tuple[StoredObject, ...]:
    """The parts as a machine saved them below `folder`: each file is an object. An empty one is none."""
    found = []
    for number, part in enumerate(node.parts):
        holds = tuple((number, piece) for piece in range(len(part.pieces)))
        if holds:
            found.append(StoredObject(f"{folder}/{node.root}/{part.name}", part.size, holds))
    return tuple(found)


# --- checks -----------------------------------------------------------------------------------------


def _verified(data: bytes, limit: int) -> dict[str, Any]:
    """What it says, if these are the exact bytes that would be written of it."""
    if len(data) > limit:
        raise BadManifest(f"it is longer than {limit} bytes")
    try:
        body = json.loads(data.decode("ascii"))
        digest = body.pop("digest")
        is_exact = _canonical({**body, "digest": digest}) == data
        is_whole = hashlib.sha256(_canonical(body)).hexdigest() == digest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadManifest(f"it cannot be read: {error}") from error
    if not (is_exact and is_whole):
        raise BadManifest("it does not match its digest")
    return dict(body)


def _canonical(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _check_node(node: NodeManifest, is_old: bool) -> None:
    counts = (node.step, node.attempt, node.shard, node.shards, node.created_ms, node.piece_bytes)
    if not all(_is_count(one) for one in counts) or node.step > MAX_STEP:
        raise BadManifest("a number in it is not a count")
    if not node.shard < node.shards <= MAX_SHARDS:
        raise BadManifest(f"there is no shard {node.shard} of {node.shards}")
    if not is_old and not PIECE_BYTES[0] <= node.piece_bytes <= PIECE_BYTES[1]:
        raise BadManifest(f"pieces of {node.piece_bytes} bytes are not possible")
    if not (isinstance(node.root, str) and _ROOT.match(node.root)):
        raise BadManifest("the folder of its parts is not one of ours")
    if not (isinstance(node.metadata, dict) and isinstance(node.is_folder, bool)):
        raise BadManifest("its metadata is not an object, or it does not say what was saved")
    if not (node.job_id is None or isinstance(node.job_id, str)):
        raise BadManifest("the job that it names is not a name")
    _check_parts(node)


def _check_parts(node: NodeManifest) -> None:
    for part in node.parts:
        _check_part(part, node.piece_bytes)
    if len(node.parts) > MAX_PARTS or len({part.name for part in node.parts}) != len(node.parts):
        raise BadManifest(f"it names a part twice, or more than {MAX_PARTS}")
    if not node.is_folder and len(node.parts) != 1:
        raise BadManifest("a single file has one part")


def _check_part(part: Part, piece_bytes: int) -> None:
    if not (isinstance(part.name, str) and _is_safe_name(part.name)):
        raise BadManifest(f"the name {part.name!r} would leave the checkpoint's folder")
    if not _is_count(part.size) or len(part.pieces) != -(-part.size // piece_bytes):
        raise BadManifest(f"{part.name!r} has other pieces than its size")
    if not all(isinstance(piece, str) and _SHA256.match(piece) for piece in part.pieces):
        raise BadManifest(f"a SHA-256 of {part.name!r} is malformed")


def _check_objects(node: NodeManifest, objects: Sequence[StoredObject]) -> None:
    """Every piece is in exactly one object, each object is as long as its pieces, and none lies elsewhere."""
    missing = set(node.pieces())
    for one in objects:
        if slot_of_part(one.key) is None:
            raise BadManifest(f"the key {one.key!r} is not one of ours")
        if not one.holds or len(set(one.holds)) != len(one.holds) or not missing.issuperset(one.holds):
            raise BadManifest(f"the object {one.key} holds a piece twice, or none that is known")
        missing.difference_update(one.holds)
        if one.size != sum(node.piece_size(*held) for held in one.holds):
            raise BadManifest(f"the size of the object {one.key} is not that of its pieces")
    if missing:
        raise BadManifest(f"{len(missing)} pieces are in no object")
    if len({one.key for one in objects}) != len(objects):
        raise BadManifest("it names an object twice")


def _object(one: Mapping[str, Any]) -> StoredObject:
    holds = tuple((part, piece) for part, piece in one["holds"])
    if not isinstance(one["key"], str) or not all(_is_count(each) for held in holds for each in held):
        raise BadManifest("an object is not described")
    return StoredObject(one["key"], one["size"], holds)


def _pieces(part: Mapping[str, Any], is_old: bool) -> tuple[str, ...]:
    if not is_old:
        return tuple(part["pieces"])
    return (part["sha256"],) if part["size"] else ()


def _is_safe_name(name: str) -> bool:
    return "\0" not in name and all(piece not in ("", ".", "..") for piece in name.split("/"))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _lacking(error: Exception) -> BadManifest:
    return error if isinstance(error, BadManifest) else BadManifest(f"it lacks something: {error!r}")
