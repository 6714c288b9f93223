"""Datasets as people ask for them: what an upload still has to send, to give a name to a tree that is whole, to list
and remove. Names and objects change under one claim, so that nothing is removed that somebody registers meanwhile."""

from collections.abc import Collection, Sequence

from crucible.core import datasets
from crucible.core.auditing import by
from crucible.core.rights import changes
from crucible.engine.context import Context, log
from crucible.engine.holding import holding
from crucible.engine.trees import Trees
from crucible.model.account import Principal
from crucible.model.dataset import Dataset, DatasetCopy, Pin, named_in, pin_of, version_name
from crucible.model.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageFailed,
    StorageRefused,
    UnknownDataset,
)
from crucible.model.ids import Digest, JobId
from crucible.model.spec import JobSpec
from crucible.ports.objects import Signed
from crucible.wire import datasets as wire

CLAIM = "datasets"
# Whoever registers looks at every object of a tree; another one may have to wait for it.
PATIENCE_S = 60.0
SHOWN = 5
FIELD = "job.data.dataset"


class Datasets:
    def __init__(self, context: Context, trees: Trees) -> None:
        self._context = context
        self._trees = trees

    # --- adding -------------------------------------------------------------------------------------------

    async def upload(self, who: Principal, asked: wire.UploadAsked) -> tuple[list[tuple[str, Signed]], Signed | None]:
        """Of these objects the missing ones, each with a request that stores it; and one for the manifest, if it is
        missing too."""
        if asked.name is not None:
            await self._check_owner(who, asked.name)
        uri, digest = self._trees.home.uri, Digest(asked.digest)
        sizes = [(one.name, one.size) for one in asked.objects]
        names = [name for name, _ in sizes] if asked.resend else await self._trees.missing(uri, sizes)
        signed = await self._trees.sign(uri, "PUT", [datasets.object_key(name) for name in names])
        is_there = await self._trees.has_manifest(uri, digest)
        manifest = [] if is_there else await self._trees.sign(uri, "PUT", [datasets.manifest_key(digest)])
        return list(zip(names, signed, strict=True)), next(iter(manifest), None)

    async def register(self, who: Principal, asked: wire.DatasetNew) -> Dataset:
        """Raises Conflict unless every object is there and as large as it must be."""
        self._check_region(asked.region)
        async with holding(self._context, CLAIM, PATIENCE_S) as claim:
            await self._check_owner(who, asked.name)
            dataset = await self._whole(who, asked)
            entry = by(who, dataset.created_at, "dataset.add", f"dataset:{asked.name}", digest=dataset.digest)
            await self._context.store.save_dataset(dataset, claim=claim, audit=entry)
        found = await self._context.store.dataset(asked.name)
        return found or dataset

    async def _whole(self, who: Principal, asked: wire.DatasetNew) -> Dataset:
        uri, digest = self._trees.home.uri, Digest(asked.digest)
        try:
            self._trees.forget(digest)  # what is in storage counts
            tree, objects = await self._trees.tree(uri, digest)
        except NotFound:
            raise Conflict("the manifest has not arrived; add the dataset again") from None
        missing = await self._trees.missing(uri, [(one.name, one.size) for one in objects])
        if missing:
            raise Conflict(f"{len(missing)} of {len(objects)} objects are missing; add the dataset again")
        return Dataset(
            name=asked.name,
            digest=digest,
            uri=uri,
            region=asked.region,
            size_bytes=tree.size_bytes,
            files=len(tree.entries),
            user_id=who.user_id,
            created_at=self._context.clock.now(),
        )

    async def _check_owner(self, who: Principal, name: str) -> None:
        old = await self._context.store.dataset(name)
        if old is not None and not changes(who, old.user_id, None):
            raise Forbidden(f"{name} belongs to {old.user_id}; choose another name")

    def _check_region(self, region: str | None) -> None:
        is_file = self._trees.home.scheme == "file"
        if region is not None and is_file and region.partition("/")[0] != "local":
            raise InvalidRequest(
                f"this server keeps datasets on its own disk, not in {region}; leave --region out", field="region"
            )

    # --- looking ------------------------------------------------------------------------------------------

    async def all(self) -> Sequence[Dataset]:
        return await self._context.store.datasets()

    async def find(self, name: str) -> Dataset:
        found = await self._context.store.dataset(name)
        if found is None:
            raise NotFound(f"there is no dataset {name}; `crucible dataset ls` lists them")
        return found

    async def details(self, digest: Digest) -> tuple[Sequence[DatasetCopy], Sequence[JobId]]:
        store = self._context.store
        return await store.dataset_copies(digest), await store.dataset_jobs(digest)

    async def pin(self, spec: JobSpec, origin: str | None = None) -> Pin | None:
        """The tree that the spec's dataset means now; a job that runs again keeps the one it had. Raises
        UnknownDataset."""
        address = spec.data.dataset
        if address is None or not datasets.is_registered(address):
            return None
        old = pin_of(origin)
        name, digest = named_in(address) if old is None else (old.name, old.digest)
        found = await self._context.store.dataset(name if digest is None else version_name(name, digest))
        if found is None:
            raise UnknownDataset(await self._unknown(name, digest), field=FIELD)
        return datasets.pinned(found, name)

    async def _unknown(self, name: str, digest: Digest | None) -> str:
        if digest is not None and await self._context.store.dataset(name) is not None:
            return f"the dataset {name} has no tree {digest[:12]}…; `crucible dataset show {name}` says what it has"
        known = [one.name for one in await self.all() if "@" not in one.name][:SHOWN]
        hint = f"there are {', '.join(known)}" if known else f"add it: crucible dataset add {name} PATH"
        return f"there is no dataset {name}; {hint}"

    # --- removing -----------------------------------------------------------------------------------------

    async def remove(self, who: Principal, name: str) -> list[str]:
        """A name goes with what it meant before; NAME@DIGEST alone. What other names need stays. Returns all names that
        went."""
        found = await self.find(name)
        if not changes(who, found.user_id, None):
            raise Forbidden(f"{name} belongs to {found.user_id}")
        async with holding(self._context, CLAIM, PATIENCE_S) as claim:
            old = [one for one in await self.all() if one.name == name or one.name.startswith(f"{name}@")]
            names = [one.name for one in old] or [found.name]
            entry = by(who, self._context.clock.now(), "dataset.remove", f"dataset:{name}", names=names)
            await self._context.store.remove_datasets(names, claim=claim, audit=entry)
            kept = await self.all()
            gone = {one.digest for one in old or [found]} - {one.digest for one in kept}
            copies = await self._context.store.dataset_copies()
            for digest in gone:
                await self._context.store.remove_dataset_copies(digest, claim=claim)
            await self._clear_copies(copies, gone)
            for uri in {one.uri for one in old or [found]}:
                await self._clear(uri, gone, {one.digest for one in kept if one.uri == uri})
        return names

    async def _clear_copies(self, copies: Sequence[DatasetCopy], gone: Collection[Digest]) -> None:
        for uri in {copy.uri for copy in copies if copy.digest in gone}:
            kept = {copy.digest for copy in copies if copy.uri == uri and copy.digest not in gone}
            await self._clear(uri, gone, kept)

    async def _clear(self, uri: str, gone: Collection[Digest], kept: Collection[Digest]) -> None:
        """The names are gone already: what cannot be removed now goes with a later removal."""
        try:
            await self._trees.clear(uri, gone, kept, self._context.clock.now())
        except (NotFound, InvalidRequest, StorageFailed, StorageRefused) as error:
            log.warning("objects of removed datasets are left in %s: %s", uri, error)
