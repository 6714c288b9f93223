"""Before a rank starts, the newest usable checkpoint of its task comes into a folder of the node. The server says what
there is, newest first; every byte is checked here. What is corrupt is passed over; what cannot be read now is read
again, for as long as the rank is wanted."""

from __future__ import annotations

import hashlib
import os
import re

from . import disk, protocol
from .courier import Unreachable
from .fetch import Cancelled, Corrupt, Expired, Fetch, is_full
from .hold import manifest_name
from .link import Backoff, Unanswered
from .manifests import Invalid, StoredManifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import io
    import threading
    from typing import Any, Dict, List, Optional, Set

    from .hold import Hold
    from .link import Link
    from .manifests import NodeManifest
    from .meter import Meter
    from .words import Words

# Manifests of every shard, and a signed request for every object.
_MAX_ANSWER_BYTES = 512 << 20
# The server reads manifests before it answers.
_TIMEOUT_S = 120.0
_STEP = re.compile(r"step-([0-9]{9,18})\Z")
_MANIFEST = re.compile(r"manifest(-[0-9]+-[0-9]+-of-[0-9]+)?\.json\Z")
_BLOCK_BYTES = 1 << 20


class NoRoom(Exception):
    """The node's disk is too small for it."""


class _Changed(Exception):
    """Another checkpoint is the newest now."""


class Restore:
    def __init__(
        self,
        hold: Hold,
        launch: Dict[str, Any],
        link: Link,
        cancelled: threading.Event,
        meter: Meter,
        words: Words,
    ) -> None:
        self._hold = hold
        self._launch = launch
        self._link = link
        self._cancelled = cancelled
        self._meter = meter
        self._words = words
        # What is for the log of the rank.
        self.notes: List[str] = []

    def run(self) -> None:
        """Raises Cancelled, NoRoom, OSError."""
        os.makedirs(self._hold.folder, mode=0o700, exist_ok=True)
        skip = 0
        while True:
            candidate = self._ask(skip)
            if candidate is None:
                self._forget_newer(-1)
                return
            try:
                self._take(candidate, skip)
                return
            except (Corrupt, Invalid) as error:
                self._note("the checkpoint of step %d in storage is not usable: %s" % (candidate.step, error))
                skip += 1
            except _Changed:
                continue

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self._words.say(text)

    def _take(self, candidate: protocol.Candidate, skip: int) -> None:
        stored = _checked(candidate)
        self._forget_newer(candidate.step)
        if not self._is_here(stored):
            disk.remove(self._hold.step_folder(candidate.step))
            self._bring(stored, candidate, skip)
            size = sum(each.node.size_bytes for each in stored)
            self._note("the checkpoint of step %d came from storage (%d bytes)" % (candidate.step, size))
        self._hold.restored(stored)

    # --- the server -----------------------------------------------------------------------------

    def _ask(self, skip: int) -> Optional[protocol.Candidate]:
        """Until a server answers: when to give up is for the server to say."""
        backoff, body = Backoff(), protocol.candidate_request(self._launch, skip)
        while True:
            if self._cancelled.is_set():
                raise Cancelled
            try:
                answer = self._link.call(
                    "POST", "/agent/v1/storage/candidate", body, _TIMEOUT_S, limit_bytes=_MAX_ANSWER_BYTES
                )
                if answer.is_ok:
                    return protocol.candidate_from(answer.data)
                problem = "the server says %s" % answer.complaint()
            except (Unanswered, protocol.Malformed) as error:
                problem = str(error)
            self._words.say_once("restore", problem)
            self._cancelled.wait(backoff.next_s())

    # --- bringing it ----------------------------------------------------------------------------

    def _bring(self, stored: List[StoredManifest], candidate: protocol.Candidate, skip: int) -> None:
        """Files first, manifests last. Raises Corrupt, NoRoom, Cancelled, OSError, _Changed."""
        folder = self._hold.step_folder(candidate.step)
        size = sum(each.node.size_bytes for each in stored)
        self._check_room(size, candidate.step)
        transfer = self._meter.begin("download", size)
        drafts = [os.path.join(folder, ".tmp-" + each.node.root[len("parts-") :]) for each in stored]
        fetch = Fetch(list(zip(stored, drafts)), transfer, self._cancelled)
        try:
            fetch.make_files()
            self._fetch(fetch, candidate, skip)
            for each, draft in zip(stored, drafts):
                _sync(draft)
                os.rename(draft, os.path.join(folder, each.node.root))
            for each in stored:
                _write(os.path.join(folder, manifest_name(each.node)), each.node.data)
        except OSError as error:
            if not is_full(error):
                raise
            raise NoRoom(_too_small(candidate.step, size, self._hold.folder)) from error
        finally:
            self._meter.end("download", transfer)
            for draft in drafts:
                disk.remove(draft)

    def _fetch(self, fetch: Fetch, candidate: protocol.Candidate, skip: int) -> None:
        backoff, current = Backoff(), candidate
        while True:
            try:
                fetch.run([each.objects for each in current.shards])
                return
            except (Expired, Unreachable) as error:
                self._words.say_once("restore", "storage does not give the checkpoint: %s" % error)
            self._cancelled.wait(backoff.next_s())
            newer = self._ask(skip)
            if newer is None or [one.manifest for one in newer.shards] != [one.manifest for one in candidate.shards]:
                raise _Changed
            current = newer

    def _check_room(self, size: int, step: int) -> None:
        """Before anything is fetched: minutes later it would be just as full."""
        disk_of = os.statvfs(self._hold.folder)
        if size > disk_of.f_bavail * disk_of.f_frsize:
            raise NoRoom(_too_small(step, size, self._hold.folder))

    # --- what is here already -------------------------------------------------------------------

    def _is_here(self, stored: List[StoredManifest]) -> bool:
        """An earlier attempt ran on this node: then nothing has to come."""
        folder = self._hold.step_folder(stored[0].node.step)
        names: Set[str] = {manifest_name(each.node) for each in stored}
        try:
            if self._is_gang and names != {name for name in os.listdir(folder) if _MANIFEST.match(name)}:
                return False
            return all(_is_whole(folder, each) for each in stored)
        except OSError:
            return False

    def _forget_newer(self, step: int) -> None:
        """Nodes of a gang must all resume from the same step; a node on its own may know a newer one than storage."""
        if not self._is_gang:
            return
        for name in os.listdir(self._hold.folder):
            found = _STEP.match(name)
            if found is not None and int(found.group(1)) > step:
                disk.remove(os.path.join(self._hold.folder, name))

    @property
    def _is_gang(self) -> bool:
        return bool(self._launch["env"].get("NNODES", "1") != "1")


def _checked(candidate: protocol.Candidate) -> List[StoredManifest]:
    """Shards of one checkpoint, in order. Raises Corrupt, Invalid."""
    stored = [StoredManifest(each.manifest) for each in candidate.shards]
    for number, (each, shard) in enumerate(zip(stored, candidate.shards)):
        node = each.node
        said = (node.step, node.attempt, node.shard, node.shards)
        if said != (candidate.step, stored[0].node.attempt, number, len(stored)):
            raise Corrupt("its shards do not belong together")
        if len(each.objects) != len(shard.objects):
            raise Corrupt("not every object of it was signed")
    if not stored or len({each.node.root for each in stored}) != len(stored):
        raise Corrupt("its shards do not belong together")
    return stored


def _is_whole(folder: str, stored: StoredManifest) -> bool:
    node = stored.node
    with open(os.path.join(folder, manifest_name(node)), "rb") as file:
        if file.read(len(node.data) + 1) != node.data:
            return False
    paths = [os.path.join(folder, node.root, *part.name.split("/")) for part in node.parts]
    return all(_has_pieces(node, number, path) for number, path in enumerate(paths))


def _has_pieces(node: NodeManifest, number: int, path: str) -> bool:
    part = node.parts[number]
    if os.path.realpath(path) != path or not os.path.isfile(path) or os.path.getsize(path) != part.size:
        return False
    with open(path, "rb", buffering=0) as file:
        sizes = [node.piece_size(number, piece) for piece in range(len(part.pieces))]
        return [_sha256(file, size) for size in sizes] == part.pieces


def _sha256(file: io.FileIO, size: int) -> str:
    digest = hashlib.sha256()
    while size:
        block = file.read(min(size, _BLOCK_BYTES))
        if not block:
            break
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()


def _write(path: str, data: bytes) -> None:
    """Whole or not at all, durably."""
    draft = os.path.join(os.path.dirname(path), ".%s.tmp" % os.path.basename(path))
    with open(draft, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    disk.sync(os.path.dirname(path))


def _sync(top: str) -> None:
    for folder, _, names in os.walk(top):
        for name in names:
            disk.sync(os.path.join(folder, name))
        disk.sync(folder)


def _too_small(step: int, size: int, folder: str) -> str:
    disk_of = os.statvfs(folder)
    free = disk_of.f_bavail * disk_of.f_frsize
    return "the checkpoint of step %d has %d bytes, but the node's disk has %d free: ask for a larger disk" % (
        step,
        size,
        free,
    )
