"""The files of a checkpoint: found at their source, copied, and compared with a manifest. Follows links to files,
refuses what it could not give back as it was: links to folders, pipes, an empty folder."""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple

from .checkpoint_manifest import MAX_PARTS, PIECE_BYTES, Manifest, Part
from .durable import copy_hashed, copy_quickly, file_pieces, settle, sync_folder

# Coarser than the time stamps of any file system in use: a file changed within it may look unchanged.
STAMP_S = 0.1

Signature = Tuple[int, int, int, int]


class BadSource(ValueError):
    """What was given to save cannot be a checkpoint; the message says why."""


class CorruptParts(ValueError):
    """The files are not what the manifest says."""


class Source(NamedTuple):
    is_folder: bool
    files: List[Tuple[str, str]]  # part name, path


def find_source(path: str) -> Source:
    """The files under `path`, in a fixed order. Raises BadSource and OSError."""
    if not os.path.isdir(path):
        return Source(False, [(os.path.basename(os.path.abspath(path)), path)])
    files = [(os.path.relpath(found, path).replace(os.sep, "/"), found) for found in sorted(_walk(path))]
    if not files:
        raise BadSource("the folder {} has no files".format(path))
    if len(files) > MAX_PARTS:
        raise BadSource("the folder {} has {} files; {} are the most".format(path, len(files), MAX_PARTS))
    return Source(True, files)


def copy_parts(source: Source, target: str) -> Tuple[Part, ...]:
    """Copy everything into the new folder `target` and flush it."""
    parts = [Part(name, *copy_hashed(path, copy, PIECE_BYTES)) for name, path, copy in _copies(source, target)]
    _sync_tree(target)
    return tuple(parts)


def take_parts(source: Source, target: str) -> None:
    """Copy everything into the new folder `target`, quickly; `settle_parts` hashes and flushes it."""
    for _, path, copy in _copies(source, target):
        copy_quickly(path, copy)


def settle_parts(source: Source, target: str) -> Tuple[Part, ...]:
    """What `take_parts` copied, whatever has become of the source since."""
    parts = [Part(name, *settle(_inside(target, name), PIECE_BYTES)) for name, _ in source.files]
    _sync_tree(target)
    return tuple(parts)


def _copies(source: Source, target: str) -> Iterator[Tuple[str, str, str]]:
    """Part name, path, and where its copy goes, in a folder that is there."""
    os.makedirs(target)
    for name, path in source.files:
        copy = _inside(target, name)
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        yield name, path, copy


def _inside(folder: str, name: str) -> str:
    return os.path.join(folder, *name.split("/"))


def _sync_tree(top: str) -> None:
    for folder, _, _ in os.walk(top):
        sync_folder(folder)


def check_sizes(folder: str, manifest: Manifest) -> None:
    """Every part is there, a regular file inside `folder`, as long as it should be. Raises CorruptParts and OSError."""
    base = os.path.realpath(folder)
    for part in manifest.parts:
        _check_size(base, part)


class PartHashes:
    """Remembers which files were hashed, so that retention need not read every checkpoint again at every save."""

    def __init__(self) -> None:
        self._known: Dict[str, Tuple[Signature, Tuple[str, ...]]] = {}

    def check(self, folder: str, manifest: Manifest, *, is_memory_enough: bool) -> None:
        """Every part is what the manifest says. Raises CorruptParts and OSError."""
        base = os.path.realpath(folder)
        for part in manifest.parts:
            path, info = _check_size(base, part)
            if is_memory_enough and self._known.get(path) == (_signature(info), part.pieces):
                continue
            if file_pieces(path, manifest.piece_bytes) != part.pieces:
                raise CorruptParts("the part {!r} has other content than was saved".format(part.name))
            self._remember(path, info, part.pieces)

    def trust(self, folder: str, parts: Iterable[Part]) -> None:
        """They were hashed while they were copied."""
        base = os.path.realpath(folder)
        for part in parts:
            path, info = _check_size(base, part)
            self._remember(path, info, part.pieces)

    def forget(self, folder: str) -> None:
        prefix = os.path.realpath(folder) + os.sep
        for path in list(self._known):  # another thread may remember something meanwhile
            if path.startswith(prefix):
                self._known.pop(path, None)

    def _remember(self, path: str, info: os.stat_result, pieces: Tuple[str, ...]) -> None:
        if time.time() - info.st_mtime > STAMP_S:
            self._known[path] = (_signature(info), pieces)


def _walk(top: str) -> Iterator[str]:
    for folder, names, files in os.walk(top, onerror=_raise):
        for name in names:
            if os.path.islink(os.path.join(folder, name)):
                raise BadSource("{} is a link to a folder; save the folder itself".format(os.path.join(folder, name)))
        for name in files:
            yield os.path.join(folder, name)


def _raise(error: OSError) -> None:
    raise error


def _check_size(base: str, part: Part) -> Tuple[str, os.stat_result]:
    path = _inside(base, part.name)
    try:
        info = os.lstat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise CorruptParts("the part {!r} is missing".format(part.name)) from error
        raise
    # Not through a link, not even in the middle of the name: the bytes checked are the bytes used.
    if not stat.S_ISREG(info.st_mode) or os.path.realpath(path) != path:
        raise CorruptParts("the part {!r} is not a plain file".format(part.name))
    if info.st_size != part.size:
        raise CorruptParts("the part {!r} has {} bytes instead of {}".format(part.name, info.st_size, part.size))
    return path, info


def _signature(info: os.stat_result) -> Signature:
    """Not when its inode changed: an agent that uploads it links it elsewhere and removes that link."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns
