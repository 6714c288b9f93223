"""One checkpoint on its way to storage: its files are linked aside, sent as objects, and made one by the manifest, sent
last. A folder remembers how far it came, so that an agent that is started again goes on.

    manifest.json    the node's, word for word
    files/<number>   links to the files of its parts
    upload.json      which slot, and which piece is in which object
    stored           the numbers of the objects that storage has, a line for each
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import threading
import time

from . import disk
from .bodies import Bytes, Files, Unreadable
from .courier import FULL, Courier, Declined, Unreachable
from .link import Backoff
from .manifests import MAX_NODE_BYTES, Invalid, NodeManifest, Stowed, stored_manifest
from .slots import NoSlot
from .stowing import stow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Set

    from .bodies import Body
    from .meter import Transfer
    from .protocol import Signed
    from .slots import Slot, Slots
    from .stowing import Known
    from .words import Words

_CONNECTIONS = 4
# A storage that is away for longer keeps the next checkpoint waiting in vain.
_PATIENCE_S = 600.0
# Signatures are renewed so often for one object; a full storage is asked so often.
_RENEWALS = 3
_FULL_TRIES = 3


class Failed(Exception):
    """For good. The message says why."""


class Interrupted(Exception):
    """Nobody wants it any more."""


class Upload:
    """In a thread of its own, which it keeps until the checkpoint is there."""

    def __init__(self, folder: str, slots: Slots, closed: threading.Event, words: Words) -> None:
        self._folder = folder
        self._slots = slots
        self._closed = closed
        self._words = words
        self._lock = threading.Lock()
        self._failure: Optional[Exception] = None

    # --- what it consists of --------------------------------------------------------------------

    def load(self, manifest_path: str, sha256: str) -> None:
        """Takes hold of the files, or of what an earlier agent had. Raises Failed."""
        try:
            if not self._is_begun(sha256):
                self._link(manifest_path)
            self.node = NodeManifest(_read(self._path("manifest.json")))
            self._check(sha256)
        except (OSError, Invalid) as error:
            raise Failed("its files could not be taken: %s" % error) from error

    def discard(self) -> None:
        disk.remove(self._folder)

    def _is_begun(self, sha256: str) -> bool:
        return (disk.read_json(self._path("upload.json")) or {}).get("sha256") == sha256

    def _link(self, manifest_path: str) -> None:
        self.discard()
        os.makedirs(self._path("files"), mode=0o700)
        data = _read(manifest_path)
        node = NodeManifest(data)
        root = os.path.join(os.path.dirname(manifest_path), node.root)
        for number, part in enumerate(node.parts):
            os.link(os.path.join(root, *part.name.split("/")), self._file(number), follow_symlinks=False)
        with open(self._path("manifest.json"), "wb") as file:
            file.write(data)

    def _check(self, sha256: str) -> None:
        if self.node.sha256 != sha256:
            raise Invalid("the manifest was replaced")
        for number, part in enumerate(self.node.parts):
            info = os.lstat(self._file(number))
            if not stat.S_ISREG(info.st_mode):
                raise Invalid("%r is not a plain file" % part.name)
            if info.st_size != part.size:
                raise Invalid("%r has %d bytes instead of %d" % (part.name, info.st_size, part.size))

    # --- where it goes --------------------------------------------------------------------------

    def plan(self, older: List[Known]) -> int:
        """Chooses slot and objects, and writes them down; returns how many bytes are to be sent. Raises Failed,
        Interrupted."""
        self._stored: Set[int] = set()
        note = disk.read_json(self._path("upload.json"))
        if note is None:
            self._slot = self._take_slot()
            self._new, self._same = stow(self.node, self._slot.name, older)
            self._patiently(lambda: self._slots.extend(self._slot, len(self._new)))
            self._write_down()
        else:
            self._new, self._same = _objects(note["new"]), _objects(note["same"])
            self._slot = self._patiently(lambda: self._slots.reopen(note["slot"], len(self._new)))
            self._stored = _numbers(self._path("stored"))
        self._slots.expect(len(self._new))
        return sum(each.size for number, each in enumerate(self._new) if number not in self._stored)

    @property
    def objects(self) -> List[Stowed]:
        return self._new + self._same

    def _take_slot(self) -> Slot:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            self._check_wanted()
            slot = self._slots.take(wait_s=1.0)
            if slot is not None:
                return slot
        raise Failed("no server gave a place for it")

    def _write_down(self) -> None:
        note = {
            "sha256": self.node.sha256,
            "slot": self._slot.name,
            "new": [each.as_json() for each in self._new],
            "same": [each.as_json() for each in self._same],
        }
        try:
            disk.write_json(self._path("upload.json"), note, durable=True)
        except OSError as error:
            raise Failed("the node's disk refuses a note of it: %s" % error) from error

    # --- sending --------------------------------------------------------------------------------

    def send(self, transfer: Transfer) -> Dict[str, Any]:
        """Until it is committed; returns what a report says of it. Raises Failed, Interrupted."""
        left = [number for number in range(len(self._new)) if number not in self._stored]
        threads = [
            threading.Thread(target=self._work, args=(left, transfer), daemon=True, name="upload")
            for _ in range(min(_CONNECTIONS, len(left)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        if len(self._stored) != len(self._new):
            raise Failed("not every object was sent")  # a thread broke: our bug, but never half a checkpoint
        data = stored_manifest(self._slot.name, self.node, self.objects)
        self._put(Courier(), lambda: self._slot.manifest, Bytes(data), transfer)
        return self._report(data)

    def _work(self, left: List[int], transfer: Transfer) -> None:
        courier = Courier()
        try:
            while self._failure is None:
                with self._lock:
                    if not left:
                        return
                    number = left.pop(0)
                self._put(courier, functools.partial(self._signed, number), self._body(number), transfer)
                self._remember(number)
        except (Failed, Interrupted) as error:
            self._failure = error
        finally:
            courier.close()

    def _put(self, courier: Courier, signed: Callable[[], Signed], body: Body, transfer: Transfer) -> None:
        backoff, until, refusals = Backoff(), time.monotonic() + _PATIENCE_S, 0
        while True:
            self._check_wanted()
            moved = _Moved(transfer)
            request = signed()
            try:
                courier.put(request, body, moved)
                return
            except Declined as error:
                moved.take_back()
                refusals += 1
                self._mend(error, refusals, request)
            except Unreachable as error:
                moved.take_back()
                self._words.say_once("upload", str(error))
                if time.monotonic() >= until:
                    raise Failed("storage does not take it: %s" % error) from error
                self._closed.wait(backoff.next_s())
            except (Unreadable, NoSlot) as error:
                raise Failed(str(error)) from error

    def _mend(self, error: Declined, refusals: int, request: Signed) -> None:
        """Asks for new signatures, if that may help. Raises Failed."""
        if error.status == FULL and refusals < _FULL_TRIES:
            self._closed.wait(refusals)
        elif error.is_expired and refusals <= _RENEWALS:
            self._patiently(lambda: self._slots.renew(self._slot, request))
        else:
            raise Failed("storage refuses it: %s" % error) from error

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        backoff, until = Backoff(), time.monotonic() + _PATIENCE_S
        while True:
            self._check_wanted()
            try:
                return ask()
            except NoSlot as error:
                raise Failed(str(error)) from error
            except Unreachable as error:
                self._words.say_once("upload", str(error))
                if time.monotonic() >= until:
                    raise Failed("no server signs it: %s" % error) from error
                self._closed.wait(backoff.next_s())

    def _check_wanted(self) -> None:
        if self._closed.is_set():
            raise Interrupted

    def _signed(self, number: int) -> Signed:
        return self._slot.parts[number]

    def _body(self, number: int) -> Body:
        node = self.node
        holds = self._new[number].holds
        if len({part for part, _ in holds}) == 1:
            # Pieces of one file that follow each other.
            return Files([(self._file(holds[0][0]), holds[0][1] * node.piece_bytes, self._new[number].size)])
        spans = [(self._file(part), piece * node.piece_bytes, node.piece_size(part, piece)) for part, piece in holds]
        return Files(spans)

    def _remember(self, number: int) -> None:
        """A disk that refuses only costs a second sending after a restart."""
        with self._lock:
            self._stored.add(number)
            try:
                with open(self._path("stored"), "a", encoding="ascii") as file:
                    file.write("%d\n" % number)
            except OSError:
                pass

    def _report(self, data: bytes) -> Dict[str, Any]:
        return {
            "uri": "%s/manifests/%s.json" % (self._slot.prefix, self._slot.name),
            "manifest_sha256": hashlib.sha256(data).hexdigest(),
            "slot": self._slot.name,
            "shard": self.node.shard,
            "shards": self.node.shards,
        }

    def _file(self, number: int) -> str:
        return os.path.join(self._folder, "files", str(number))

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


class _Moved:
    """What one request moved: not done, if it failed."""

    def __init__(self, transfer: Transfer) -> None:
        self._transfer = transfer
        self._count = 0

    def __call__(self, count: int) -> None:
        self._count += count
        self._transfer.moved(count)

    def take_back(self) -> None:
        self._transfer.moved(-self._count)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(MAX_NODE_BYTES + 1)


def _objects(rows: List[Dict[str, Any]]) -> List[Stowed]:
    return [Stowed(row["key"], row["size"], [(part, piece) for part, piece in row["holds"]]) for row in rows]


def _numbers(path: str) -> Set[int]:
    try:
        with open(path, encoding="ascii") as file:
            return {int(line) for line in file if line.endswith("\n")}
    except (OSError, ValueError):
        return set()
