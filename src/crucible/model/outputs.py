"""What tasks leave behind, and what jobs are given of it: trees of files, named by their content."""

import re
from dataclasses import dataclass
from datetime import datetime

from crucible.model.ids import Digest, JobId

TREE = "tree://"  # an input: tree://DIGEST
OUTPUT = "output://"  # an input: output://JOB or output://JOB/TASK
_OUTPUT = re.compile(r"output://([0-9A-Za-z-]{1,64})(?:/([0-9]{1,6}))?\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The tree that a rank left in $CRUCIBLE_OUTPUT, whole in storage. It counts once its task names it."""

    job_id: JobId
    task_index: int
    digest: Digest  # sha256 of its manifest
    uri: str  # where its objects are
    size_bytes: int
    files: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputTotals:
    """Of all tasks of a job that left something."""

    tasks: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A tree that a job was given when it was submitted, with all that its plan and its nodes need to know of it."""

    name: str  # its folder below $CRUCIBLE_INPUTS
    digest: Digest
    uri: str
    size_bytes: int
    home: str  # "provider/region" of its storage, or "provider/" where nobody said which region


def tree_named(address: str) -> Digest | None:
    return Digest(address.removeprefix(TREE)) if address.startswith(TREE) else None


def output_named(address: str) -> tuple[JobId, int | None] | None:
    """The job, and the task if it is said, of output://JOB[/TASK]."""
    found = _OUTPUT.match(address)
    return None if found is None else (JobId(found[1]), None if found[2] is None else int(found[2]))
