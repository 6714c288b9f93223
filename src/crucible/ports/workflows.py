"""What is remembered of workflows beside their rows: whose children a job has, and results of steps by all that they
depend on."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from crucible.model.ids import Digest, JobId
from crucible.model.job import Job
from crucible.model.record import StepResult
from crucible.model.units import MicroUsd


class Shape(NamedTuple):
    """A workflow in a few figures, for lists."""

    steps: int
    ended: int
    children: tuple[JobId, ...]  # jobs of its steps
    posted: MicroUsd  # what they have cost, as far as it is in the ledger


class WorkflowBook(Protocol):
    async def child_jobs(self, job_id: JobId) -> Sequence[Job]:
        """Jobs that work for its steps, by the index of the step."""
        ...

    async def workflows(self, job_ids: Collection[JobId]) -> Mapping[JobId, Shape]:
        """Of those that are workflows."""
        ...

    async def step_result(self, cache_key: Digest) -> StepResult | None:
        """Written as a record of a commit; the newest of a key counts."""
        ...
