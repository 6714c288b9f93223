"""Checkpoints in a folder, committed in two phases: the parts first, the manifest last. Whatever a crash leaves
behind is either a whole checkpoint or none. Trusts no hint of which is the newest: it looks, newest first, and checks.

    step-000000300/
        parts-5f0c…/        the files, renamed from .tmp-5f0c… when all were flushed
        manifest.json       names, sizes and SHA-256; linked into place, the first commit wins
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import time
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Union

from .checkpoint_manifest import (
    MAX_MANIFEST_BYTES,
    MAX_METADATA_BYTES,
    InvalidManifest,
    Manifest,
    Origin,
    decode,
    encode,
)
from .checkpoint_parts import BadSource, CorruptParts, PartHashes, Source, check_sizes, copy_parts, find_source
from .durable import make_folder, publish, sync_folder, write_new
from .numbers import plain

MANIFEST = "manifest.json"
DRAFT = ".manifest-"
TMP = ".tmp-"
PARTS = "parts-"

_STEP = re.compile(r"step-(\d{9,18})\Z")
MAX_STEP = 10**18 - 1

FilePath = Union[str, "os.PathLike[str]"]


class CheckpointError(Exception):
    """A checkpoint could not be saved or read; nothing was half-committed. The message says what to do."""


class CorruptCheckpoint(CheckpointError):
    """It is there, but it is not what was saved."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__("the checkpoint of step {} is not usable: {}".format(step, reason))
        self.step = step
        self.reason = reason


@dataclass(frozen=True)
class Checkpoint:
    step: int
    uri: str
    path: Path  # what was saved: the file, or the folder
    size_bytes: int
    manifest_sha256: str
    created_ms: int
    origin: Origin
    metadata: Dict[str, Any]


def store_path(location: str) -> str:
    """The folder that `location` means: a path or a file:// URI. Raises CheckpointError for other kinds of storage."""
    scheme, has_scheme, _ = location.partition("://")
    if not has_scheme:
        return os.path.abspath(location)
    address = urllib.parse.urlsplit(location)
    if scheme.lower() != "file" or address.netloc not in ("", "localhost") or not address.path.startswith("/"):
        raise CheckpointError(
            "checkpoints cannot be kept at {}: give a folder as a path or as file:///absolute/path".format(location)
        )
    return os.path.abspath(urllib.parse.unquote(address.path, errors="surrogateescape"))


class CheckpointStore:
    def __init__(self, location: str) -> None:
        self.root = store_path(location)
        self._hashes = PartHashes()

    def commit(
        self, source: FilePath, step: int, metadata: Optional[Mapping[str, Any]] = None, origin: Optional[Origin] = None
    ) -> Checkpoint:
        """Save the file or folder `source` as the checkpoint of `step`. If that step has a valid one, that one is
        returned and nothing is written. Raises CheckpointError."""
        checked, facts = valid_step(step), _valid_metadata(metadata)
        with _explained("step {} was not saved".format(checked), self.root):
            existing = self.find(checked)
            if existing is not None:
                return existing
            found = self._find_source(os.fspath(source))
            return self._commit(found, checked, facts, origin or Origin())

    def find(self, step: int) -> Optional[Checkpoint]:
        """The checkpoint of `step` if it is there and every byte of it is right."""
        try:
            return self.verify(step)
        except CorruptCheckpoint:
            return None

    def verify(self, step: int) -> Checkpoint:
        """Reads every byte. Raises CorruptCheckpoint, also if there is none."""
        return self._checked(
            step, lambda folder, manifest: self._hashes.check(folder, manifest, is_memory_enough=False)
        )

    def glance(self, step: int) -> Checkpoint:
        """As `verify`, but of the parts only presence and size."""
        return self._checked(step, check_sizes)

    def is_valid(self, step: int) -> bool:
        """As `verify`, but files that this store has hashed before and that did not change are not read again."""
        try:
            self._checked(step, lambda folder, manifest: self._hashes.check(folder, manifest, is_memory_enough=True))
        except CorruptCheckpoint:
            return False
        return True

    def latest(self, on_skip: Callable[[CorruptCheckpoint], None]) -> Optional[Checkpoint]:
        """The newest valid checkpoint; each newer one that is not valid goes to `on_skip`."""
        for step in self.steps():
            try:
                return self.verify(step)
            except CorruptCheckpoint as problem:
                on_skip(problem)
        return None

    def committed(self) -> List[Checkpoint]:
        """Newest first, those that pass `glance`."""
        found = []
        for step in self.steps():
            with contextlib.suppress(CorruptCheckpoint):
                found.append(self.glance(step))
        return found

    def steps(self) -> List[int]:
        """Newest first, every step that has a folder, whatever is in it. Raises CheckpointError: a store that cannot be
        read is not an empty one."""
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CheckpointError("the checkpoints in {} cannot be listed: {}".format(self.root, error)) from error
        steps = [int(match.group(1)) for match in map(_STEP.match, names) if match]
        return sorted((step for step in steps if _folder_name(step) in names), reverse=True)

    def folder(self, step: int) -> str:
        return os.path.join(self.root, _folder_name(step))

    def discard(self, step: int) -> None:
        """Remove a checkpoint, its manifest first: half a removal is no checkpoint, never a wrong one."""
        folder = self.folder(step)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, MANIFEST))
            sync_folder(folder)
        self._hashes.forget(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _find_source(self, path: str) -> Source:
        here = os.path.realpath(path)
        if os.path.isdir(path) and (os.path.realpath(self.root) + os.sep).startswith(here + os.sep):
            raise BadSource("the folder {} contains the checkpoints themselves; save another one".format(path))
        return find_source(path)

    def _commit(self, source: Source, step: int, metadata: Dict[str, Any], origin: Origin) -> Checkpoint:
        folder, nonce = self.folder(step), secrets.token_hex(8)
        make_folder(folder)
        tmp, root, draft = (os.path.join(folder, kind + nonce) for kind in (TMP, PARTS, DRAFT))
        is_ours = False
        try:
            parts = copy_parts(source, tmp)
            os.rename(tmp, root)
            manifest = Manifest(step, PARTS + nonce, parts, source.is_folder, _now_ms(), origin, metadata)
            write_new(draft, encode(manifest))
            sync_folder(folder)
            is_ours = self._publish(draft, step)
            sync_folder(folder)
        finally:
            _remove(draft)
            for leftover in (tmp,) if is_ours else (tmp, root):
                shutil.rmtree(leftover, ignore_errors=True)
        if not is_ours:
            return self.verify(step)
        self._hashes.trust(root, parts)
        return self._checkpoint(manifest, encode(manifest))

    def _publish(self, draft: str, step: int) -> bool:
        """False if another saver was first. A manifest that is not valid is replaced; should two savers replace it at
        once, the later wins, and at every moment there is a valid one."""
        target = os.path.join(self.folder(step), MANIFEST)
        if publish(draft, target):
            return True
        if self.find(step) is not None:
            return False
        os.replace(draft, target)
        return True

    def _checked(self, step: int, check: Callable[[str, Manifest], None]) -> Checkpoint:
        try:
            data = self._read_manifest(step)
            manifest = decode(data)
            if manifest.step != step:
                raise InvalidManifest("the manifest is that of step {}".format(manifest.step))
            check(os.path.join(self.folder(step), manifest.root), manifest)
        except (InvalidManifest, CorruptParts) as error:
            raise CorruptCheckpoint(step, str(error)) from error
        except OSError as error:
            raise CorruptCheckpoint(step, "it cannot be read: {}".format(error)) from error
        return self._checkpoint(manifest, data)

    def _read_manifest(self, step: int) -> bytes:
        try:
            with open(os.path.join(self.folder(step), MANIFEST), "rb") as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
        except FileNotFoundError:
            raise InvalidManifest("it was never committed (no {})".format(MANIFEST)) from None
        if len(data) > MAX_MANIFEST_BYTES:
            raise InvalidManifest("the manifest is longer than {} bytes".format(MAX_MANIFEST_BYTES))
        return data

    def _checkpoint(self, manifest: Manifest, data: bytes) -> Checkpoint:
        folder = Path(self.folder(manifest.step))
        root = folder / manifest.root
        return Checkpoint(
            step=manifest.step,
            uri=folder.as_uri(),
            path=root if manifest.is_folder else root / manifest.parts[0].name,
            size_bytes=manifest.size_bytes,
            manifest_sha256=hashlib.sha256(data).hexdigest(),
            created_ms=manifest.created_ms,
            origin=manifest.origin,
            metadata=manifest.metadata,
        )


def _folder_name(step: int) -> str:
    return "step-{:09d}".format(step)


def valid_step(step: Any) -> int:
    """`step` as a plain integer. Raises CheckpointError."""
    try:
        whole = int(step)
    except (TypeError, ValueError):
        raise CheckpointError("the step must be a whole number, not {!r}".format(step)) from None
    if whole != step or not 0 <= whole <= MAX_STEP:
        raise CheckpointError("the step must be a whole number from 0 on, not {!r}".format(step))
    return whole


def _valid_metadata(metadata: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    try:
        facts = plain(dict(metadata or {}))
        size = len(json.dumps(facts))
    except (TypeError, ValueError, RecursionError) as error:
        raise CheckpointError("the metadata must be JSON values: {}".format(error)) from error
    if size > MAX_METADATA_BYTES:
        raise CheckpointError(
            "the metadata has {} bytes, more than {}: put it into a file of the checkpoint".format(
                size, MAX_METADATA_BYTES
            )
        )
    return dict(facts)


@contextlib.contextmanager
def _explained(what: str, root: str) -> Iterator[None]:
    try:
        yield
    except BadSource as error:
        raise CheckpointError("{}: {}".format(what, error)) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "no space left in {}; free some, or keep fewer checkpoints (checkpoint.keep in the job)".format(root)
            raise CheckpointError("{}: {}".format(what, hint)) from error
        raise CheckpointError("{}: {}".format(what, error)) from error


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _now_ms() -> int:
    return int(time.time() * 1000)
