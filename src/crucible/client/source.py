"""Which files of a folder are shipped: everything but `.git` and what ignore files name, links as what they point to.
Refuses links that leave the folder. Reads names and sizes, not contents."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crucible.client import ignore
from crucible.client.ignore import Ignores, Rule
from crucible.model.errors import InvalidSpec, TooLarge
from crucible.spec.problems import NOWHERE, Problem, invalid_spec, shown

MAX_FILES = 100_000
MAX_BYTES = 512 * 1024**2
MAX_NAME = 1024  # agents refuse longer ones
MAX_FOLDERS = 100_000  # links to folders can multiply them

_IGNORE_FILES = (".gitignore", ".crucibleignore")  # the last has the last word
_GIT = ".git"


@dataclass(frozen=True, slots=True)
class SourceFile:
    name: str  # in the package: relative, with /
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class _Folder:
    path: Path
    name: str  # in the package; "" is the root
    key: bytes  # relative to the topmost ignore file's folder
    ignores: Ignores
    around: frozenset[tuple[int, int]]  # devices and inodes of the folders it is in, itself included


def files_under(root: Path) -> list[SourceFile]:
    """The files to ship from the folder `root`, by name."""
    found: list[SourceFile] = []
    total = 0
    for file in _walk(root):
        found.append(file)
        total += file.size
        if len(found) > MAX_FILES or total > MAX_BYTES:
            raise too_large(root, found)
    return sorted(found, key=lambda file: file.name.encode())


def cannot_ship(name: str, reason: str, hint: str) -> InvalidSpec:
    return invalid_spec([Problem(*NOWHERE, "job.code", f"cannot ship {shown(name)}: {reason}", hint)])


def unreadable(name: str, error: OSError) -> InvalidSpec:
    """What `error`, met while reading `name`, means to the user."""
    if isinstance(error, FileNotFoundError):
        return cannot_ship(name, "it vanished while it was packed", "try again when nothing changes the folder")
    if error.errno is None:
        return cannot_ship(name, "it became shorter while it was packed", "try again when nothing changes the folder")
    reason = (error.strerror or str(error)).lower()
    return cannot_ship(name, reason, "make it readable or name it in .crucibleignore")


def too_large(root: Path, found: list[SourceFile]) -> TooLarge:
    """Names what takes the room, since that is what belongs into an ignore file."""
    sizes: dict[str, int] = {}
    for file in found:
        top = file.name.partition("/")[0]
        sizes[top] = sizes.get(top, 0) + file.size
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    parts = ", ".join(f"{shown(name)} {sizes[name] / 1024**2:.0f} MiB" for name in largest)
    message = (
        f"job.code: {root} has more than {MAX_BYTES // 1024**2} MiB or {MAX_FILES} files to ship "
        f"(largest so far: {parts}); name what the job does not need in .crucibleignore"
    )
    return TooLarge(message, field="job.code")


def _walk(root: Path) -> Iterator[SourceFile]:
    top = root.resolve()
    waiting = [_root_folder(top)]
    folders = 0
    while waiting:
        folder = waiting.pop()
        folders += 1
        if folders > MAX_FOLDERS:
            raise cannot_ship(str(root), f"more than {MAX_FOLDERS} folders", "do links multiply them?")
        for entry in _entries(folder):
            found = _look(entry, folder, top)
            if isinstance(found, _Folder):
                waiting.append(found)
            elif found is not None:
                yield found


def _root_folder(top: Path) -> _Folder:
    """The root with the rules of the git repository around it, if there is one."""
    repository = next((path for path in (top, *top.parents) if _is_repository(path)), top)
    inner = top.relative_to(repository)
    ignores = Ignores()
    for above in reversed(inner.parents):
        ignores = ignores.below(_key(above), _rules(repository / above, str(above)))
    outside = _Folder(top, "", b"", ignores, frozenset())
    return _inner_folder(top, "", _key(inner), outside, _status(top, "."))


def _is_repository(path: Path) -> bool:
    try:
        return (path / _GIT).exists()
    except OSError:
        return False  # a folder above that we may not look into has no say


def _key(relative: Path) -> bytes:
    return b"" if relative == Path() else os.fsencode(relative)


def _entries(folder: _Folder) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder.path) as entries:
            return [entry for entry in entries if entry.name != _GIT]
    except OSError as error:
        raise unreadable(folder.name or ".", error) from None


def _look(entry: os.DirEntry[str], folder: _Folder, top: Path) -> SourceFile | _Folder | None:
    """A file to ship, a folder to look into, or nothing."""
    name = f"{folder.name}/{entry.name}" if folder.name else entry.name
    key = (folder.key + b"/" if folder.key else b"") + os.fsencode(entry.name)
    if folder.ignores.covers(key, entry.is_dir(follow_symlinks=False)):
        return None
    path = _inside(entry, name, top) if entry.is_symlink() else Path(entry.path)
    status = _status(path, name)
    if stat.S_ISDIR(status.st_mode):
        return _inner_folder(path, name, key, folder, status)
    if not stat.S_ISREG(status.st_mode):
        return None  # sockets, pipes and devices mean nothing elsewhere
    return SourceFile(_portable(name), path, status.st_size)


def _inner_folder(path: Path, name: str, key: bytes, outer: _Folder, status: os.stat_result) -> _Folder:
    identity = (status.st_dev, status.st_ino)
    if identity in outer.around:
        hint = "remove the link or name it in .crucibleignore"
        raise cannot_ship(name, "the link points to a folder around it", hint)
    return _Folder(path, name, key, outer.ignores.below(key, _rules(path, name)), outer.around | {identity})


def _inside(entry: os.DirEntry[str], name: str, top: Path) -> Path:
    """What the link points to, if that is in the folder too."""
    hint = "remove the link, copy the file, or name it in .crucibleignore"
    try:
        target = Path(entry.path).resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        raise cannot_ship(name, "the link points to nothing", hint) from None
    if not target.is_relative_to(top) or _GIT in target.relative_to(top).parts:
        raise cannot_ship(name, "the link leaves the folder", hint)
    return target


def _rules(folder: Path, name: str) -> tuple[Rule, ...]:
    return tuple(rule for file in _IGNORE_FILES for rule in ignore.parse(_content(folder / file, name or ".")))


def _content(path: Path, folder: str) -> bytes:
    """Of an ignore file; nothing if it is missing or, as for git, not a regular file of its own."""
    try:
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else b""
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unreadable(f"{folder}/{path.name}", error) from None


def _status(path: Path, name: str) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise unreadable(name, error) from None


def _portable(name: str) -> str:
    """`name`, if every node takes it."""
    hint = "rename it or name it in .crucibleignore"
    try:
        name.encode()
    except UnicodeEncodeError:
        raise cannot_ship(name, "its name is not UTF-8", hint) from None
    if "\\" in name:
        raise cannot_ship(name, "its name has a backslash", hint)
    if len(name) > MAX_NAME:
        raise cannot_ship(name, f"its path is longer than {MAX_NAME} characters", hint)
    return name
