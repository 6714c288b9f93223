"""Checkpoints in storage (ADR 13): where they are kept, which are whole, in which order they are tried, what may go.
Decides by manifests that were read and checked; who may write to a slot is for others to say."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from crucible.core.stored_manifest import NodeManifest, StoredManifest, is_slot, slot_of_part
from crucible.model.attempt import Attempt, AttemptPhase, Outcome
from crucible.model.change import Change
from crucible.model.storage import is_object_storage

# The newest may turn out bad when it is needed.
MIN_KEEP = 2

MANIFESTS = "manifests/"
PARTS = "parts/"
RESULTS = "results/"

_FOLDER_MANIFEST = re.compile(r"(step-([0-9]{9,18}))/manifest(-[0-9]{5}-[0-9]{5}-of-[0-9]{5})?\.json\Z")

_SHARD_NAME = re.compile(r"manifest-([0-9]{5})-([0-9]{5})-of-([0-9]{5})\.json\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One manifest in storage, as far as decisions need it."""

    key: str
    slot: str  # "" in a folder
    step: int
    job_id: str | None
    attempt: int
    number: int
    count: int
    size_bytes: int
    objects: tuple[str, ...]
    sha256: str  # of the manifest as stored
    stored_at: datetime

    @property
    def saved_by(self) -> tuple[str | None, int]:
        return self.job_id, self.attempt


@dataclass(frozen=True, slots=True)
class Whole:
    """All shards of one step that one attempt saved, in their order."""

    shards: tuple[Shard, ...]

    @property
    def step(self) -> int:
        return self.shards[0].step

    @property
    def first(self) -> Shard:
        return self.shards[0]

    @property
    def size_bytes(self) -> int:
        return sum(shard.size_bytes for shard in self.shards)

    @property
    def stored_at(self) -> datetime:
        return max(shard.stored_at for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Removal:
    """In this order: a manifest whose objects are gone would be a torn checkpoint."""

    manifests: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()


def is_carried(place: str | None, shares_files: bool, has_carried: bool) -> bool:
    """`place` is the job's checkpoint.dir. A folder that the user names is a folder on every machine."""
    if place is not None:
        return is_object_storage(place)
    return has_carried or not shares_files


def is_given_up(attempt: Attempt | None, changes: Iterable[Change]) -> bool:
    """An attempt at work is taken for lost: the last moment to ask whether its ranks have left word."""
    if attempt is None or attempt.phase not in (AttemptPhase.STARTING, AttemptPhase.RUNNING):
        return False
    after = [change.after for change in changes if isinstance(change.after, Attempt)]
    return any(one.id == attempt.id and Outcome.LOST in (one.stop_outcome, one.outcome) for one in after)


# --- names --------------------------------------------------------------------------------------------


def manifest_key(slot: str) -> str:
    return f"{MANIFESTS}{slot}.json"


def part_keys(slot: str, first: int, count: int) -> list[str]:
    return [f"{PARTS}{slot}/{number:05d}" for number in range(first, first + count)]


def result_key(attempt_id: str, rank: int) -> str:
    return f"{RESULTS}{attempt_id}-{rank}.json"


def slot_of_manifest(key: str) -> str | None:
    slot = key.removeprefix(MANIFESTS).removesuffix(".json")
    return slot if is_slot(slot) and key == manifest_key(slot) else None


def is_carried_uri(uri: str) -> bool:
    """Whether a recorded checkpoint is the manifest of a slot."""
    place, _, name = uri.rpartition("/")
    return place.endswith("/manifests") and slot_of_manifest(f"{MANIFESTS}{name}") is not None


def rank_of_slot(slot: str) -> int:
    return int(slot.split("-")[1])


def folder_of_manifest(key: str) -> tuple[str, int] | None:
    """The folder and the step of a manifest that a machine saved there; None: it is something else."""
    found = _FOLDER_MANIFEST.match(key)
    return (found[1], int(found[2])) if found else None


def is_committed(names: Iterable[str]) -> bool:
    """Whether a folder with these files holds a checkpoint: one manifest, or those of all shards of an attempt."""
    found: dict[tuple[str, str], set[str]] = {}
    for name in names:
        if name == "manifest.json":
            return True
        shard = _SHARD_NAME.match(name)
        if shard:
            found.setdefault((shard[1], shard[3]), set()).add(shard[2])
    return any(len(shards) == int(count) for (_, count), shards in found.items())


def shard_of(manifest: StoredManifest, key: str, sha256: str, stored_at: datetime) -> Shard:
    node: NodeManifest = manifest.node
    return Shard(
        key=key,
        slot=manifest.slot,
        step=node.step,
        job_id=node.job_id,
        attempt=node.attempt,
        number=node.shard,
        count=node.shards,
        size_bytes=node.size_bytes,
        objects=tuple(one.key for one in manifest.objects),
        sha256=sha256,
        stored_at=stored_at,
    )


# --- which are whole ------------------------------------------------------------------------------------


def wholes(shards: Iterable[Shard]) -> tuple[Whole, ...]:
    """The order in which they are tried: by step, then by when they were stored. Shards of two attempts never mix; of
    one that was stored twice the later counts."""
    groups: dict[tuple[int, str | None, int, int, bool], dict[int, Shard]] = {}
    for shard in sorted(shards, key=lambda one: (one.stored_at, one.key)):
        name = (shard.step, shard.job_id, shard.attempt, shard.count, bool(shard.slot))
        groups.setdefault(name, {})[shard.number] = shard
    found = [
        Whole(tuple(group[number] for number in range(count)))
        for (_, _, _, count, _), group in groups.items()
        if len(group) == count
    ]
    return tuple(sorted(found, key=lambda one: (one.step, one.stored_at, one.first.key), reverse=True))


def newest(found: Sequence[Whole], keep: int) -> list[Whole]:
    """What stays whatever happens: the newest `keep` steps, and the `keep` steps that were stored last. The two differ
    when a job had to go back: what it saves then must not give way to what it could not use."""
    keep = max(keep, MIN_KEEP)
    latest = sorted(found, key=lambda one: (one.stored_at, one.step, one.first.key), reverse=True)
    last = list(dict.fromkeys(one.step for one in latest))[:keep]
    steps = {*sorted({one.step for one in found}, reverse=True)[:keep], *last}
    return [one for one in found if one.step in steps]


# --- what may go ------------------------------------------------------------------------------------------


def removable(
    shards: Sequence[Shard],
    unreadable: Collection[str],
    objects: Collection[str],
    *,
    keep: int,
    live: Collection[tuple[str | None, int]],
    is_open: Callable[[str], bool],
) -> Removal:
    """`shards` are all manifests that could be read, `unreadable` the slots of the others, `objects` all keys below
    parts/. `live` are attempts that may be restoring, by job and number; `is_open`: somebody may still write to a slot.
    Nothing goes while a live attempt has saved nothing whole: it may be building on anything that is there."""
    found = wholes(shards)
    if not set(live) <= {one.first.saved_by for one in found}:
        return Removal()
    kept = kept_shards(shards, found, keep, is_open) | begun_with(found, live)
    gone = [shard for shard in shards if shard not in kept]
    bad = [slot for slot in unreadable if not is_open(slot)]
    named = {key for shard in kept for key in shard.objects}
    closed = {shard.slot for shard in shards}
    loose = [key for key in objects if key not in named and _is_loose(key, closed, is_open)]
    manifests = sorted([*(shard.key for shard in gone), *(manifest_key(slot) for slot in bad)])
    return Removal(tuple(manifests), tuple(sorted(loose)))


def kept_shards(
    shards: Sequence[Shard], found: Sequence[Whole], keep: int, is_open: Callable[[str], bool]
) -> set[Shard]:
    """Of the newest whole ones; of those that may still become whole; and the last of each rank that may still write,
    for what it writes next refers to it."""
    kept = {shard for whole in newest(found, keep) for shard in whole.shards}
    newest_step: dict[tuple[str | None, int], int] = {}
    for whole in found:
        newest_step[whole.first.saved_by] = max(whole.step, newest_step.get(whole.first.saved_by, -1))
    open_ones = [shard for shard in shards if is_open(shard.slot)]
    kept |= {shard for shard in open_ones if shard.step > newest_step.get(shard.saved_by, -1)}
    last: dict[tuple[str | None, int, int], Shard] = {}
    for shard in sorted(open_ones, key=lambda one: (one.stored_at, one.step)):
        last[*shard.saved_by, rank_of_slot(shard.slot)] = shard
    return kept | set(last.values())


def begun_with(found: Sequence[Whole], live: Collection[tuple[str | None, int]]) -> set[Shard]:
    """What a live attempt may have resumed from: the first save of any of its ranks, however late, refers to it."""
    others = [whole for whole in found if whole.first.saved_by not in live] if live else []
    steps = list(dict.fromkeys(whole.step for whole in others))[:MIN_KEEP]
    return {shard for whole in others if whole.step in steps for shard in whole.shards}


def without(shards: Sequence[Shard], step: int) -> Removal:
    """What goes with the checkpoint of `step`: not what others refer to."""
    gone = [shard for shard in shards if shard.step == step]
    named = {key for shard in shards if shard.step != step for key in shard.objects}
    objects = {key for shard in gone for key in shard.objects} - named
    return Removal(tuple(sorted(shard.key for shard in gone)), tuple(sorted(objects)))


def _is_loose(key: str, closed: Collection[str], is_open: Callable[[str], bool]) -> bool:
    """A slot with a manifest is done; of one without, only what nobody can commit any more."""
    slot = slot_of_part(key)
    return slot is not None and (slot in closed or not is_open(slot))
