"""Fetches a tree that a task left: its manifest, then its objects, several at a time, each by its signed address. Its
folder gets its name when every byte was checked. Broken off, it goes on where it was. Names that would lead out of the
folder refuse all of it. Addresses are secrets: they appear in no message."""

import hashlib
import http.client
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from crucible.client.download import AGAIN_AFTER_S, CONNECTIONS, FULL, Refused, signed_body
from crucible.client.output_shapes import OutputView, SignedGet
from crucible.model import dataset_tree
from crucible.model.dataset_tree import MAX_MANIFEST_BYTES, Entry, Piece, Stowed, Tree
from crucible.model.errors import Conflict, PlatformError, StorageFailed

T = TypeVar("T")

SHOWN_DIGEST = 16
NAME_LENGTH = 64  # of an object: its sha256


class CorruptTree(PlatformError):
    """What is stored is not what was left."""

    code = "corrupt_output"


@dataclass(frozen=True, slots=True)
class Got:
    """How far it is."""

    objects: int
    of_objects: int
    size_bytes: int  # of all files


OnGot = Callable[[Got], None]


class TreeDownload:
    def __init__(self, ask: Callable[[int], OutputView], on_got: OnGot) -> None:
        """`ask` gives the objects from that number on, with fresh addresses."""
        self._ask = ask
        self._on_got = on_got
        self._said = ask(0)
        self._lock = threading.Lock()

    def into(self, folder: Path) -> Path:
        """The path of the new folder. Raises Conflict if it is there already, CorruptTree, StorageFailed,
        InvalidRequest."""
        final = folder.absolute() / f"task-{self._said['task']:05d}"
        if final.exists() or final.is_symlink():
            raise Conflict(f"{final} is there already; name another folder with -d, or remove it")
        self._draft = final.parent / f".{final.name}.{self._said['digest'][:SHOWN_DIGEST]}.part"
        self._root = self._draft / "tree"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            tree = self._manifest()
            self._fill(tree)
            _finish(self._root, tree)
            self._root.rename(final)
        except OSError as error:
            raise _told(error) from None
        shutil.rmtree(self._draft, ignore_errors=True)
        return final

    def _manifest(self) -> Tree:
        path, digest = self._draft / "manifest", self._said["digest"]
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            path.write_bytes(self._patiently(0, lambda said: _whole(said["manifest"])))
        return dataset_tree.read(path.read_bytes(), digest)

    # --- objects ----------------------------------------------------------------------------------------------

    def _fill(self, tree: Tree) -> None:
        files = _firsts(tree)
        for file in files.values():
            _make(self._root / file.path, file.size)
        objects, done = tree.objects, _done(self._draft)
        unchecked = {file.sha256 for file in files.values() if file.size}
        first = 0
        while first < len(objects):
            if first:
                self._said = self._ask(first)
            page = objects[first : first + len(self._said["objects"])]
            if not page:
                raise StorageFailed("the server names no more objects; fetch it again to go on")
            left = [(first + at, one) for at, one in enumerate(page) if one.name not in done]
            with ThreadPoolExecutor(CONNECTIONS) as threads:
                for got in [threads.submit(self._fetch, first, number, one, files) for number, one in left]:
                    unchecked -= got.result()
            first += len(page)
            self._on_got(Got(first, len(objects), tree.size_bytes))
        self._check(unchecked, files)

    def _fetch(self, first: int, number: int, one: Stowed, files: Mapping[str, Entry]) -> set[str]:
        """Files that were checked on their way."""
        self._patiently(first, lambda said: self._store(said["objects"][number - first], one, files))
        with self._lock, (self._draft / "done").open("a") as notes:
            notes.write(f"{one.name}\n")
        return {piece.sha256 for piece in one.pieces if piece.size == files[piece.sha256].size}

    def _store(self, signed: SignedGet, one: Stowed, files: Mapping[str, Entry]) -> None:
        rest = b""
        with closing(signed_body(signed["url"], signed["headers"])) as blocks:
            for piece in one.pieces:
                rest = self._piece(piece, files[piece.sha256], rest, blocks)
            if rest or next(blocks, b""):
                raise CorruptTree("an object is longer in storage than when it was left")

    def _piece(self, piece: Piece, file: Entry, rest: bytes, blocks: Iterator[bytes]) -> bytes:
        """Writes one, and checks it if it is the whole file; returns what came beyond it."""
        digest, left = hashlib.sha256(), piece.size
        with _opened(self._root / file.path) as target:
            target.seek(piece.offset)
            while left:
                block = rest or next(blocks, b"")
                if not block:
                    raise CorruptTree(f"{file.path!r} is shorter in storage than when it was left")
                digest.update(block[:left])
                target.write(block[:left])
                left, rest = left - len(block[:left]), block[left:]
        if piece.size == file.size and digest.hexdigest() != file.sha256:
            raise CorruptTree(f"{file.path!r} has other content in storage than was left")
        return rest

    def _check(self, unchecked: set[str], files: Mapping[str, Entry]) -> None:
        """Files in several parts, and whatever an earlier run has brought."""
        for sha256 in sorted(unchecked):
            with (self._root / files[sha256].path).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == sha256:
                    continue
            (self._draft / "done").unlink(missing_ok=True)  # nobody knows which part: the next run brings all of them
            raise CorruptTree(f"{files[sha256].path!r} has other content in storage than was left")

    def _patiently(self, first: int, do: Callable[[OutputView], T]) -> T:
        """With new addresses where storage does not take the old ones."""
        for pause in (*AGAIN_AFTER_S, None):
            said = self._said
            try:
                return do(said)
            except Refused as error:
                if pause is None:
                    words = f"storage answers {error.status} to what the server signed; fetch it again to go on"
                    raise StorageFailed(words) from None
                self._renew(first, said)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                if pause is None:
                    words = f"storage broke off: {type(error).__name__}; fetch it again to go on"
                    raise StorageFailed(words) from None
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _renew(self, first: int, old: OutputView) -> None:
        with self._lock:
            if self._said is old:
                self._said = self._ask(first)


# --- files ----------------------------------------------------------------------------------------------------


def _firsts(tree: Tree) -> dict[str, Entry]:
    """Of each content the first file; the others are made from it."""
    found: dict[str, Entry] = {}
    for entry in tree.entries:
        if entry.link is None:
            found.setdefault(entry.sha256, entry)
    return found


def _make(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        os.ftruncate(handle, size)
    finally:
        os.close(handle)


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_NOFOLLOW), "wb")


def _finish(root: Path, tree: Tree) -> None:
    """Files of the same content, which of them may be run, links."""
    firsts = _firsts(tree)
    for entry in tree.entries:
        path = root / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.link is not None:
            path.unlink(missing_ok=True)
            path.symlink_to(entry.link)
            continue
        if firsts[entry.sha256] is not entry:
            shutil.copyfile(root / firsts[entry.sha256].path, path, follow_symlinks=False)
        if entry.is_program:
            path.chmod(path.stat().st_mode | 0o111)


def _done(draft: Path) -> frozenset[str]:
    """Objects that an earlier run has brought. Half a line, of one that was killed, is none."""
    try:
        return frozenset(line.strip() for line in (draft / "done").read_text().splitlines() if len(line) == NAME_LENGTH)
    except FileNotFoundError:
        return frozenset()


def _whole(signed: SignedGet) -> bytes:
    parts: list[bytes] = []
    size = 0
    with closing(signed_body(signed["url"], signed["headers"])) as blocks:
        for block in blocks:
            parts.append(block)
            size += len(block)
            if size > MAX_MANIFEST_BYTES:
                raise CorruptTree("the manifest is larger than any can be")
    return b"".join(parts)


def _told(error: OSError) -> StorageFailed:
    if error.errno in FULL:
        return StorageFailed(f"no room for it: {error.strerror}; make room and fetch it again, or name another folder")
    return StorageFailed(f"{error.filename or 'the folder'} cannot be written: {error.strerror}")
