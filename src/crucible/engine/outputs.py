"""What tasks leave behind: where nodes may put it, whether it is whole before a report may name it, and who reads it.
Trees of a job are kept apart from all others, below its id, for as long as its row; no node ever has credentials."""

from collections import OrderedDict

from crucible.core import datasets, outputs
from crucible.core.datasets import MANIFESTS, OBJECTS
from crucible.engine.asking import asker
from crucible.engine.context import Context
from crucible.engine.dataset_nodes import page_of, said_to_nodes
from crucible.engine.trees import DELETED_AT_ONCE, LIST_S, Trees
from crucible.model.dataset_tree import Stowed
from crucible.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from crucible.model.ids import Digest, JobId, NodeId
from crucible.model.job import Job
from crucible.model.outputs import Output
from crucible.ports.objects import Objects, Signed
from crucible.wire import outputs as wire

# Trees that were found whole a moment ago: a report names one right after its node has asked.
REMEMBERED = 1000


class Outputs:
    def __init__(self, context: Context, trees: Trees) -> None:
        self._context = context
        self._trees = trees
        self._whole: OrderedDict[tuple[str, Digest], tuple[int, int]] = OrderedDict()  # bytes and files

    # --- nodes --------------------------------------------------------------------------------------------

    async def upload(self, node_id: NodeId, asked: wire.OutputAsked) -> wire.OutputReply:
        """Of these objects the missing ones, each with a request that stores it; and one for the manifest."""
        uri, digest = await self._asked_for(node_id, asked.attempt_id), Digest(asked.digest)
        sizes = [(one.name, one.size) for one in asked.objects]
        names = [name for name, _ in sizes] if asked.resend else await self._trees.missing(uri, sizes)
        self._context.failpoint("outputs.before")
        signed = await self._trees.sign(uri, "PUT", [datasets.object_key(name) for name in names])
        is_there = await self._trees.has_manifest(uri, digest)
        manifest = [] if is_there else await self._trees.sign(uri, "PUT", [datasets.manifest_key(digest)])
        self._context.failpoint("outputs.after")
        return wire.OutputReply(
            missing=[
                wire.MissingObject(name=name, signed=said_to_nodes(one))
                for name, one in zip(names, signed, strict=True)
            ],
            manifest=said_to_nodes(manifest[0]) if manifest else None,
            lives_s=self.lives_s,
        )

    async def whole(self, node_id: NodeId, asked: wire.OutputWhole) -> wire.OutputFound:
        """Raises Conflict unless every object is there and as large as it must be."""
        uri = await self._asked_for(node_id, asked.attempt_id)
        size, files = await self._check(uri, Digest(asked.digest))
        return wire.OutputFound(size_bytes=size, files=files)

    async def left(self, job_id: JobId, task_index: int, digest: Digest) -> Output:
        """What the record of a rank's exit says of its tree. Raises Conflict unless it is whole, StorageFailed."""
        uri = self._uri(job_id)
        size, files = await self._check(uri, digest)
        return Output(
            job_id=job_id,
            task_index=task_index,
            digest=digest,
            uri=uri,
            size_bytes=size,
            files=files,
            created_at=self._context.clock.now(),
        )

    async def _asked_for(self, node_id: NodeId, attempt_id: str) -> str:
        found = await asker(self._context, node_id, attempt_id)
        if not any(rank.rank == 0 and rank.node_id == node_id for rank in found.attempt.ranks):
            raise Forbidden("only the first rank of an attempt leaves something behind")
        return self._uri(found.job.id)

    def _uri(self, job_id: JobId) -> str:
        return outputs.place_of(self._context.storage_root, job_id).uri

    async def _check(self, uri: str, digest: Digest) -> tuple[int, int]:
        """Bytes and files. What was found once stays: only what belongs to no row is ever removed."""
        known = self._whole.get((uri, digest))
        if known is None:
            known = self._whole[uri, digest] = await self._look(uri, digest)
            while len(self._whole) > REMEMBERED:
                self._whole.popitem(last=False)
        return known

    async def _look(self, uri: str, digest: Digest) -> tuple[int, int]:
        try:
            self._trees.forget(digest)  # what is in storage counts
            tree, objects = await self._trees.tree(uri, digest)
        except NotFound:
            raise Conflict("the manifest of the outputs has not arrived") from None
        except InvalidRequest as error:
            raise Conflict(f"the manifest of the outputs is not right: {error.message}") from None
        policy = self._context.policy
        if tree.size_bytes > policy.output_bytes or len(tree.entries) > policy.output_files:
            raise Conflict(f"the outputs are too large: {tree.size_bytes} bytes in {len(tree.entries)} files")
        missing = await self._trees.missing(uri, [(one.name, one.size) for one in objects])
        if missing:
            raise Conflict(f"{len(missing)} of {len(objects)} objects of the outputs are missing")
        return tree.size_bytes, len(tree.entries)

    # --- people -------------------------------------------------------------------------------------------

    async def find(self, job: Job, task_index: int) -> Output:
        found = await self._context.store.output(job.id, task_index)
        if found is None:
            raise NotFound(f"task {task_index} of job {job.id} has left nothing behind", field="task")
        return found

    async def page(self, output: Output, first: int) -> tuple[Signed, list[tuple[Stowed, Signed]], int]:
        """Signed reads of the manifest and of objects from `first` on, and how many objects there are."""
        _, stowed = await self._trees.tree(output.uri, output.digest)
        page = page_of(stowed, first)
        keys = [datasets.manifest_key(output.digest), *(datasets.object_key(one.name) for one in page)]
        manifest, *signed = await self._trees.sign(output.uri, "GET", keys)
        return manifest, list(zip(page, signed, strict=True)), len(stowed)

    @property
    def lives_s(self) -> float:
        return self._context.policy.signature_life.total_seconds()

    # --- tidying ------------------------------------------------------------------------------------------

    async def tidy(self, job: Job) -> None:
        """Removes what a job that is over has stored in vain: of attempts that were lost or failed half way."""
        if not job.status.is_terminal:
            return
        uri = self._uri(job.id)
        objects = self._trees.at(uri)
        stored = await self._trees.within(_keys(objects), LIST_S)
        tried = len(await self._context.store.job_attempts(job.id)) if stored else 0
        if (await self._context.store.output_totals(job.id)).tasks == tried:
            return  # whatever is there was wanted
        kept = await self._context.store.kept_outputs(uri, outputs.digests_in(stored, MANIFESTS))
        needed = {datasets.manifest_key(digest) for digest in kept}
        for digest in kept:
            _, stowed = await self._trees.tree(uri, digest)
            needed |= {datasets.object_key(one.name) for one in stowed}
        gone = outputs.waste(stored, needed)
        for start in range(0, len(gone), DELETED_AT_ONCE):
            await self._trees.within(objects.delete(gone[start : start + DELETED_AT_ONCE]))


async def _keys(objects: Objects) -> list[str]:
    return [facts.key for prefix in (MANIFESTS, OBJECTS) async for facts in objects.list(prefix)]
