"""Files and folders as a stream: packed at one end of a channel, unpacked at the other by somebody who trusts nothing.

A stream is a tar archive whose names all begin with one, that of what was copied. Only regular files and folders go in
and come out; a link on either side is neither followed nor written through. The thin client imports this module too: it
needs nothing but itself."""

from __future__ import annotations

import os
import stat
import tarfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Callable, Iterator, List, Optional, Tuple

MAX_FILES = 1_000_000
_MAX_NAME_BYTES = 4096
_CHUNK_BYTES = 1 << 18
# So much of a disk is left to others.
_LEFT_FREE_BYTES = 64 << 20


class Uncopied(Exception):
    """In words for a person."""


# --- packing --------------------------------------------------------------------------------------


def pack(path: str, out: IO[bytes], note: Callable[[str], None]) -> Tuple[int, int]:
    """How many files and bytes; `note` hears of everything that is left out. Raises Uncopied, OSError."""
    files = size = 0
    root = os.path.realpath(path)
    name = os.path.basename(os.path.abspath(path)) or "root"
    try:
        found = os.stat(root)
    except OSError as error:
        raise Uncopied("%s: %s" % (path, error.strerror)) from error
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise Uncopied("%s is neither a file nor a folder" % path)
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK_BYTES) as archive:
        for below, at in _walk(root, name, note):
            written = _add(archive, below, at)
            files, size = files + (written is not None), size + (written or 0)
            archive.members = []  # type: ignore[attr-defined]  # else it remembers every file
    return files, size


def _walk(path: str, name: str, note: Callable[[str], None]) -> Iterator[Tuple[str, str]]:
    """Path and name of what is to be copied, folders before what they hold."""
    pending = [(path, name)]
    while pending:
        at, name = pending.pop()
        mode = os.lstat(at).st_mode
        if stat.S_ISREG(mode):
            yield at, name
        elif stat.S_ISDIR(mode):
            yield at, name
            entries = sorted(os.listdir(at), reverse=True)
            pending += [(os.path.join(at, entry), "%s/%s" % (name, entry)) for entry in entries]
        else:
            note("left out %r: neither a file nor a folder" % name)


def _add(archive: tarfile.TarFile, path: str, name: str) -> Optional[int]:
    """The size of a file; None for a folder."""
    found = os.lstat(path)
    member = tarfile.TarInfo(name)
    member.mtime = int(found.st_mtime)
    member.mode = 0o755 if found.st_mode & 0o100 else 0o644
    if stat.S_ISDIR(found.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
        return None
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        member.size = os.fstat(file.fileno()).st_size
        try:
            archive.addfile(member, file)
        except OSError as error:
            if "unexpected end of data" not in str(error):
                raise
            raise Uncopied("%s became shorter while it was read; copy it again" % path) from error
    return member.size


# --- unpacking ------------------------------------------------------------------------------------


def unpack(source: IO[bytes], target: str) -> Tuple[int, int]:
    """Puts what comes at `target`; below it, if that is a folder or ends with "/". Each file is whole or absent.

    Returns how many files and bytes. Raises Uncopied, OSError."""
    files = size = 0
    place = Place(target)
    try:
        with tarfile.open(fileobj=source, mode="r|", bufsize=_CHUNK_BYTES) as archive:
            for count, member in enumerate(archive, 1):
                archive.members = []  # type: ignore[attr-defined]
                if count > MAX_FILES:
                    raise Uncopied("there are more than %d files" % MAX_FILES)
                _put(archive, member, place.of(member.name))
                files += member.isreg()
                size += member.size if member.isreg() else 0
            _drain(source)
    except tarfile.TarError as error:
        raise Uncopied("what came is not a whole archive: %s" % error) from error
    if not files and not os.path.isdir(target):
        raise Uncopied("nothing came")
    return files, size


class Place:
    """Where the files of a stream go."""

    def __init__(self, target: str) -> None:
        if target.endswith("/"):
            os.makedirs(target, exist_ok=True)
        self._target = target
        self._is_folder = os.path.isdir(target)
        self._first = ""

    def of(self, name: str) -> str:
        """Raises Uncopied for a name that leads elsewhere."""
        first, *rest = _parts(name)
        if self._first not in ("", first):
            raise Uncopied("names begin differently: %r" % name[:200])
        self._first = first
        path = os.path.join(self._target, first) if self._is_folder else self._target
        _refuse_link(path, name)
        for part in rest:
            path = os.path.join(path, part)
            _refuse_link(path, name)
        return path


def _refuse_link(path: str, name: str) -> None:
    if os.path.islink(path):
        raise Uncopied("%r would be written through a link, %s" % (name[:200], path))


def _parts(name: str) -> List[str]:
    parts = name.split("/")
    is_odd = any(part in ("", ".", "..") for part in parts) or "\0" in name
    if is_odd or len(os.fsencode(name)) > _MAX_NAME_BYTES:
        raise Uncopied("a name points elsewhere: %r" % name[:200])
    return parts


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    if member.isdir():
        os.makedirs(path, exist_ok=True)
    elif member.isreg() and not member.issparse():
        _write(archive, member, path)
    else:
        raise Uncopied("%r is neither a file nor a folder" % member.name[:200])


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    if os.path.isdir(path):
        raise Uncopied("%s is a folder, and a file was to be written there" % path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise Uncopied("there is no folder %s; make it first" % folder)
    _check_room(folder, member.size)
    source = archive.extractfile(member)
    assert source is not None, "a regular file has a body"
    draft = os.path.join(folder, ".crucible-%d.part" % os.getpid())
    mode = 0o777 if member.mode & 0o100 else 0o666
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in iter(lambda: source.read(_CHUNK_BYTES), b""):
                file.write(chunk)
        os.utime(draft, (member.mtime, member.mtime))
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def _check_room(folder: str, size: int) -> None:
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free - size < _LEFT_FREE_BYTES:
        raise Uncopied("there is no room at %s: %d bytes are to come, %d are free" % (folder, size, free))


def _drain(source: IO[bytes]) -> None:
    """What follows the end of the archive: whoever packs must not find its reader gone."""
    while source.read(_CHUNK_BYTES):
        pass
