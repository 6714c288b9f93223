"""What nodes ask about trees: where the dataset or an input of their job can be had, and to note what came. The nearest
storage that has it is named; everything is signed here, no node ever has credentials."""

from collections.abc import Awaitable, Callable, Sequence

from crucible.core import datasets, transfers
from crucible.core.offers import OfferTable
from crucible.engine.asking import asker, place_of
from crucible.engine.context import Context
from crucible.engine.dataset_copies import DatasetCopies
from crucible.engine.trees import Trees
from crucible.model.dataset import Dataset, pin_of
from crucible.model.dataset_tree import Stowed
from crucible.model.errors import Forbidden, NotFound, StaleVersion, StorageFailed, StorageRefused
from crucible.model.ids import Digest, NodeId
from crucible.model.job import Job
from crucible.model.ledger import Posting
from crucible.model.outputs import Input
from crucible.model.spec import Replication
from crucible.ports.objects import Signed
from crucible.wire import agent as agents
from crucible.wire import datasets as wire

# A node that waits for a copy asks again so soon.
ASK_AGAIN_S = 1.0


class DatasetNodes:
    def __init__(
        self, context: Context, trees: Trees, copies: DatasetCopies, table: Callable[[], Awaitable[OfferTable]]
    ) -> None:
        self._context = context
        self._trees = trees
        self._copies = copies
        self._table = table

    async def tree(self, node_id: NodeId, asked: wire.TreeRequest) -> wire.TreeReply:
        """Raises Forbidden; StorageFailed, after which it is asked again; StorageRefused and NotFound for good."""
        job, place = await self._asker(node_id, asked.attempt_id, asked.digest)
        digest = Digest(asked.digest)
        source, uri = await self._whence(job, digest, place)
        if uri is None:
            return wire.TreeReply(wait_s=ASK_AGAIN_S, reason=f"the dataset is being copied to {place}")
        _, stowed = await self._trees.tree(uri, digest)
        page = page_of(stowed, asked.first)
        keys = [datasets.manifest_key(digest), *(datasets.object_key(one.name) for one in page)]
        manifest, *signed = [said_to_nodes(one) for one in await self._trees.sign(uri, "GET", keys)]
        objects = [_object(one, request) for one, request in zip(page, signed, strict=True)]
        return wire.TreeReply(source=source, manifest=manifest, objects=objects, total=len(stowed))

    async def fetched(self, node_id: NodeId, asked: wire.TreeFetched) -> wire.TreeNoted:
        """Charges the job for what its node says has come; told again, nothing changes."""
        job, place = await self._asker(node_id, asked.attempt_id, asked.digest)
        what, known = await self._homes(job, Digest(asked.digest))
        if asked.source not in known:
            raise Forbidden(f"{what} is not in {asked.source}")
        moved = transfers.Transfer(
            name=asked.transfer, what=what, source=asked.source, target=place, size_bytes=asked.size_bytes
        )
        already = {one.id for one in await self._context.store.job_postings(job.id)}
        paid = transfers.charge(await self._table(), moved, job.id, self._context.clock.now())
        if paid and paid[0].id not in already:
            await self._write(paid)
            self._context.hub.notify(job.id)
        return wire.TreeNoted()

    async def _write(self, paid: Sequence[Posting]) -> None:
        try:
            await self._context.store.commit((), paid, label="transfer")
        except StaleVersion:
            pass  # another server heard it too

    async def _asker(self, node_id: NodeId, attempt_id: str, digest: str) -> tuple[Job, str]:
        """The job that was given this tree, and where the node is."""
        job = (await asker(self._context, node_id, attempt_id)).job
        pin = pin_of(job.dataset_uri)
        if digest not in {None if pin is None else pin.digest, *(one.digest for one in job.inputs)}:
            raise Forbidden("the job was not given this dataset")
        return job, await place_of(self._context, node_id)

    async def _whence(self, job: Job, digest: Digest, place: str) -> tuple[str, str | None]:
        """Where it comes from, and that storage; an input comes from where it was left."""
        given = _given(job, digest)
        if given is not None:
            return given.home, given.uri
        return await self._source(await self._dataset(digest), place, job)

    async def _homes(self, job: Job, digest: Digest) -> tuple[str, set[str]]:
        """What it is called, and where it may come from."""
        given = _given(job, digest)
        if given is not None:
            return given.name, {given.home}
        dataset, copies = await self._dataset(digest), await self._context.store.dataset_copies()
        return dataset.name, {datasets.home_of(dataset), *(one.place for one in copies)}

    async def _dataset(self, digest: Digest) -> Dataset:
        for one in await self._context.store.datasets():
            if one.digest == digest:
                return one
        raise NotFound("the dataset was removed")

    async def _source(self, dataset: Dataset, place: str, job: Job) -> tuple[str, str | None]:
        """The place, and the storage to read from; None while a copy must be waited for."""
        home, policy = datasets.home_of(dataset), self._context.spec_of(job).data.replication_policy
        if policy is Replication.NONE or place == home or self._copies.storage_of(place) is None:
            return home, dataset.uri
        copy = await self._copies.find(dataset.digest, place)
        if copy is not None:
            return place, copy.uri
        self._copies.want(dataset, place, job.id)
        if policy is Replication.ON_DEMAND_CACHE:
            return home, dataset.uri
        trouble = self._copies.trouble(dataset.digest, place)
        if isinstance(trouble, StorageRefused):
            raise StorageRefused(f"{dataset.name} cannot be copied to {place}: {trouble.message}")
        if isinstance(trouble, StorageFailed):
            raise StorageFailed(f"{dataset.name} is not in {place} yet: {trouble.message}")
        return place, None


def page_of(stowed: Sequence[Stowed], first: int) -> list[Stowed]:
    """As many as one answer holds."""
    found: list[Stowed] = []
    pieces = 0
    for one in stowed[first : first + wire.MAX_OBJECTS]:
        pieces += len(one.pieces)
        if found and pieces > wire.MAX_PIECES:
            break
        found.append(one)
    return found


def _object(one: Stowed, signed: agents.Signed) -> wire.TreeObject:
    holds = [(piece.sha256, piece.offset, piece.size) for piece in one.pieces]
    return wire.TreeObject(signed=signed, name=one.name, size=one.size, holds=holds)


def _given(job: Job, digest: Digest) -> Input | None:
    """As an input; one that is the job's dataset too is read as that."""
    pin = pin_of(job.dataset_uri)
    if pin is not None and pin.digest == digest:
        return None
    return next((one for one in job.inputs if one.digest == digest), None)


def said_to_nodes(signed: Signed) -> agents.Signed:
    return agents.Signed(method=signed.method, url=signed.url, headers=dict(signed.headers))
