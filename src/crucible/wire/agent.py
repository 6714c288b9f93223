"""The agent protocol, version 1, as the server sees it. The agent itself imports nothing of this: golden messages in
tests/golden/agent tie the two together.

    POST /agent/v1/enrol      bearer: the order's enrolment token        -> Enrolled
    GET  /agent/v1/work       bearer: node key; ?seen=VERSION&wait=S     -> WorkReply (long poll)
    POST /agent/v1/report     bearer: node key; Report                   -> ReportReply
    GET  /agent/v1/packages/{digest}   bearer: node key                  -> the package
    POST /agent/v1/storage/slot        bearer: node key; SlotRequest     -> Slot: where the next checkpoint may go
    POST /agent/v1/storage/candidate   bearer: node key; CandidateRequest -> CandidateReply: what to resume from
    POST /agent/v1/datasets, …/fetched bearer: node key; wire.datasets   -> where a tree is; noted that it has come
    POST /agent/v1/outputs, …/whole    bearer: node key; wire.outputs    -> where outputs go; that they are there
    POST /agent/v1/secrets             bearer: node key; SecretsAsked    -> SecretsReply: values for a living attempt
    WS   /agent/v1/channels/{id}       bearer: node key                  -> see wire.channels: a person waits there

Both directions are whole pictures: `work` is all a node should run, a report's `ranks` is all a node knows of. Either
may be repeated or lost; only log and metric records are numbered, per (attempt, rank), and acknowledged.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crucible.wire.channels import Wish

PROTOCOL = 1

# A report holds at most this much; an agent with more to say sends several.
MAX_REPORT_BYTES = 4 << 20
# A longer line is cut into pieces marked partial.
MAX_LINE_BYTES = 64 << 10

# Ranks that save a checkpoint together.
MAX_SHARDS = 65_536
# Signed requests in one answer; an agent that needs more asks again.
MAX_SIGNED = 4096

Short = Annotated[str, Field(max_length=256)]
Slot_ = Annotated[str, Field(pattern=r"^[0-9]{5}-[0-9]{5}-[0-9a-f]{16}$")]


class Message(BaseModel):
    """Unknown fields are ignored, so that an older agent and a newer server understand each other."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Enrol(Message):
    protocol: int
    order_id: Short
    machine_id: Short
    agent_id: Short  # random, kept on the node's disk: asking again is the same agent
    boot_id: Short  # new at every start of the agent
    agent_version: Short
    address: Short  # where other nodes of the gang reach it
    rendezvous_port: int = Field(ge=1, le=65535)
    facts: dict[str, Any] = {}  # python, hostname, cpus, memory_bytes, gpus: [{index, name, memory_mib}]


class Enrolled(Message):
    node_id: str
    node_key: str
    report_every_s: float
    servers: list[str]  # in the order to try
    orphan_after_s: float  # without a word from any server for so long: end; where nobody may power off, only when idle


class Container(Message):
    image: str
    runtime: str = "auto"
    pull: str = "missing"
    auth_file: str | None = None
    user: str | None = None
    shm_gib: float | None = None
    cpus: int | None = None
    memory_gib: float | None = None


class DatasetWork(Message):
    name: str
    digest: str


class OutputWork(Message):
    max_bytes: int
    max_files: int
    within_s: float


class SecretUse(Message):
    name: str
    env: str | None = None
    file: str | None = None


class Launch(Message):
    job_id: str
    task_id: str
    attempt_id: str
    number: int
    generation: int
    rank: int
    argv: list[str]
    env: dict[str, str]
    devices: list[str]
    setup: list[str]
    code: str | None
    checkpoints: str  # a folder that the node reaches; with `carries_checkpoints` only a name for people
    checkpoint_keep: int
    carries_checkpoints: bool = False  # the agent gives the script a folder of its own and carries what is saved there
    timeout_s: float | None
    stop_grace_s: float
    progress_pattern: str | None
    progress_total: int | None
    python: str | None = None
    container: Container | None = None
    volumes: dict[str, str] = {}
    dataset: DatasetWork | None = None
    inputs: list[DatasetWork] = []
    output: OutputWork | None = None
    params: dict[str, Any] | None = None  # a file for the program: $CRUCIBLE_PARAMS
    secrets: list[SecretUse] = []  # by name; for their values the agent asks


class RankWork(Message):
    launch: Launch
    stop: bool
    stop_reason: str | None
    stop_grace_s: float | None = None
    token: str
    keeps_outputs: bool = False


class WorkReply(Message):
    version: str
    unchanged: bool = False  # the wait ran out; `ranks` is then empty and means nothing
    ranks: list[RankWork] = []
    retire: bool = False
    servers: list[str] = []
    channels: list[Wish] = []  # of people; an agent that does not know them leaves them


class RankReport(Message):
    attempt_id: Short
    generation: int
    rank: int
    state: Literal["starting", "started", "exited"]
    exit_code: int | None = None
    signal: int | None = None
    reason: Annotated[str, Field(max_length=4096)] | None = None  # "setup failed: …", "timed out", "could not start: …"
    timed_out: bool = False
    evicted: bool = False  # the machine was told to go, and took the rank along: nobody's failure, and no success
    started_at_ms: int | None = None  # the node's clock: data
    ended_at_ms: int | None = None
    is_checkpointing: bool = False
    log_lines: int = 0  # records made so far
    last_lines: list[str] = []  # the end of the log, for the reason of a failure
    outputs: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None  # the tree it left, whole in storage


class LogRecord(Message):
    n: int
    t: int  # ms
    s: Literal["out", "err", "sys"]
    x: str
    p: bool = False  # partial


class MetricRecord(Message):
    n: int
    t: int
    step: int | None = None
    v: dict[str, float | None]


class StreamBatch(Message):
    attempt_id: Short
    number: int  # the attempt's number within its task
    rank: int
    log: list[LogRecord] = []
    metrics: list[MetricRecord] = []


class CheckpointReport(Message):
    attempt_id: Short
    rank: int
    step: int
    uri: Annotated[str, Field(max_length=4096)]
    size_bytes: int
    manifest_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    metadata: dict[str, Any] = {}
    at_ms: int
    # Of one that the agent carried to storage: `uri` is its manifest's there. It counts when all shards are there.
    slot: Slot_ | None = None
    shard: Annotated[int, Field(ge=0, lt=MAX_SHARDS)] = 0
    shards: Annotated[int, Field(ge=1, le=MAX_SHARDS)] = 1


class ProgressReport(Message):
    attempt_id: Short
    rank: int
    step: int | None = None
    total_steps: int | None = None
    fraction: float | None = Field(default=None, ge=0, le=1)


class Report(Message):
    boot_id: Short
    ranks: list[RankReport] = []
    streams: list[StreamBatch] = []
    checkpoints: list[CheckpointReport] = []
    progress: list[ProgressReport] = []
    usage: dict[str, float] = {}


class StreamAck(Message):
    """The next number expected of each kind: everything below is durable here."""

    attempt_id: str
    rank: int
    log: int
    metrics: int


class ReportReply(Message):
    acks: list[StreamAck] = []
    servers: list[str] = []
    work_version: str | None = None  # a hint: differs from what the agent has, so it may ask at once


# --- checkpoints in storage: ADR 13 ------------------------------------------------------------------


class Signed(Message):
    """One request that needs no credentials, with exactly these headers."""

    method: Literal["GET", "PUT"]
    url: str
    headers: dict[str, str] = {}


class SlotRequest(Message):
    """A slot for the next checkpoint of a rank; or, with `slot`, the same one signed anew or with more parts."""

    attempt_id: Short
    rank: int
    slot: Slot_ | None = None
    first: Annotated[int, Field(ge=0, le=99_999)] = 0  # the first part asked for
    count: Annotated[int, Field(ge=0, le=MAX_SIGNED)] = 16


class SlotReply(Message):
    slot: str
    prefix: str  # URI below which the keys are: `<prefix>/manifests/<slot>.json`
    manifest: Signed
    parts: list[Signed]  # of parts/<slot>/<first> and so on, five digits each
    result: Signed  # of results/<attempt>-<rank>.json: how the rank ended, should no server be there to hear it
    lives_s: float  # until the signatures expire, from now; ask again at half of it


class CandidateRequest(Message):
    attempt_id: Short
    skip: Annotated[int, Field(ge=0, le=10_000)] = 0  # so many newer ones were not usable


class StoredShard(Message):
    slot: str
    manifest: str  # exactly as stored
    objects: list[Signed]  # a GET for each object that the manifest names, in its order


class Candidate(Message):
    step: int
    shards: list[StoredShard]


class CandidateReply(Message):
    candidate: Candidate | None  # None: nothing (more) to resume from


# --- secrets -------------------------------------------------------------------------------------------


class SecretsAsked(Message):
    attempt_id: Short


class SecretValue(Message):
    """`value` is base64; nothing that holds one shows it."""

    name: str
    value: Annotated[str, Field(repr=False)]


class SecretsReply(Message):
    items: list[SecretValue] = []
