"""Copies of trees in the storage of regions. Whoever wants one asks again and again; one worker of all servers makes
it, objects first and the manifest last, and it counts once it is recorded, together with what it cost."""

import asyncio
from collections.abc import Awaitable, Callable

from crucible.core import datasets, transfers
from crucible.core.offers import OfferTable
from crucible.engine.context import Context, log
from crucible.engine.datasets import CLAIM, PATIENCE_S
from crucible.engine.holding import holding
from crucible.engine.trees import Trees
from crucible.model.dataset import Dataset, DatasetCopy
from crucible.model.dataset_tree import MAX_MANIFEST_BYTES, Stowed
from crucible.model.errors import Busy, NotFound, PlatformError, StaleClaim, StaleVersion, StorageFailed, StorageRefused
from crucible.model.ids import Digest, JobId
from crucible.model.ledger import Posting
from crucible.model.storage import Address
from crucible.ports.objects import Objects

COPIED_AT_ONCE = 4
# One object on its way; a slow lane moves 64 MiB within this.
OBJECT_S = 600.0
# A copy that failed is tried again by whoever still wants it, but not at once.
REST_S = 5.0
LOOK_S = 60.0
WANTED = "dataset-copies"  # what the worker waits for


class DatasetCopies:
    def __init__(self, context: Context, trees: Trees, table: Callable[[], Awaitable[OfferTable]]) -> None:
        self._context = context
        self._trees = trees
        self._table = table
        self._wanted: dict[tuple[Digest, str], tuple[Dataset, JobId]] = {}
        self._troubles: dict[tuple[Digest, str], PlatformError] = {}

    def storage_of(self, place: str) -> Address | None:
        """Where copies for a region go; None: nobody gave it storage."""
        address = self._context.region_storage.get(place)
        return None if address is None else address.below(datasets.FOLDER)

    async def find(self, digest: Digest, place: str) -> DatasetCopy | None:
        return next((one for one in await self._context.store.dataset_copies(digest) if one.place == place), None)

    def want(self, dataset: Dataset, place: str, job_id: JobId) -> None:
        self._wanted.setdefault((dataset.digest, place), (dataset, job_id))
        self._context.hub.notify(WANTED)

    def trouble(self, digest: Digest, place: str) -> PlatformError | None:
        """Why the last try came to nothing; told once, for it is tried again."""
        return self._troubles.pop((digest, place), None)

    async def run(self) -> None:
        """For ever."""
        while True:
            self._context.vitals.beat("copies")
            counter = self._context.hub.counter(WANTED)
            for (digest, place), (dataset, job_id) in tuple(self._wanted.items()):
                await self._try(dataset, place, job_id)
                self._wanted.pop((digest, place), None)
            if not self._wanted:
                await self._context.hub.wait(WANTED, counter, LOOK_S)

    async def _try(self, dataset: Dataset, place: str, job_id: JobId) -> None:
        key = dataset.digest, place
        try:
            async with holding(self._context, f"dataset:{dataset.digest}:{place}"):
                await self._make(dataset, place, job_id)
            self._troubles.pop(key, None)
        except (Busy, StaleClaim, StaleVersion):
            pass  # another server is at it, or has done it
        except (StorageFailed, StorageRefused, NotFound) as error:
            log.warning("%s cannot be copied to %s: %s", dataset.name, place, error)
            self._troubles[key] = error
            await self._context.clock.sleep(REST_S)

    async def _make(self, dataset: Dataset, place: str, job_id: JobId) -> None:
        address = self.storage_of(place)
        if address is None or await self.find(dataset.digest, place) is not None:
            return
        source, target = self._trees.at(dataset.uri), self._context.storage.open(address)
        _, stowed = await self._trees.tree(dataset.uri, dataset.digest)
        missing = set(await self._trees.missing(address.uri, [(one.name, one.size) for one in stowed]))
        todo = [one for one in stowed if one.name in missing]
        sending = asyncio.Semaphore(COPIED_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                for one in todo:
                    group.create_task(_sent(self._trees, sending, source, target, one))
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from None
        key = datasets.manifest_key(dataset.digest)
        await self._trees.within(target.put(key, await source.get(key, length=MAX_MANIFEST_BYTES)), OBJECT_S)
        await self._record(dataset, place, address, stowed, job_id)

    async def _record(
        self, dataset: Dataset, place: str, address: Address, stowed: tuple[Stowed, ...], job_id: JobId
    ) -> None:
        """Under the claim of all names: a dataset that was removed meanwhile has no copies."""
        context, now = self._context, self._context.clock.now()
        async with holding(context, CLAIM, PATIENCE_S) as claim:
            kept = {one.digest for one in await context.store.dataset_copies() if one.uri == address.uri}
            if not any(one.digest == dataset.digest for one in await context.store.datasets()):
                await self._trees.clear(address.uri, [dataset.digest], kept, now)
                return
            moved = await self._moved(address, stowed, kept)
            copy = DatasetCopy(
                digest=dataset.digest, place=place, uri=address.uri, size_bytes=dataset.size_bytes, created_at=now
            )
            paid = await self._paid(dataset, place, moved, job_id)
            await context.store.commit((), (copy, *paid), label="dataset-copy", claim=claim)
        log.info("%s is in %s now (%d bytes moved)", dataset.name, place, moved)

    async def _moved(self, address: Address, stowed: tuple[Stowed, ...], kept: set[Digest]) -> int:
        """Bytes that only this copy brought, however often it was begun: what others had brought is not paid again."""
        trees = [(await self._trees.tree(address.uri, digest))[0] for digest in kept]
        there = datasets.names_of(trees)
        return sum(one.size for one in stowed if one.name not in there)

    async def _paid(self, dataset: Dataset, place: str, moved: int, job_id: JobId) -> tuple[Posting, ...]:
        home, now = datasets.home_of(dataset), self._context.clock.now()
        name = f"{dataset.digest}/{place}/{now:%Y%m%dT%H%M%S}"  # once for each time that it is copied
        said = transfers.Transfer(name=name, what=dataset.name, source=home, target=place, size_bytes=moved)
        return transfers.charge(await self._table(), said, job_id, now)


async def _sent(trees: Trees, sending: asyncio.Semaphore, source: Objects, target: Objects, one: Stowed) -> None:
    key = datasets.object_key(one.name)
    async with sending:
        size = await trees.within(target.put_stream(key, source.stream(key)), OBJECT_S)
    if size != one.size:
        raise StorageFailed(f"the object {one.name[:12]} has {size} bytes instead of {one.size}; add the dataset again")
