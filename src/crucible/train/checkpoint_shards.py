"""Manifests as they lie in a step's folder, each with the parts that it speaks of. Reads, and changes nothing."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import List, NamedTuple, Tuple

from .checkpoint_layout import Edition
from .checkpoint_manifest import MAX_MANIFEST_BYTES, InvalidManifest, Manifest, decode
from .durable import open_plain


class Shard(NamedTuple):
    """What one process saved. A checkpoint that is not sharded is one of these."""

    folder: str  # of the step
    manifest: Manifest
    manifest_sha256: str

    @property
    def root(self) -> str:
        return os.path.join(self.folder, self.manifest.root)

    @property
    def path(self) -> Path:
        """What was saved: the file, or the folder."""
        root = Path(self.root)
        return root if self.manifest.is_folder else root / self.manifest.parts[0].name


def list_names(folder: str) -> List[str]:
    """Empty if there is no such folder."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_edition(folder: str, step: int, edition: Edition) -> Tuple[Shard, ...]:
    """All of its shards, in order. Raises InvalidManifest and OSError."""
    if not edition.is_complete:
        raise InvalidManifest(
            "of attempt {}, {} of {} shards are there".format(edition.attempt, edition.present, edition.shards)
        )
    shards = tuple(read_manifest(folder, name) for name in edition.names)
    for number, shard in enumerate(shards):
        _check_place(shard.manifest, step, edition, number)
    return shards


def read_manifest(folder: str, name: str) -> Shard:
    """Whatever it says of its place. Raises InvalidManifest and OSError."""
    try:
        with io.BufferedReader(open_plain(os.path.join(folder, name))) as file:
            data = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        raise InvalidManifest("it was never committed (no {})".format(name)) from None
    if len(data) > MAX_MANIFEST_BYTES:
        raise InvalidManifest("the manifest is longer than {} bytes".format(MAX_MANIFEST_BYTES))
    return Shard(folder, decode(data), hashlib.sha256(data).hexdigest())


def _check_place(manifest: Manifest, step: int, edition: Edition, number: int) -> None:
    """A manifest that lies under another name than it was saved under proves nothing here."""
    if manifest.step != step:
        raise InvalidManifest("the manifest is that of step {}".format(manifest.step))
    attempt = manifest.origin.attempt if edition.attempt is not None else None
    if (attempt, manifest.shard, manifest.shards) != (edition.attempt, number, edition.shards):
        raise InvalidManifest(
            "the manifest {} is that of shard {} of {}, attempt {}".format(
                edition.names[number], manifest.shard, manifest.shards, manifest.origin.attempt
            )
        )
