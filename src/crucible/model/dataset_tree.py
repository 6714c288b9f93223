"""The manifest of a tree of files, and the objects that hold its bytes. Both follow from what the files hold: the same
tree has the same digest and the same objects, whoever reads it, where, and in which order."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from crucible.model.errors import InvalidRequest
from crucible.model.ids import Digest

HEAD = '{"crucible_dataset":1}'
# A manifest is one object, and read as a whole: 400,000 files with names of ordinary length.
MAX_MANIFEST_BYTES = 64 << 20
MAX_ENTRIES = 1_000_000
MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255
# One signed request carries at most this much.
OBJECT_BYTES = 64 << 20
# A request costs about as much as a megabyte: smaller files share an object.
SMALL_BYTES = 1 << 20
# A pack ends after a file whose digest begins so, one of 256: a tree in which one file changed shares all other packs.
PACK_ENDS = "00"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or with `link` a symbolic link to another name inside the tree."""

    path: str
    size: int = 0
    sha256: str = ""
    is_program: bool = False
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a file that an object holds, from `offset` of the file on."""

    sha256: str  # of the file
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Stowed:
    """An object. Its name follows from the files that it holds, so that it is sent once whoever has them."""

    name: str
    size: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    digest: Digest
    entries: tuple[Entry, ...]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size for entry in self.entries)

    @property
    def objects(self) -> tuple[Stowed, ...]:
        return tuple(stow(self.entries))


def write(entries: Iterable[Entry]) -> bytes:
    """One line for each entry, by the bytes of their names: no locale has a say."""
    ordered = sorted(entries, key=lambda entry: entry.path.encode())
    return "".join(f"{line}\n" for line in (HEAD, *map(_line, ordered))).encode()


def read(data: bytes, digest: str) -> Tree:
    """Raises InvalidRequest for everything that `write` would not have written."""
    if len(data) > MAX_MANIFEST_BYTES or hashlib.sha256(data).hexdigest() != digest:
        raise InvalidRequest(f"the manifest is not the one of {digest[:12]}; add the dataset again")
    try:
        head, *lines = data.decode().splitlines()
        entries = tuple(_entry(json.loads(line)) for line in lines)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRequest(f"the manifest cannot be read: {error}") from None
    check(entries)
    if head != HEAD or write(entries) != data:
        raise InvalidRequest("the manifest is not in its canonical form; add the dataset with this version")
    return Tree(Digest(digest), entries)


def tree_of(entries: Iterable[Entry]) -> tuple[Tree, bytes]:
    """With its manifest. Raises InvalidRequest."""
    found = tuple(entries)
    check(found)
    ordered = tuple(sorted(found, key=lambda entry: entry.path.encode()))
    data = write(ordered)
    if len(data) > MAX_MANIFEST_BYTES:
        raise InvalidRequest(f"the tree has too many files to be one dataset: {len(ordered)}; make archives of them")
    return Tree(Digest(hashlib.sha256(data).hexdigest()), ordered), data


def check(entries: Sequence[Entry]) -> None:
    """Raises InvalidRequest for names that leave the tree, that are there twice, or that are a file and a folder."""
    if not entries or len(entries) > MAX_ENTRIES:
        raise InvalidRequest(f"a dataset has 1 to {MAX_ENTRIES} files, this one has {len(entries)}")
    names = {entry.path for entry in entries}
    if len(names) != len(entries):
        raise InvalidRequest("a name is there twice in the manifest")
    for entry in entries:
        _check_entry(entry)
        if any(folder in names for folder in _folders(entry.path)):
            raise InvalidRequest(f"{entry.path!r} lies below what is no folder")


def stow(entries: Iterable[Entry]) -> Iterator[Stowed]:
    """Every byte of every file once: large files in parts, small ones together, in the order of their names."""
    files = {entry.sha256: entry.size for entry in reversed(tuple(entries)) if entry.size}
    ordered = list(reversed(files.items()))
    for sha256, size in ordered:
        if size >= SMALL_BYTES:
            yield from _parts(sha256, size)
    yield from _packs([Piece(sha256, 0, size) for sha256, size in ordered if size < SMALL_BYTES])


def leads_inside(path: str, link: str) -> bool:
    """Whether a link at `path` stays in the tree, by its words alone."""
    parts = [part for part in link.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    # After a name no `..`: that name may itself be a link, and lead elsewhere than its words say.
    is_plain = bool(link) and not link.startswith("/") and "\0" not in link and ".." not in parts[ups:]
    return is_plain and ups <= path.count("/")


# --- details ------------------------------------------------------------------------------------------------


def _line(entry: Entry) -> str:
    said: dict[str, object] = {"path": entry.path}
    if entry.link is not None:
        said["link"] = entry.link
    else:
        said |= {"size": entry.size, "sha256": entry.sha256}
        if entry.is_program:
            said["x"] = True
    return json.dumps(said, ensure_ascii=True, separators=(",", ":"))


def _entry(said: dict[str, object]) -> Entry:
    path, size, sha256, link = said["path"], said.get("size", 0), said.get("sha256", ""), said.get("link")
    is_told = isinstance(path, str) and isinstance(size, int) and isinstance(sha256, str)
    if not is_told or not isinstance(link, str | None):
        raise ValueError(f"{said!r:.200} is no entry")
    return Entry(str(path), int(str(size)), str(sha256), bool(said.get("x", False)), link)


def _check_entry(entry: Entry) -> None:
    parts = entry.path.split("/")
    is_named = all(part not in ("", ".", "..") and len(_bytes(part)) <= MAX_NAME_BYTES for part in parts)
    if not is_named or "\0" in entry.path or len(_bytes(entry.path)) > MAX_PATH_BYTES:
        raise InvalidRequest(f"{entry.path!r:.200} cannot be the name of a file in a dataset")
    if entry.link is not None:
        if entry.size or entry.sha256 or entry.is_program or not leads_inside(entry.path, entry.link):
            raise InvalidRequest(f"the link {entry.path!r} leads out of the tree")
    elif entry.size < 0 or not _SHA256.match(entry.sha256):
        raise InvalidRequest(f"{entry.path!r} has no size or no sha256")


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest(f"{text!r} is no valid UTF-8; rename it") from None


def _folders(path: str) -> Iterator[str]:
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _parts(sha256: str, size: int) -> Iterator[Stowed]:
    for offset in range(0, size, OBJECT_BYTES):
        yield _stowed([Piece(sha256, offset, min(OBJECT_BYTES, size - offset))])


def _packs(pieces: Iterable[Piece]) -> Iterator[Stowed]:
    pack: list[Piece] = []
    size = 0
    for piece in pieces:
        if size + piece.size > OBJECT_BYTES:
            yield _stowed(pack)
            pack, size = [], 0
        pack.append(piece)
        size += piece.size
        if piece.sha256.startswith(PACK_ENDS):
            yield _stowed(pack)
            pack, size = [], 0
    if pack:
        yield _stowed(pack)


def _stowed(pieces: Sequence[Piece]) -> Stowed:
    said = "".join(f"{piece.sha256} {piece.offset} {piece.size}\n" for piece in pieces)
    return Stowed(hashlib.sha256(said.encode()).hexdigest(), _size(pieces), tuple(pieces))


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.size for piece in pieces)
