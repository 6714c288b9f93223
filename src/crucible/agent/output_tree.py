"""What a rank left in its output folder, as a tree: names, sizes and digests, its manifest, and the objects that hold
its bytes. The form is that of datasets (`crucible.model.dataset_tree`); a property test ties the two together.

Files are opened one folder after the other and no link is followed, so that nothing outside the folder is ever read,
whoever still writes there."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading

from .bodies import Unreadable, send_file
from .dataset_tree import HEAD, leads_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Dict, Iterator, List, Optional, Tuple

    from .bodies import Moved

    # Bytes of a file: its sha256, where they begin, how many there are.
    Piece = Tuple[str, int, int]

MAX_MANIFEST_BYTES = 64 << 20
MAX_PATH_BYTES = 4096
# As datasets are stowed: large files in parts of this size, smaller ones together.
OBJECT_BYTES = 64 << 20
SMALL_BYTES = 1 << 20
PACK_ENDS = "00"
_BLOCK_BYTES = 1 << 20
# Hashing lets other threads run: so many are worth it, and only for so much.
_HASHERS = 4
_ALONE_BYTES = 16 << 20
_HERE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unstorable(Unreadable):
    """It cannot be a tree. The message says why."""


class Changed(Unreadable):
    """Somebody writes to it. The message says where."""


class Stopped(Exception):
    """Nobody wants it any more."""


class Leaf:
    """A file, or with `link` a symbolic link to another name inside the tree."""

    __slots__ = ("changed_ns", "is_program", "link", "path", "sha256", "size")

    def __init__(self, path: str, size: int = 0, link: Optional[str] = None) -> None:
        self.path = path
        self.size = size
        self.link = link
        self.sha256 = ""
        self.is_program = False
        self.changed_ns = 0

    def line(self) -> str:
        if self.link is not None:
            said = {"path": self.path, "link": self.link}
        else:
            said = {"path": self.path, "size": self.size, "sha256": self.sha256}  # type: ignore[dict-item]
            if self.is_program:
                said["x"] = True  # type: ignore[assignment]
        return json.dumps(said, ensure_ascii=True, separators=(",", ":"))


class Stowed:
    __slots__ = ("name", "pieces", "size")

    def __init__(self, pieces: List[Piece]) -> None:
        said = "".join("%s %d %d\n" % piece for piece in pieces)
        self.name = hashlib.sha256(said.encode()).hexdigest()
        self.pieces = pieces
        self.size = sum(size for _, _, size in pieces)


class OutputTree:
    """As it was when it was read. Empty: `leaves` has none."""

    def __init__(self, root: str, max_files: int, max_bytes: int, closed: threading.Event) -> None:
        """Raises Unstorable, Changed, Stopped, OSError."""
        self.root = root
        self._closed = closed
        self.leaves = self._listed(max_files, max_bytes)
        self.size = sum(leaf.size for leaf in self.leaves)
        if not self.leaves:
            return
        self._hash([leaf for leaf in self.leaves if leaf.link is None])
        self.leaves.sort(key=lambda leaf: leaf.path.encode())
        lines = [HEAD.decode()] + [leaf.line() for leaf in self.leaves]
        self.manifest = "".join(line + "\n" for line in lines).encode()
        if len(self.manifest) > MAX_MANIFEST_BYTES:
            raise Unstorable("there are too many files: %d; make archives of them" % len(self.leaves))
        self.digest = hashlib.sha256(self.manifest).hexdigest()
        self.objects = list(stow(self.leaves))
        self._sources: Dict[str, Leaf] = {}
        for leaf in self.leaves:
            self._sources.setdefault(leaf.sha256, leaf)

    def body(self, stowed: Stowed) -> Body:
        return Body(self.root, [(self._sources[sha256], offset, size) for sha256, offset, size in stowed.pieces])

    # --- listing --------------------------------------------------------------------------------

    def _listed(self, max_files: int, max_bytes: int) -> List[Leaf]:
        """Before anything is read: hours later it would be just as large."""
        leaves: List[Leaf] = []
        size, left = 0, [""]
        while left:
            below = left.pop()
            for name, mode, length in _entries(self.root, below):
                path = below + "/" + name if below else name
                if stat.S_ISDIR(mode):
                    left.append(path)
                else:
                    leaves.append(self._leaf(path, mode, length))
                    size += leaves[-1].size
                if len(leaves) > max_files:
                    raise Unstorable("there are more than %d files; make archives of them" % max_files)
                if size > max_bytes:
                    raise Unstorable("they have more than %d bytes, the most that the server takes" % max_bytes)
            self._check_wanted()
        return leaves

    def _leaf(self, path: str, mode: int, length: int) -> Leaf:
        _check_name(path)
        if stat.S_ISREG(mode):
            return Leaf(path, length)
        if not stat.S_ISLNK(mode):
            raise Unstorable("%r is neither a file, a folder nor a link" % path)
        link = _link(self.root, path)
        if not leads_inside(path, link):
            raise Unstorable("the link %r leads to %r, out of the folder" % (path, link[:200]))
        return Leaf(path, link=link)

    # --- reading --------------------------------------------------------------------------------

    def _hash(self, files: List[Leaf]) -> None:
        work = list(reversed(files))
        failures: List[BaseException] = []
        lock = threading.Lock()

        def hash_some() -> None:
            try:
                while not failures:
                    with lock:
                        if not work:
                            return
                        leaf = work.pop()
                    self._read(leaf)
            except BaseException as error:
                failures.append(error)

        count = min(_HASHERS, os.cpu_count() or 1) if self.size > _ALONE_BYTES else 1
        threads = [threading.Thread(target=hash_some, daemon=True, name="hash") for _ in range(count - 1)]
        for thread in threads:
            thread.start()
        hash_some()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _read(self, leaf: Leaf) -> None:
        file = open_below(self.root, leaf.path)
        try:
            before = os.fstat(file)
            digest, size = hashlib.sha256(), 0
            for block in iter(lambda: os.read(file, _BLOCK_BYTES), b""):
                digest.update(block)
                size += len(block)
                self._check_wanted()
            after = os.fstat(file)
        except OSError as error:
            raise Unstorable("%r cannot be read: %s" % (leaf.path, error.strerror)) from error
        finally:
            os.close(file)
        is_same = before.st_mtime_ns == after.st_mtime_ns and size == before.st_size == leaf.size
        if not is_same or not stat.S_ISREG(before.st_mode):
            raise Changed("%r changed while it was read" % leaf.path)
        leaf.sha256, leaf.changed_ns = digest.hexdigest(), after.st_mtime_ns
        leaf.is_program = bool(after.st_mode & 0o100)

    def _check_wanted(self) -> None:
        if self._closed.is_set():
            raise Stopped


class Body:
    """The bytes of an object, as they were when they were hashed: a file that is another one now ends it, and storage
    keeps nothing of what broke off."""

    def __init__(self, root: str, pieces: List[Tuple[Leaf, int, int]]) -> None:
        self._root = root
        self._pieces = pieces
        self.size = sum(size for _, _, size in pieces)

    def send(self, sock: socket.socket, is_plain: bool, on_moved: Moved) -> None:
        """Raises Unreadable for trouble with a file; OSError is the line's."""
        held = bytearray()
        for leaf, offset, size in self._pieces:
            file = open_below(self._root, leaf.path)
            try:
                if size < leaf.size or size >= SMALL_BYTES:
                    send_file(sock, file, leaf.path, offset, size, is_plain, on_moved)
                else:
                    held += _whole(file, leaf)
                _check_same(file, leaf)
            finally:
                os.close(file)
            if len(held) >= _BLOCK_BYTES:
                sock.sendall(held)
                on_moved(len(held))
                held = bytearray()
        sock.sendall(held)
        on_moved(len(held))


def stow(leaves: List[Leaf]) -> Iterator[Stowed]:
    """Every byte of every file once: large files in parts, small ones together, in the order of the last name that each
    content has."""
    files: Dict[str, int] = {}
    for leaf in leaves:
        if leaf.size:
            files.pop(leaf.sha256, None)
            files[leaf.sha256] = leaf.size
    for sha256, size in files.items():
        if size >= SMALL_BYTES:
            for offset in range(0, size, OBJECT_BYTES):
                yield Stowed([(sha256, offset, min(OBJECT_BYTES, size - offset))])
    pack: List[Piece] = []
    held = 0
    for sha256, size in files.items():
        if size >= SMALL_BYTES:
            continue
        if held + size > OBJECT_BYTES:
            yield Stowed(pack)
            pack, held = [], 0
        pack.append((sha256, 0, size))
        held += size
        if sha256.startswith(PACK_ENDS):
            yield Stowed(pack)
            pack, held = [], 0
    if pack:
        yield Stowed(pack)


# --- files ------------------------------------------------------------------------------------------


def open_below(root: str, path: str, flags: int = os.O_NONBLOCK) -> int:
    """Raises Changed for what is not there any more, or only through a link; Unstorable for what may not be read."""
    try:
        folder = os.open(root, _HERE | os.O_DIRECTORY)
    except OSError as error:
        raise Unstorable("the output folder cannot be read: %s" % error.strerror) from error
    *folders, name = path.split("/")
    try:
        for each in folders:
            inner = os.open(each, _HERE | os.O_DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name or ".", _HERE | flags, dir_fd=folder)
    except PermissionError as error:
        raise Unstorable("%r cannot be read: %s" % (path, error.strerror)) from error
    except OSError as error:
        raise Changed("%r vanished while it was read: %s" % (path, error.strerror)) from error
    finally:
        os.close(folder)


def is_empty(root: str) -> bool:
    """Also if it is not there."""
    try:
        with os.scandir(root) as entries:
            return next(iter(entries), None) is None
    except OSError:
        return True


def _entries(root: str, below: str) -> Iterator[Tuple[str, int, int]]:
    folder = open_below(root, below, os.O_DIRECTORY)
    try:
        for name in os.listdir(folder):
            info = os.stat(name, dir_fd=folder, follow_symlinks=False)
            yield name, info.st_mode, info.st_size
    except FileNotFoundError as error:
        raise Changed("something below %r vanished while it was read" % below) from error
    finally:
        os.close(folder)


def _link(root: str, path: str) -> str:
    parent, _, name = path.rpartition("/")
    folder = open_below(root, parent, os.O_DIRECTORY)
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError as error:
        raise Changed("%r vanished while it was read" % path) from error
    finally:
        os.close(folder)


def _check_name(path: str) -> None:
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise Unstorable("%r has a name that is no UTF-8" % os.fsencode(path)) from None
    if size > MAX_PATH_BYTES:
        raise Unstorable("a name is longer than %d bytes: %r…" % (MAX_PATH_BYTES, path[:100]))


def _whole(file: int, leaf: Leaf) -> bytes:
    try:
        data = os.pread(file, leaf.size, 0)
    except OSError as error:
        raise Unreadable(str(error)) from error
    if hashlib.sha256(data).hexdigest() != leaf.sha256:
        raise Changed("%r changed while it was sent" % leaf.path)
    return data


def _check_same(file: int, leaf: Leaf) -> None:
    info = os.fstat(file)
    if (info.st_size, info.st_mtime_ns) != (leaf.size, leaf.changed_ns):
        raise Changed("%r changed while it was sent" % leaf.path)
