"""Packages of user code: fetched once, checked by their digest, unpacked by an extractor that trusts nothing.

Only regular files and folders come out, only below the target, only so many and so large. Links, devices and names
that point elsewhere refuse the whole package."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile
    from typing import List

    from .link import Link

MAX_PACKAGE_BYTES = 2 << 30
MAX_UNPACKED_BYTES = 8 << 30
MAX_FILES = 100_000
_MAX_NAME = 1024
_CHUNK_BYTES = 1 << 20
# An attempt is often followed by another one with the same code.
_KEPT = 3


class BadPackage(Exception):
    """It will not become better by trying again."""


def fetch(link: Link, folder: str, digest: str) -> str:
    """The path of the package in `folder`. Raises BadPackage, or Unanswered if it may be tried again."""
    path = os.path.join(folder, digest)
    if os.path.exists(path):
        os.utime(path)
        return path
    temporary = path + ".tmp"
    answer = link.download("/agent/v1/packages/%s" % digest, temporary, MAX_PACKAGE_BYTES)
    if answer.status != 200:
        raise BadPackage("could not fetch the code package %s: %s" % (digest[:12], answer.complaint()))
    if sha256(temporary) != digest:
        os.unlink(temporary)
        raise BadPackage("the code package %s arrived with another content than its name says" % digest[:12])
    os.replace(temporary, path)
    _prune(folder)
    return path


def unpack(path: str, target: str) -> None:
    """Makes the folder `target`, whole or not at all. Raises BadPackage."""
    # Here, because an agent whose jobs bring no code starts without it.
    import shutil
    import tarfile
    import zlib

    temporary = target + ".tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary, mode=0o700)
    try:
        with tarfile.open(path, "r:gz") as archive:
            _extract(archive, temporary)
    except (tarfile.TarError, zlib.error, EOFError, ValueError) as error:
        raise BadPackage("the code package is not a readable tar.gz archive: %s" % error) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise BadPackage("the code package holds a name twice, as a file and as a folder: %s" % error) from error
    os.rename(temporary, target)


def sha256(path: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _extract(archive: tarfile.TarFile, target: str) -> None:
    size = 0
    for count, member in enumerate(archive, 1):
        size += member.size if member.isreg() else 0
        if count > MAX_FILES or size > MAX_UNPACKED_BYTES:
            raise BadPackage("the code package holds more than %d files or %d bytes" % (MAX_FILES, MAX_UNPACKED_BYTES))
        path = os.path.join(target, *_parts(member.name))
        if member.isdir():
            os.makedirs(path, mode=0o700, exist_ok=True)
        elif member.isreg():
            _write(archive, member, path)
        else:
            raise BadPackage("the code package holds %r, which is neither a file nor a folder" % member.name)


def _parts(name: str) -> List[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name or "\\" in name or len(name) > _MAX_NAME:
        raise BadPackage("the code package holds a name that points elsewhere: %r" % name[:100])
    return parts


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    source = archive.extractfile(member)
    assert source is not None, "a regular file has a body"
    # Only the bit that says "program" is taken over: no set-user-id, no writing for others.
    mode = 0o700 if member.mode & 0o100 else 0o600
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "wb") as file:
        for chunk in iter(lambda: source.read(_CHUNK_BYTES), b""):
            file.write(chunk)


def _prune(folder: str) -> None:
    paths = [os.path.join(folder, name) for name in os.listdir(folder)]
    for path in sorted(paths, key=os.path.getmtime)[:-_KEPT]:
        os.unlink(path)
