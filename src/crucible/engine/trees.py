"""Trees in storage: their manifests, which of their objects are there, signed requests for them, and what may go. One
object says where; who may do what is asked elsewhere."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Collection, Iterable, Sequence
from datetime import datetime
from typing import TypeVar

from crucible.core import datasets
from crucible.engine.context import Context
from crucible.model import dataset_tree
from crucible.model.dataset_tree import MAX_MANIFEST_BYTES, Stowed, Tree
from crucible.model.errors import InvalidRequest, NotFound, StorageFailed
from crucible.model.ids import Digest
from crucible.model.storage import Address, parse
from crucible.ports.objects import Method, Objects, Signed

T = TypeVar("T")

# A manifest may name a million files; nodes of a few jobs ask for the same few trees, page by page.
REMEMBERED = 4
LOOKS_AT_ONCE = 16
DELETED_AT_ONCE = 500
# One request to storage; a listing is many.
CALL_S = 60.0
LIST_S = 300.0


class Trees:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: OrderedDict[Digest, tuple[Tree, tuple[Stowed, ...]]] = OrderedDict()
        self._looking = asyncio.Semaphore(LOOKS_AT_ONCE)

    @property
    def home(self) -> Address:
        """Where this server keeps what is added now."""
        return self._context.storage_root.below(datasets.FOLDER)

    def at(self, uri: str) -> Objects:
        return self._context.storage.open(parse(uri))

    async def tree(self, uri: str, digest: Digest) -> tuple[Tree, tuple[Stowed, ...]]:
        """With its objects. Raises NotFound without a manifest, InvalidRequest for one that is not of this digest."""
        if digest not in self._known:
            get = self.at(uri).get(datasets.manifest_key(digest), length=MAX_MANIFEST_BYTES + 1)
            tree = await asyncio.to_thread(dataset_tree.read, await self.within(get), digest)
            self._known[digest] = tree, await asyncio.to_thread(lambda: tree.objects)
        self._known.move_to_end(digest)
        found = self._known[digest]
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return found

    def forget(self, digest: Digest) -> None:
        self._known.pop(digest, None)

    async def missing(self, uri: str, sizes: Sequence[tuple[str, int]]) -> list[str]:
        """Names of objects that are not there, or not of that size."""
        objects = self.at(uri)
        found = await asyncio.gather(*(self._is_there(objects, name, size) for name, size in sizes))
        return [name for (name, _), is_there in zip(sizes, found, strict=True) if not is_there]

    async def _is_there(self, objects: Objects, name: str, size: int) -> bool:
        async with self._looking:
            facts = await self.within(objects.head(datasets.object_key(name)))
        return facts is not None and facts.size == size

    async def has_manifest(self, uri: str, digest: Digest) -> bool:
        return await self.within(self.at(uri).head(datasets.manifest_key(digest))) is not None

    async def sign(self, uri: str, method: Method, keys: Sequence[str]) -> Sequence[Signed]:
        return await self.within(self.at(uri).sign(method, keys, self._context.policy.signature_life))

    # --- what may go --------------------------------------------------------------------------------------

    async def clear(self, uri: str, gone: Iterable[Digest], kept: Collection[Digest], now: datetime) -> None:
        """Removes what only the trees of `gone` needed, and what nobody registered for long. A manifest of `kept` that
        cannot be read stops everything: what it needs is not known."""
        wanted = [(await self.tree(uri, digest))[0] for digest in kept]
        left = [tree for digest in gone if (tree := await self._left(uri, digest)) is not None]
        names = datasets.names_of(left)
        needed = datasets.names_of(wanted)
        manifests = [datasets.manifest_key(tree.digest) for tree in left]
        objects = self.at(uri)
        await self.within(objects.delete(manifests))
        waste = await self.within(self._waste(objects, names, needed, now), LIST_S)
        for start in range(0, len(waste), DELETED_AT_ONCE):
            await self.within(objects.delete(waste[start : start + DELETED_AT_ONCE]))

    async def _left(self, uri: str, digest: Digest) -> Tree | None:
        try:
            tree, _ = await self.tree(uri, digest)
        except (NotFound, InvalidRequest):
            return None  # an earlier try came so far
        self.forget(digest)
        return tree

    async def _waste(self, objects: Objects, gone: frozenset[str], kept: frozenset[str], now: datetime) -> list[str]:
        return [
            facts.key
            async for facts in objects.list(datasets.OBJECTS)
            if datasets.is_waste(facts.key.removeprefix(datasets.OBJECTS), facts.modified_at, gone, kept, now)
        ]

    async def within(self, call: Awaitable[T], seconds: float = CALL_S) -> T:
        try:
            return await self._context.clock.wait_for(call, seconds)
        except TimeoutError:
            raise StorageFailed(f"object storage did not answer within {seconds:.0f} s; try again") from None
