"""What a task leaves behind and what a job is given of it: who may leave something, when it counts, where it is kept,
and what bringing it costs. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from crucible.core.rules import STORAGE_HOMES
from crucible.model.attempt import Rank
from crucible.model.ids import Digest, JobId
from crucible.model.job import Desired, Job
from crucible.model.launch import DatasetWork, OutputWork
from crucible.model.outputs import TREE, Input, OutputTotals
from crucible.model.policy import Policy
from crucible.model.record import Artifact, ArtifactType
from crucible.model.spec import Brought, JobSpec
from crucible.model.storage import Address
from crucible.model.task import Task, Verdict
from crucible.model.units import GIB

FOLDER = "outputs"


def place_of(root: Address, job_id: JobId) -> Address:
    """Each job's trees are kept apart: they go with it, and nobody else's go with them."""
    return root.below(FOLDER).below(job_id)


def home_of(address: Address, regions: Mapping[str, Address]) -> str:
    """The "provider/region" of a storage; without a region where nobody said it."""
    for place, known in regions.items():
        if address.uri == known.uri or address.uri.startswith(f"{known.uri}/"):
            return place
    provider = STORAGE_HOMES[address.scheme]
    return "local/local" if provider == "local" else f"{provider}/"


def work_of(rank: Rank, policy: Policy) -> OutputWork | None:
    """The first rank speaks for all of them."""
    if rank.rank != 0:
        return None
    return OutputWork(
        max_bytes=policy.output_bytes, max_files=policy.output_files, within_s=policy.output_limit.total_seconds()
    )


def inputs_of(job: Job) -> tuple[DatasetWork, ...]:
    return tuple(DatasetWork(name=one.name, digest=one.digest) for one in job.inputs)


def are_kept(job: Job, task: Task) -> bool:
    """Of a task whose attempt is being stopped: a trial that was pruned is done, with what it has. A job that is
    cancelled or held, a failure and a lost machine leave nothing."""
    return task.verdict is Verdict.PRUNED and job.desired is Desired.RUN


def with_inputs(spec: JobSpec, inputs: Sequence[Input]) -> JobSpec:
    """The spec with what is known of its inputs."""
    if not inputs:
        return spec
    brought = tuple(Brought(home=one.home, size_gib=one.size_bytes / GIB) for one in inputs)
    named = {one.name: f"{TREE}{one.digest}" for one in inputs}
    return replace(spec, inputs=named, data=replace(spec.data, brought=brought))


def artifact_of(job: Job, left: OutputTotals, now: datetime) -> tuple[Artifact, ...]:
    """One for all its tasks, where people find them."""
    if not left.tasks:
        return ()
    meta, uri = {"tasks": left.tasks, "files": left.files, "size_bytes": left.size_bytes}, f"/v1/jobs/{job.id}/outputs"
    return (Artifact(job_id=job.id, type=ArtifactType.OUTPUT, uri=uri, created_at=now, meta=meta),)


def waste(stored: Iterable[str], needed: Collection[str]) -> list[str]:
    """Of a job that is over: keys that belong to no tree of its."""
    return [key for key in stored if key not in needed]


def digests_in(keys: Iterable[str], prefix: str) -> list[Digest]:
    return [Digest(key.removeprefix(prefix)) for key in keys if key.startswith(prefix)]
