"""What a node must run. Work is a whole picture, not a queue: an agent that missed ten of them needs only the last."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crucible.model.ids import AttemptId, Digest, JobId, TaskId
from crucible.model.secret import SecretUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The image that a rank runs in, and how. What is not said is the runtime's own choice."""

    image: str
    runtime: str  # auto, docker, podman
    pull: str  # missing, always, never
    auth_file: str | None
    user: str | None
    shm_gib: float | None
    cpus: int | None
    memory_gib: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetWork:
    """A dataset that must be on the node before its ranks start. Where from, the node asks when it needs to know."""

    name: str
    digest: Digest  # of its tree


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWork:
    """A rank that may leave something: it gets a folder, and the agent stores what is in it at the end."""

    max_bytes: int
    max_files: int
    within_s: float  # while servers and storage answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything one rank needs. Strings of the user reach a process as argv or environment, never through a shell
    that we wrote; `setup` lines are the user's own shell and go into a file."""

    job_id: JobId
    task_id: TaskId
    attempt_id: AttemptId
    number: int
    generation: int
    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    devices: tuple[str, ...]
    setup: tuple[str, ...]
    code: Digest | None
    checkpoints: str  # URI of the lineage's checkpoints
    checkpoint_keep: int
    carries_checkpoints: bool  # the agent gives the script a folder of the node and carries what is saved there
    timeout_s: float | None
    stop_grace_s: float
    progress_pattern: str | None
    progress_total: int | None
    python: str | None = None  # what `python` means on the machine; None: the agent's own
    container: Container | None = None
    volumes: Mapping[str, str] = field(default_factory=dict)  # path inside the job -> folder of the machine
    dataset: DatasetWork | None = None
    inputs: tuple[DatasetWork, ...] = ()  # trees of earlier work, by the names of their folders
    output: OutputWork | None = None
    params: Mapping[str, Any] | None = None  # what the task was given: a file on the node
    secrets: tuple[SecretUse, ...] = ()  # names only: for the values the node asks when it starts the rank


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    launch: Launch
    stop: bool  # the rank must end: SIGTERM, `stop_grace_s`, SIGKILL of the whole tree
    stop_reason: str | None
    stop_grace_s: float | None  # until it is killed; None: the launch's
    token: str  # of the attempt: all that job code can see
    keeps_outputs: bool = False  # with `stop`: what it leaves counts, if it ends in good order


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a node should be doing now. A rank that is not in it must not run."""

    version: str  # digest of the rest: an agent names the one it has
    ranks: tuple[RankWork, ...]
    retire: bool  # finish, deliver, and end the agent
