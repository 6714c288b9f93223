"""The manifest of a dataset as a node reads it, and how its tree is made on disk. Names that would lead elsewhere
refuse the whole of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

from .package import BadPackage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List

HEAD = b'{"crucible_dataset":1}'
MAX_MANIFEST_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20


class BadDataset(BadPackage):
    """It will not become better by trying again. The message says why."""


class File:
    __slots__ = ("is_program", "path", "sha256", "size")

    def __init__(self, path: str, size: int, sha256: str, is_program: bool) -> None:
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.is_program = is_program


class Manifest:
    """Raises BadDataset for anything but the manifest of `digest`."""

    def __init__(self, data: bytes, digest: str) -> None:
        if hashlib.sha256(data).hexdigest() != digest:
            raise BadDataset("the manifest of dataset %s has other bytes than were registered" % digest[:12])
        self.data = data
        self.files: List[File] = []
        self.links: Dict[str, str] = {}
        try:
            head, *lines = data.splitlines()
            if head != HEAD:
                raise ValueError("it is of another version")
            for line in lines:
                self._add(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadDataset("the manifest of dataset %s cannot be read: %s" % (digest[:12], error)) from error
        self.size = sum(file.size for file in self.files)
        # The first file of each content; the others are made from it.
        self.first: Dict[str, File] = {}
        for file in self.files:
            self.first.setdefault(file.sha256, file)

    def _add(self, said: Dict[str, object]) -> None:
        path, link = str(said["path"]), said.get("link")
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in path or path in self.links:
            raise ValueError("a file cannot be called %r" % path)
        if any("/".join(parts[:depth]) in self.links for depth in range(1, len(parts))):
            raise ValueError("%r lies below a link" % path)
        if link is None:
            self.files.append(File(path, int(str(said["size"])), str(said["sha256"]), bool(said.get("x"))))
        elif leads_inside(path, str(link)):
            self.links[path] = str(link)
        else:
            raise ValueError("the link %r leads out of the tree" % path)


def leads_inside(path: str, link: str) -> bool:
    parts = [part for part in link.split("/") if part not in ("", ".")]
    ups = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    is_plain = bool(link) and not link.startswith("/") and "\0" not in link and ".." not in parts[ups:]
    return is_plain and ups <= path.count("/")


# --- on disk ------------------------------------------------------------------------------------------------


def make_files(tree: str, manifest: Manifest) -> None:
    """Those that bytes will come for, of their full size; what is there already stays. Raises OSError."""
    for file in manifest.first.values():
        path = os.path.join(tree, file.path)
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            os.ftruncate(descriptor, file.size)
        finally:
            os.close(descriptor)


def finish(tree: str, manifest: Manifest) -> None:
    """Files of the same content, links, and nobody may write any more. Raises OSError."""
    for file in manifest.files:
        path, first = os.path.join(tree, file.path), manifest.first[file.sha256]
        if first is not file:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            _remove_file(path)
            shutil.copyfile(os.path.join(tree, first.path), path)
        os.chmod(path, 0o555 if file.is_program else 0o444)
    for name, link in manifest.links.items():
        path = os.path.join(tree, name)
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        _remove_file(path)
        os.symlink(link, path)
    for folder, _, _ in os.walk(tree, topdown=False):
        os.chmod(folder, 0o555)  # noqa: S103 - a container may read it as another user


def is_whole(tree: str, manifest: Manifest) -> bool:
    """By the sizes of its files: read-only since every byte was checked, but a disk or a root may lose some."""
    try:
        return all(os.lstat(os.path.join(tree, file.path)).st_size == file.size for file in manifest.files)
    except OSError:
        return False


def is_right(path: str, file: File) -> bool:
    digest = hashlib.sha256()
    with open(path, "rb") as source:
        for block in iter(lambda: source.read(_BLOCK_BYTES), b""):
            digest.update(block)
    return digest.hexdigest() == file.sha256


def thaw(tree: str) -> None:
    """An agent that died may have taken the right to write from some of it. Raises OSError."""
    for folder, _, files in os.walk(tree):
        os.chmod(folder, 0o755)  # noqa: S103 - as it was made
        for name in files:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o644)


def remove(folder: str) -> None:
    """Also what nobody may write; as much of it as can be."""
    for below, _, _ in os.walk(folder):
        try:
            os.chmod(below, 0o700)
        except OSError:
            pass
    shutil.rmtree(folder, ignore_errors=True)


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
