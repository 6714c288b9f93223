"""What a job is given of earlier work: the trees that its `inputs` mean when it is submitted. A job of somebody else
does not exist, and neither does what it left."""

from crucible.core import datasets, outputs
from crucible.core.rights import sees_job, sight
from crucible.engine.context import Context
from crucible.model.account import Principal
from crucible.model.dataset import Dataset
from crucible.model.errors import NotFound, UnknownInput
from crucible.model.ids import Digest, JobId
from crucible.model.outputs import Input, Output, output_named, tree_named
from crucible.model.spec import JobSpec
from crucible.model.storage import parse


class Inputs:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def pin(self, who: Principal, spec: JobSpec) -> tuple[Input, ...]:
        """Raises UnknownInput."""
        return tuple([await self._pinned(who, name, address) for name, address in sorted(spec.inputs.items())])

    async def _pinned(self, who: Principal, name: str, address: str) -> Input:
        field = f"job.inputs.{name}"
        digest = tree_named(address)
        if digest is not None:
            return await self._of_tree(who, name, digest, field)
        named = output_named(address)
        if named is None:
            raise UnknownInput(f"{address} is neither tree://DIGEST nor output://JOB/TASK", field=field)
        return self._of_output(name, await self._of_job(who, *named, field))

    async def _of_tree(self, who: Principal, name: str, digest: Digest, field: str) -> Input:
        left = await self._context.store.output_of_tree(digest, sight(who))
        if left is not None:
            return self._of_output(name, left)
        for one in await self._context.store.datasets():
            if one.digest == digest:
                return _of_dataset(name, one)
        raise UnknownInput(
            f"no job that you see has left the tree {digest[:12]}…, and no dataset has it; `crucible outputs ls JOB` "
            "says what a job has left",
            field=field,
        )

    async def _of_job(self, who: Principal, job_id: JobId, index: int | None, field: str) -> Output:
        store = self._context.store
        try:
            job = await store.job(job_id)
        except NotFound:
            job = None
        if job is None or not sees_job(who, job):
            raise UnknownInput(f"there is no job {job_id}", field=field)
        left = await store.outputs(job.id, limit=2) if index is None else [await store.output(job.id, index)]
        if len(left) > 1:
            said = f"several tasks of job {job_id} have left something: say which, as output://{job_id}/TASK"
            raise UnknownInput(said, field=field)
        found = left[0] if left else None
        if found is None:
            of_task = "" if index is None else f"task {index} of "
            over = "" if job.status.is_terminal else "; it is not over yet"
            raise UnknownInput(f"{of_task}job {job_id} has left nothing behind{over}", field=field)
        return found

    def _of_output(self, name: str, left: Output) -> Input:
        home = outputs.home_of(parse(left.uri), self._context.region_storage)
        return Input(name=name, digest=left.digest, uri=left.uri, size_bytes=left.size_bytes, home=home)


def _of_dataset(name: str, one: Dataset) -> Input:
    return Input(name=name, digest=one.digest, uri=one.uri, size_bytes=one.size_bytes, home=datasets.home_of(one))
