"""Checkpoints in a folder, committed in two phases: the parts first, the manifest last. Whatever a crash leaves
behind is either a whole checkpoint or none. Trusts no hint of which is the newest: it looks, newest first, and checks.

A checkpoint is one manifest, or all shards of one attempt: those of different attempts are never mixed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from .checkpoint_draft import Draft
from .checkpoint_layout import MANIFEST, editions, folder_name, is_manifest, shard_name, step_of
from .checkpoint_manifest import InvalidManifest, Manifest, Origin, Part, encode
from .checkpoint_parts import BadSource, CorruptParts, PartHashes, Source, check_sizes, find_source
from .checkpoint_request import (
    CheckpointError,
    CorruptCheckpoint,
    FilePath,
    check_place,
    explained,
    store_path,
    valid_metadata,
    valid_step,
)
from .checkpoint_shards import Shard, list_names, read_edition, read_manifest
from .durable import sync_folder

# Outside Crucible, and of those who only look.
ALONE = Origin()


@dataclass(frozen=True)
class Checkpoint:
    """All but `shards` and `size_bytes` speaks of one shard: this rank's own where as many ranks run as saved, else the
    first. What a sharded save returns knows no other shard than its own."""

    step: int
    uri: str
    path: Path  # what was saved: the file, or the folder
    size_bytes: int  # of all `shards`
    manifest_sha256: str
    created_ms: int
    origin: Origin
    metadata: Dict[str, Any]
    shards: Tuple[Path, ...]  # in the order of the ranks that saved them; one if it was not sharded
    shard: int = 0
    shard_count: int = 1


class Save(NamedTuple):
    """What is to be committed, apart from the content."""

    step: int
    metadata: Dict[str, Any]
    is_sharded: bool


class Taken(NamedTuple):
    """Content that was copied into the store, to be committed later."""

    save: Save
    source: Source
    draft: Draft


class CheckpointStore:
    """`origin` is who saves and who looks."""

    def __init__(self, location: str, origin: Origin = ALONE) -> None:
        self.root = store_path(location)
        self.origin = origin
        self._hashes = PartHashes()
        self._own_roots: Set[str] = set()

    def commit(
        self, source: FilePath, step: int, metadata: Optional[Mapping[str, Any]] = None, *, is_sharded: bool = False
    ) -> Checkpoint:
        """Save the file or folder `source` as the checkpoint of `step`, or as this rank's shard of it. If that step has
        a valid one, that one is returned and nothing is written. Raises CheckpointError."""
        save = self._save(step, metadata, is_sharded)
        with self._explained(save), contextlib.closing(Draft(self.folder(save.step))) as draft:
            existing = self._existing(save)
            if existing is not None:
                return existing
            found = self._find_source(os.fspath(source))
            return self._publish(save, draft, draft.copy(found), found.is_folder)

    def take(
        self, source: FilePath, step: int, metadata: Optional[Mapping[str, Any]] = None, *, is_sharded: bool = False
    ) -> Taken:
        """The content of `source` as it is now, for `finish`; it may change afterwards. Raises CheckpointError."""
        save = self._save(step, metadata, is_sharded)
        draft = Draft(self.folder(save.step))
        with self._explained(save), contextlib.ExitStack() as undo:
            undo.callback(draft.close)
            found = self._find_source(os.fspath(source))
            draft.take(found)
            undo.pop_all()
        return Taken(save, found, draft)

    def finish(self, taken: Taken) -> Checkpoint:
        """As `commit`. Raises CheckpointError."""
        with self._explained(taken.save), contextlib.closing(taken.draft) as draft:
            existing = self._existing(taken.save)
            if existing is not None:
                return existing
            return self._publish(taken.save, draft, draft.settle(taken.source), taken.source.is_folder)

    def find(self, step: int) -> Optional[Checkpoint]:
        """The checkpoint of `step` if it is there and every byte of it is right."""
        try:
            return self.verify(step)
        except CorruptCheckpoint:
            return None

    def verify(self, step: int) -> Checkpoint:
        """Reads every byte. Raises CorruptCheckpoint, also if there is none."""
        return self._checkpoint(self._checked(step, self._read_through))

    def glance(self, step: int) -> Checkpoint:
        """As `verify`, but of the parts only presence and size."""
        return self._checkpoint(self._checked(step, _measure))

    def is_valid(self, step: int) -> bool:
        """As `verify`, but what was hashed before and did not change is not read again."""
        try:
            self._checked(step, self._recall)
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
        return sorted((step for step in map(step_of, names) if step is not None), reverse=True)

    def folder(self, step: int) -> str:
        return os.path.join(self.root, folder_name(step))

    def discard(self, step: int) -> None:
        """Remove a checkpoint, its manifests first: half a removal is no checkpoint, never a wrong one."""
        folder = self.folder(step)
        for name in filter(is_manifest, list_names(folder)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, name))
        with contextlib.suppress(FileNotFoundError):
            sync_folder(folder)
        self._hashes.forget(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _save(self, step: int, metadata: Optional[Mapping[str, Any]], is_sharded: bool) -> Save:
        if is_sharded:
            check_place(self.origin)
        return Save(valid_step(step), valid_metadata(metadata), is_sharded)

    def _explained(self, save: Save) -> ContextManager[None]:
        return explained("step {} was not saved".format(save.step), self.root)

    def _find_source(self, path: str) -> Source:
        here = os.path.realpath(path)
        if os.path.isdir(path) and (os.path.realpath(self.root) + os.sep).startswith(here + os.sep):
            raise BadSource("the folder {} contains the checkpoints themselves; save another one".format(path))
        return find_source(path)

    def _existing(self, save: Save) -> Optional[Checkpoint]:
        """The valid checkpoint of that step, or the shard of it that this process has saved already. One that another
        process of the same attempt left without its siblings is saved anew: it may be of another course of training."""
        try:
            return self._checkpoint([self._own(self._checked(save.step, self._recall))])
        except CorruptCheckpoint:
            pass
        if not save.is_sharded:
            return None
        try:
            shard = read_manifest(self.folder(save.step), self._name(save))
            self._recall(shard)
        except (InvalidManifest, CorruptParts, OSError):
            return None
        return self._checkpoint([shard]) if shard.root in self._own_roots else None

    def _publish(self, save: Save, draft: Draft, parts: Tuple[Part, ...], is_folder: bool) -> Checkpoint:
        manifest = Manifest(
            step=save.step,
            root=draft.root_name,
            parts=parts,
            is_folder=is_folder,
            created_ms=int(time.time() * 1000),
            origin=self.origin,
            metadata=save.metadata,
            shard=self.origin.rank if save.is_sharded else 0,
            shards=self.origin.world_size if save.is_sharded else 1,
        )
        if not draft.publish(manifest, self._name(save), lambda: save.is_sharded or self.find(save.step) is None):
            return self.verify(save.step)
        shard = Shard(self.folder(save.step), manifest, hashlib.sha256(encode(manifest)).hexdigest())
        self._hashes.trust(shard.root, parts)
        self._own_roots.add(shard.root)
        return self._checkpoint([shard])

    def _name(self, save: Save) -> str:
        who = self.origin
        return shard_name(who.attempt, who.rank, who.world_size) if save.is_sharded else MANIFEST

    def _checked(self, step: int, check: Callable[[Shard], None]) -> Tuple[Shard, ...]:
        """The shards of the newest edition that is complete and passes `check`."""
        problem = None
        folder = self.folder(step)
        try:
            found = editions(list_names(folder))
        except OSError as error:
            raise _unreadable(step, error) from error
        for edition in found:
            try:
                shards = read_edition(folder, step, edition)
                for shard in shards:
                    check(shard)
                return shards
            except (InvalidManifest, CorruptParts) as error:
                problem = problem or CorruptCheckpoint(step, str(error))
            except OSError as error:
                problem = problem or _unreadable(step, error)
        raise problem or CorruptCheckpoint(step, "it was never committed (no {})".format(MANIFEST))

    def _read_through(self, shard: Shard) -> None:
        self._hashes.check(shard.root, shard.manifest, is_memory_enough=False)

    def _recall(self, shard: Shard) -> None:
        """A sibling in this attempt hashed its shard a moment ago, as this process did its own: reading everything back
        after every save would cost each rank the whole checkpoint."""
        if self._is_of_sibling(shard.manifest):
            _measure(shard)
        else:
            self._hashes.check(shard.root, shard.manifest, is_memory_enough=True)

    def _is_of_sibling(self, manifest: Manifest) -> bool:
        saver, who = manifest.origin, self.origin
        is_same_attempt = who.attempt > 0 and (saver.job_id, saver.attempt) == (who.job_id, who.attempt)
        return is_same_attempt and manifest.shards > 1 and saver.rank != who.rank

    def _own(self, shards: Sequence[Shard]) -> Shard:
        is_same_gang = len(shards) == self.origin.world_size and 0 <= self.origin.rank < len(shards)
        return shards[self.origin.rank if is_same_gang else 0]

    def _checkpoint(self, shards: Sequence[Shard]) -> Checkpoint:
        own = self._own(shards)
        manifest = own.manifest
        return Checkpoint(
            step=manifest.step,
            uri=Path(own.folder).as_uri(),
            path=own.path,
            size_bytes=sum(shard.manifest.size_bytes for shard in shards),
            manifest_sha256=own.manifest_sha256,
            created_ms=manifest.created_ms,
            origin=manifest.origin,
            metadata=manifest.metadata,
            shards=tuple(shard.path for shard in shards),
            shard=manifest.shard,
            shard_count=manifest.shards,
        )


def _measure(shard: Shard) -> None:
    check_sizes(shard.root, shard.manifest)


def _unreadable(step: int, error: OSError) -> CorruptCheckpoint:
    return CorruptCheckpoint(step, "it cannot be read: {}".format(error))
