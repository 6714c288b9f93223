"""What is stored below one place: manifests, read a few at a time and remembered, and the checkpoints they make up. It
decides nothing. A read that fails is an error, never an absence."""

import asyncio
import hashlib
from collections import OrderedDict, deque
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from crucible.core.checkpoint import (
    MANIFESTS,
    PARTS,
    Shard,
    Whole,
    folder_of_manifest,
    shard_of,
    slot_of_manifest,
    wholes,
)
from crucible.core.stored_manifest import (
    MAX_STORED_BYTES,
    BadManifest,
    StoredManifest,
    read_node,
    read_stored,
    whole_files,
)
from crucible.engine.context import Context, log
from crucible.model.errors import NotFound, StorageFailed
from crucible.model.storage import Address
from crucible.ports.objects import ObjectFacts, Objects

T = TypeVar("T")

# Manifests of one place that are looked at, the last by name: a few checkpoints of tens of thousands of ranks.
MAX_MANIFESTS = 50_000
# Objects of one place; whoever has more is tidied in several rounds.
MAX_OBJECTS = 500_000
READS_AT_ONCE = 8
# One request to storage; a listing is many.
CALL_S = 60.0
LIST_S = 300.0
REMEMBERED = 50_000


@dataclass(frozen=True, slots=True)
class Place:
    """What lies below one address. `is_folder`: as machines save it where they share files."""

    objects: Objects
    is_folder: bool
    shards: tuple[Shard, ...]
    unreadable: tuple[str, ...] = ()  # slots, or keys in a folder
    parts: dict[str, ObjectFacts] = field(default_factory=dict)

    @property
    def wholes(self) -> tuple[Whole, ...]:
        return wholes(self.shards)


class StoredCheckpoints:
    def __init__(self, context: Context) -> None:
        self._context = context
        # By address, key, size and time: a manifest that was written anew is another one.
        self._known: OrderedDict[tuple[str, str, int, str], Shard | None] = OrderedDict()
        self._reading = asyncio.Semaphore(READS_AT_ONCE)

    async def manifests(self, address: Address) -> Place:
        """Raises StorageFailed and StorageRefused."""
        objects = self._context.storage.open(address)
        found = await self._listed(objects, MANIFESTS, MAX_MANIFESTS)
        shards, unreadable = await self._read_all(objects, found, is_folder=False)
        return Place(objects, False, shards, unreadable)

    async def everything(self, address: Address) -> Place:
        """With the objects below parts/. They are listed first: a manifest that comes meanwhile is seen, its objects
        were there before it, and none of another's is taken for nobody's."""
        objects = self._context.storage.open(address)
        parts = await self._listed(objects, PARTS, MAX_OBJECTS)
        place = await self.manifests(address)
        return Place(objects, False, place.shards, place.unreadable, {one.key: one for one in parts})

    async def folder(self, address: Address) -> Place:
        """Checkpoints as machines save them, file by file."""
        objects = self._context.storage.open(address)
        listed = await self._listed(objects, "step-", MAX_OBJECTS)
        found = [one for one in listed if folder_of_manifest(one.key) is not None]
        shards, unreadable = await self._read_all(objects, found, is_folder=True)
        return Place(objects, True, shards, unreadable, {one.key: one for one in listed})

    async def read(self, place: Place, shard: Shard) -> StoredManifest:
        """The whole manifest. Raises BadManifest if it has changed since, NotFound if it has gone."""
        data = await self.within(place.objects.get(shard.key, length=MAX_STORED_BYTES + 1))
        return parsed(data, shard.key, place.is_folder)

    async def within(self, call: Awaitable[T], seconds: float = CALL_S) -> T:
        try:
            return await self._context.clock.wait_for(call, seconds)
        except TimeoutError:
            raise StorageFailed(f"object storage did not answer within {seconds:.0f} s; try again") from None

    async def _listed(self, objects: Objects, prefix: str, most: int) -> Sequence[ObjectFacts]:
        async def gather() -> Sequence[ObjectFacts]:
            found: deque[ObjectFacts] = deque(maxlen=most)
            async for facts in objects.list(prefix):
                found.append(facts)
            return found

        return await self.within(gather(), LIST_S)

    async def _read_all(
        self, objects: Objects, found: Iterable[ObjectFacts], *, is_folder: bool
    ) -> tuple[tuple[Shard, ...], tuple[str, ...]]:
        wanted = [one for one in found if is_folder or slot_of_manifest(one.key) is not None]
        read = await asyncio.gather(*(self._shard(objects, one, is_folder) for one in wanted))
        bad = [one.key if is_folder else slot_of_manifest(one.key) or "" for one, got in read if got is None]
        return tuple(got for _, got in read if got is not None), tuple(bad)

    async def _shard(self, objects: Objects, facts: ObjectFacts, is_folder: bool) -> tuple[ObjectFacts, Shard | None]:
        name = (objects.address.uri, facts.key, facts.size, f"{facts.etag} {facts.modified_at}")
        if name in self._known:
            self._known.move_to_end(name)
            return facts, self._known[name]
        async with self._reading:
            found = await self._fresh(objects, facts, is_folder)
        self._known[name] = found
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return facts, found

    async def _fresh(self, objects: Objects, facts: ObjectFacts, is_folder: bool) -> Shard | None:
        if facts.size > MAX_STORED_BYTES:
            return None
        try:
            data = await self.within(objects.get(facts.key, length=MAX_STORED_BYTES + 1))
            sha256 = hashlib.sha256(data).hexdigest()
            return shard_of(parsed(data, facts.key, is_folder), facts.key, sha256, facts.modified_at)
        except NotFound:
            return None  # removed while we looked
        except BadManifest as problem:
            log.warning("%s in %s is not a checkpoint: %s", facts.key, objects.address.uri, problem)
            return None


def parsed(data: bytes, key: str, is_folder: bool) -> StoredManifest:
    """Raises BadManifest."""
    if not is_folder:
        return read_stored(data, slot_of_manifest(key) or "")
    where = folder_of_manifest(key)
    node = read_node(data.decode("ascii", "replace"))
    if where is None or node.step != where[1]:
        raise BadManifest(f"it is the manifest of step {node.step}")
    return StoredManifest("", node, whole_files(node, where[0]))
