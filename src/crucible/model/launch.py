"""What a node must run. Work is a whole picture, not a queue: an agent that missed ten of them needs only the last."""

from collections.abc import Mapping
from dataclasses import dataclass

from crucible.model.ids import AttemptId, Digest, JobId, TaskId


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWork:
    launch: Launch
    stop: bool  # the rank must end: SIGTERM, `stop_grace_s`, SIGKILL of the whole tree
    stop_reason: str | None
    token: str  # of the attempt: all that job code can see


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a node should be doing now. A rank that is not in it must not run."""

    version: str  # digest of the rest: an agent names the one it has
    ranks: tuple[RankWork, ...]
    retire: bool  # finish, deliver, and end the agent
