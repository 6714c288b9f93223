"""The two manifests of a carried checkpoint, read as data: the node's, which the training script wrote, and the one in
storage, which holds the node's word for word and says in which objects its pieces are. Pure; nothing in either is
trusted before it was checked here."""

from __future__ import annotations

import hashlib
import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Set, Tuple

# The largest that `crucible.train` writes or reads, and room for where its pieces are.
MAX_NODE_BYTES = 64 << 20
MAX_STORED_BYTES = 192 << 20
MAX_PARTS = 100_000
_PIECE_BYTES = (1 << 20, 1 << 30)
# No file system of today holds a larger file.
_LARGEST = 1 << 60
_MAX_STEP = 10**18 - 1
_STORED_FORMAT = 1

_ROOT = re.compile(r"parts-[0-9a-f]{16}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class Invalid(ValueError):
    """The message says what is wrong with it."""


class Part:
    """One file: its name, and a SHA-256 for each piece of it."""

    __slots__ = ("name", "pieces", "size")

    def __init__(self, name: str, size: int, pieces: List[str]) -> None:
        self.name = name
        self.size = size
        self.pieces = pieces


class NodeManifest:
    """Format 2, or 1 with one piece to a file. Raises Invalid."""

    def __init__(self, data: bytes) -> None:
        body = _verified(data, MAX_NODE_BYTES)
        try:
            self._take(body)
        except (KeyError, TypeError, AttributeError) as error:
            raise Invalid("the manifest lacks something: %r" % error) from error
        self.data = data
        self.sha256 = hashlib.sha256(data).hexdigest()
        self._check()

    def _take(self, body: Dict[str, Any]) -> None:
        is_old = body["format"] == 1
        if not is_old and body["format"] != 2:
            raise Invalid("format %r is not known here" % body["format"])
        self.step: int = body["step"]
        self.root: str = body["root"]
        self.rank: int = body["rank"]
        self.attempt: int = body["attempt"]
        self.shard: int = 0 if is_old else body["shard"]
        self.shards: int = 1 if is_old else body["shards"]
        self.piece_bytes: int = _LARGEST if is_old else body["piece_bytes"]
        self.parts = [Part(each["name"], each["size"], _pieces(each, is_old)) for each in body["parts"]]
        if not is_old and not (_is_count(self.piece_bytes) and _PIECE_BYTES[0] <= self.piece_bytes <= _PIECE_BYTES[1]):
            raise Invalid("pieces of %r bytes are not ours" % self.piece_bytes)

    def _check(self) -> None:
        if not all(_is_count(each) for each in (self.step, self.rank, self.attempt, self.shard, self.shards)):
            raise Invalid("a number of it is not a count")
        if self.step > _MAX_STEP or self.shard >= self.shards:
            raise Invalid("shard %d of %d, step %d" % (self.shard, self.shards, self.step))
        if not (isinstance(self.root, str) and _ROOT.match(self.root)):
            raise Invalid("the folder name %r is not one of ours" % self.root)
        names = [part.name for part in self.parts]
        if len(names) > MAX_PARTS or len(set(map(str, names))) != len(names):
            raise Invalid("it names a part twice, or more than %d parts" % MAX_PARTS)
        for part in self.parts:
            self._check_part(part)

    def _check_part(self, part: Part) -> None:
        if not (isinstance(part.name, str) and _is_safe_name(part.name)):
            raise Invalid("the name %r would leave the checkpoint's folder" % part.name)
        if not _is_count(part.size):
            raise Invalid("the size of %r is not a count" % part.name)
        if len(part.pieces) != -(-part.size // self.piece_bytes):
            raise Invalid("%r has %d pieces for %d bytes" % (part.name, len(part.pieces), part.size))
        if not all(isinstance(each, str) and _SHA256.match(each) for each in part.pieces):
            raise Invalid("a SHA-256 of %r is malformed" % part.name)

    @property
    def size_bytes(self) -> int:
        return sum(part.size for part in self.parts)

    def piece_size(self, part: int, piece: int) -> int:
        return min(self.piece_bytes, self.parts[part].size - piece * self.piece_bytes)

    def pieces(self) -> List[Tuple[int, int]]:
        return [(number, piece) for number, part in enumerate(self.parts) for piece in range(len(part.pieces))]

    def digest(self, part: int, piece: int) -> str:
        return self.parts[part].pieces[piece]


class Stowed:
    """An object in storage, and which pieces it holds one after another: (part, piece)."""

    __slots__ = ("holds", "key", "size")

    def __init__(self, key: str, size: int, holds: List[Tuple[int, int]]) -> None:
        self.key = key
        self.size = size
        self.holds = holds

    def as_json(self) -> Dict[str, Any]:
        return {"key": self.key, "size": self.size, "holds": [list(each) for each in self.holds]}


class StoredManifest:
    """Raises Invalid."""

    def __init__(self, text: str) -> None:
        try:
            body = _verified(text.encode("ascii"), MAX_STORED_BYTES)
            if body["format"] != _STORED_FORMAT:
                raise Invalid("format %r is not known here" % body["format"])
            self.slot = str(body["slot"])
            self.node = NodeManifest(body["manifest"].encode("ascii"))
            self.objects = [_stowed(each) for each in body["objects"]]
            said = [body[name] for name in ("attempt", "step", "shard", "shards")]
        except Invalid:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Invalid("the manifest lacks something: %r" % error) from error
        if said != [self.node.attempt, self.node.step, self.node.shard, self.node.shards]:
            raise Invalid("it holds the manifest of another checkpoint")
        self._check_objects()

    def _check_objects(self) -> None:
        """Every piece is in exactly one object, and each object is as long as its pieces."""
        missing: Set[Tuple[int, int]] = set(self.node.pieces())
        for each in self.objects:
            if not missing.issuperset(each.holds) or not each.holds:
                raise Invalid("the object %r holds a piece twice, or none that is known" % each.key)
            missing.difference_update(each.holds)
            if each.size != sum(self.node.piece_size(*piece) for piece in each.holds):
                raise Invalid("the size of the object %r is not that of its pieces" % each.key)
        if missing:
            raise Invalid("%d pieces are in no object" % len(missing))


def stored_manifest(slot: str, node: NodeManifest, objects: List[Stowed]) -> bytes:
    return _signed(
        {
            "format": _STORED_FORMAT,
            "slot": slot,
            "attempt": node.attempt,
            "step": node.step,
            "shard": node.shard,
            "shards": node.shards,
            "manifest": node.data.decode("ascii"),
            "objects": [each.as_json() for each in objects],
        }
    )


def _signed(body: Dict[str, Any]) -> bytes:
    return _canonical(dict(body, digest=hashlib.sha256(_canonical(body)).hexdigest()))


def _verified(data: bytes, limit_bytes: int) -> Dict[str, Any]:
    """What it says, if these are the exact bytes that would be written of it."""
    if len(data) > limit_bytes:
        raise Invalid("the manifest is longer than %d bytes" % limit_bytes)
    try:
        body = json.loads(data.decode("ascii"))
        digest = body.pop("digest")
        is_exact = _canonical(dict(body, digest=digest)) == data
        is_whole = hashlib.sha256(_canonical(body)).hexdigest() == digest
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Invalid("the manifest cannot be read: %s" % error) from error
    if not is_exact or not is_whole:
        raise Invalid("the manifest does not match its digest")
    return dict(body)


def _canonical(body: Dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _pieces(part: Dict[str, Any], is_old: bool) -> List[str]:
    if not is_old:
        return list(part["pieces"])
    return [part["sha256"]] if part["size"] else []


def _stowed(each: Dict[str, Any]) -> Stowed:
    holds = [(part, piece) for part, piece in each["holds"] if _is_count(part) and _is_count(piece)]
    if len(holds) != len(each["holds"]) or not isinstance(each["key"], str) or len(set(holds)) != len(holds):
        raise Invalid("an object is not described")
    return Stowed(each["key"], each["size"], holds)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST


def _is_safe_name(name: str) -> bool:
    return "\0" not in name and all(each not in ("", ".", "..") for each in name.split("/"))
