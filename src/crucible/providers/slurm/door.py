"""What a cluster can be asked, by its command line or by slurmrestd, and the values that both answer with. A door
translates; what the answers mean for our machines is decided elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Request = Mapping[str, Any]  # of `request.batch_request`: everything of a job but its script


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as Slurm lists it; of an array, one element."""

    id: int  # of the whole array
    element: int | None
    name: str
    comment: str
    state: str  # "RUNNING"
    reason: str = ""
    nodes: str = ""  # "gpu[1-2]"; empty: it was never given any
    started_at: int | None = None  # seconds since 1970, by the controller's clock
    ended_at: int | None = None
    exit_status: int = 0  # as waitpid says it; negative: nobody says
    restarts: int = 0

    @property
    def handle(self) -> str:
        """As scancel takes it."""
        return str(self.id) if self.element is None else f"{self.id}_{self.element}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    name: str  # of ours: the machine's id
    started_at: int | None = None
    ended_at: int | None = None
    exit_code: int = 0  # negative: a signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One life of a job in the accounts; a job that was put back into the queue has several. A job that never ran tells
    of all elements of its array at once."""

    id: int  # of the whole array
    elements: tuple[int, ...] = ()  # none: it is no array
    name: str
    comment: str = ""  # empty, unless the cluster stores comments (AccountingStoreFlags=job_comment) and it has ended
    submitted: str = ""  # the command that submitted it, where it is known
    state: str
    node_count: int = 0
    nodes: str = ""  # empty: it was never given any
    started_at: int | None = None
    ended_at: int | None = None
    exit_status: int = 0  # as waitpid says it; negative: nobody says
    steps: tuple[StepRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    name: str
    partitions: tuple[str, ...]
    state: str  # "IDLE", "MIXED+DRAIN", "DOWN*"
    cpus: int
    free_cpus: int
    memory_mib: int
    free_memory_mib: int
    gpus: Mapping[str, int]  # by GRES type; "" for those without one
    free_gpus: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    name: str
    is_up: bool
    max_time_s: int | None = None  # None: without end


class Door(Protocol):
    place: str  # for messages
    reads_files: bool  # whether files of the cluster can be written and read
    knows_steps: bool  # whether a step can be ended alone

    async def nodes(self) -> Sequence[ClusterNode]: ...

    async def partitions(self) -> Sequence[Partition]: ...

    async def jobs(self) -> Sequence[Job]:
        """Ours, by name; ended ones as long as Slurm remembers them."""
        ...

    async def records(self, within_s: int) -> Sequence[Record] | None:
        """Ours, by name, that the accounts show to have lived in the last so many seconds, the newest if there are too
        many; None: the cluster keeps no accounts. Raises ProviderError if they cannot be read now."""
        ...

    async def devices(self, job: Job) -> Mapping[str, tuple[str, ...]]:
        """By node, the numbers of the GPUs that the job was given there."""
        ...

    async def submit(self, request: Request, script: str) -> int:
        """The job's id. Raises OutcomeUnknown if the answer was lost."""
        ...

    async def cancel(self, handle: str) -> None:
        """Absent is success."""
        ...

    async def cancel_step(self, handle: str, name: str) -> None:
        """Of a running job, the step of that name. Absent is success."""
        ...

    async def folder(self, workdir: str) -> str:
        """The absolute path of the shared folder."""
        ...

    async def put(self, path: str, data: bytes) -> None:
        """A file that nobody else can read, whole or not at all."""
        ...

    async def has(self, path: str, sha256: str) -> bool: ...

    async def tail(self, paths: Sequence[str], most: int) -> str:
        """The ends of those that exist."""
        ...

    async def version(self) -> str:
        """Raises ProviderError if nobody is in charge."""
        ...

    async def close(self) -> None: ...
