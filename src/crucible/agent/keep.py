"""Files of a program that does not use `crucible.train`: what it leaves in $CRUCIBLE_KEEP is there again when it runs
next, on whatever machine. What rank 0's node holds is committed as a checkpoint, now and then and at the end, and
carried to storage as any other; before a rank starts, the newest one is laid out again.

A file that is replaced by another (`os.replace`) is always whole. One that is being written is waited for."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import time
from urllib.parse import unquote

from . import disk
from .hold import MANIFEST
from .manifests import Invalid, NodeManifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Tuple

    from .hold import Hold
    from .words import Words

    # Name, size, time of change and inode of each file.
    Signature = Tuple[Tuple[str, int, int, int], ...]

NAME = "keep"
# How often the folder is looked at; and how often it is carried while the program runs, unless the job says.
_LOOK_EVERY_S = 1.0
_CARRY_EVERY_S = 60.0
_INTERVAL = "CRUCIBLE_CHECKPOINT_INTERVAL_S"
_MAX_FILES = 10_000
_PIECE_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20
# Of earlier ones so many stay on the node, for an upload that is still at work.
_STAY = 3
_STEP = re.compile(r"step-([0-9]{9,18})\Z")
_MARK = {"kept": True}


class Keeper:
    """Watches the folder of rank 0 in a thread of its own."""

    def __init__(self, launch: Dict[str, Any], events: str, hold: Hold, words: Words) -> None:
        self._launch = launch
        self._events = events
        self._hold = hold
        self._words = words
        self._last: Optional[str] = None
        self._every_s = float(launch["env"].get(_INTERVAL) or _CARRY_EVERY_S)
        self._carried_at = time.monotonic()
        self._ending = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True, name="keep")
            self._thread.start()

    def finish(self) -> None:
        """The program has ended: what it left is looked at once more."""
        self._ending.set()

    def is_done(self) -> bool:
        return self._thread is None or not self._thread.is_alive()

    def _watch(self) -> None:
        self._last = (disk.read_json(_note(self._hold)) or {}).get("signature")
        seen: Optional[Signature] = None
        while True:
            is_last = self._ending.wait(_LOOK_EVERY_S)
            try:
                now = signature(folder_of(self._hold.folder))
                is_due = is_last or time.monotonic() - self._carried_at >= self._every_s
                if now and digest(now) != self._last and is_due and (is_last or now == seen):
                    self._commit(now, is_last)
                seen = now
            except (OSError, ValueError) as error:
                self._words.say_once("keep", "what is in CRUCIBLE_KEEP is not carried: %s" % error)
            if is_last:
                return

    def _commit(self, now: Signature, is_last: bool) -> None:
        """Raises OSError, ValueError."""
        steps = steps_in(self._hold.folder)
        if any(not is_kept(self._hold, step) for step in steps):
            raise ValueError("the program saves with crucible.train, and that is carried")
        step = max(steps, default=0) + 1
        root = "parts-" + os.urandom(8).hex()
        folder = self._hold.step_folder(step)
        parts = [_copy(folder_of(self._hold.folder), os.path.join(folder, root), name) for name, _, _, _ in now]
        if not is_last and signature(folder_of(self._hold.folder)) != now:
            disk.remove(folder)
            return
        manifest = self._manifest(step, root, parts)
        _write(os.path.join(folder, MANIFEST), manifest)
        self._tell(step, manifest, sum(part["size"] for part in parts))
        self._last, self._carried_at = digest(now), time.monotonic()
        disk.write_json(_note(self._hold), {"signature": self._last})
        for old in steps[:-_STAY]:
            disk.remove(self._hold.step_folder(old))

    def _manifest(self, step: int, root: str, parts: List[Dict[str, Any]]) -> bytes:
        """In the very bytes that `crucible.train` would write."""
        body = {
            "format": 2,
            "step": step,
            "root": root,
            "is_folder": True,
            "created_ms": int(time.time() * 1000),
            "world_size": 1,
            "rank": self._launch["rank"],
            "job_id": self._launch["job_id"],
            "attempt": self._launch["number"],
            "metadata": _MARK,
            "parts": parts,
            "piece_bytes": _PIECE_BYTES,
            "shard": 0,
            "shards": 1,
        }
        return _canonical(dict(body, digest=hashlib.sha256(_canonical(body)).hexdigest()))

    def _tell(self, step: int, manifest: bytes, size: int) -> None:
        """Where `crucible.train` would: whoever carries checkpoints reads it there."""
        event = {
            "type": "checkpoint",
            "t": int(time.time() * 1000),
            "step": step,
            "uri": "file://" + self._hold.step_folder(step),
            "size_bytes": size,
            "manifest_sha256": hashlib.sha256(manifest).hexdigest(),
            "metadata": _MARK,
            "rank": self._launch["rank"],
        }
        descriptor = os.open(self._events, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(event).encode() + b"\n")
        finally:
            os.close(descriptor)


def folder_of(checkpoints: str) -> str:
    """Of a place for checkpoints: a path, or a file:// URI."""
    path = unquote(checkpoints[len("file://") :]) if checkpoints.startswith("file://") else checkpoints
    return os.path.join(path, NAME)


def lay_out(hold: Hold) -> None:
    """Makes the folder what the newest kept checkpoint holds; empty where there is none. Raises OSError."""
    folder = folder_of(hold.folder)
    disk.remove(folder)
    os.makedirs(folder, mode=0o700)
    steps = steps_in(hold.folder)
    node = _read(hold, steps[-1]) if steps and is_kept(hold, steps[-1]) else None
    if node is not None:
        for part in node.parts:
            _copy(os.path.join(hold.step_folder(steps[-1]), node.root), folder, part.name)
    disk.write_json(_note(hold), {"signature": digest(signature(folder))})


def _note(hold: Hold) -> str:
    """What of the folder is in storage."""
    return os.path.join(hold.folder, "kept.json")


def steps_in(folder: str) -> List[int]:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = [_STEP.match(name) for name in names]
    return sorted(int(match.group(1)) for match in found if match is not None)


def is_kept(hold: Hold, step: int) -> bool:
    """Whether we made it; what was never committed is nobody's."""
    try:
        with open(os.path.join(hold.step_folder(step), MANIFEST), "rb") as file:
            return bool(json.loads(file.read(1 << 26)).get("metadata") == _MARK)
    except (OSError, ValueError, AttributeError):
        return not any(name.startswith("manifest") for name in os.listdir(hold.step_folder(step)))


def signature(folder: str) -> Signature:
    """Raises ValueError for what cannot be carried: too many files. Links are not followed."""
    found = []
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            info = os.lstat(path)
            if os.path.isfile(path) and not os.path.islink(path):
                relative = os.path.relpath(path, folder).replace(os.sep, "/")
                found.append((relative, info.st_size, info.st_mtime_ns, info.st_ino))
        if len(found) > _MAX_FILES:
            raise ValueError("it has more than %d files" % _MAX_FILES)
    return tuple(sorted(found))


def digest(seen: Signature) -> str:
    return hashlib.sha256(repr(seen).encode("utf-8", "surrogateescape")).hexdigest()


def _copy(source: str, target: str, name: str) -> Dict[str, Any]:
    """The file as a part of a manifest says it, copied and flushed."""
    path, copy = (os.path.join(top, *name.split("/")) for top in (source, target))
    os.makedirs(os.path.dirname(copy), mode=0o700, exist_ok=True)
    pieces: List[str] = []
    size = 0
    with open(path, "rb") as reader, open(copy, "wb") as writer:
        while True:
            piece, length = _copy_piece(reader, writer)
            if length == 0:
                break
            pieces.append(piece)
            size += length
        writer.flush()
        os.fsync(writer.fileno())
    return {"name": name, "size": size, "pieces": pieces}


def _copy_piece(reader: Any, writer: Any) -> Tuple[str, int]:
    sha256, length = hashlib.sha256(), 0
    while length < _PIECE_BYTES:
        block = reader.read(min(_BLOCK_BYTES, _PIECE_BYTES - length))
        if not block:
            break
        sha256.update(block)
        writer.write(block)
        length += len(block)
    return sha256.hexdigest(), length


def _read(hold: Hold, step: int) -> Optional[NodeManifest]:
    try:
        with open(os.path.join(hold.step_folder(step), MANIFEST), "rb") as file:
            return NodeManifest(file.read())
    except (OSError, Invalid):
        return None


def _write(path: str, data: bytes) -> None:
    draft = path + ".part"
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    disk.sync(os.path.dirname(path))


def _canonical(body: Dict[str, Any]) -> bytes:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
