"""The REST API's shapes, version 1: seed 000's words, ours added. Requests are validated by these classes; answers are
written by hand where speed counts and described here for the OpenAPI document. Nothing here knows HTTP."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from crucible.model.spec import Strategy
from crucible.wire.shards import ShardCounts

# A spec is at most 256 KiB; JSON may write some characters with six bytes.
MAX_BODY_BYTES = 2 << 20
MAX_PACKAGE_BYTES = 512 << 20
MAX_PAGE = 200

Status = Literal["pending", "scheduled", "provisioning", "running", "checkpointing", "completed", "failed", "cancelled"]
# Names are shown in terminals and stored by databases that refuse NUL: no control characters.
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
# What to write instead, where somebody's text does not fit a pattern, which says nothing to most.
FORMS = {
    r"^[^\x00-\x1f\x7f]+$": "a text without line breaks and control characters",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$": "letters, digits, `.`, `_` and `-`: at most 64, and a letter or digit first",
    r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$": (
        "letters, digits, `.`, `_`, `-` and `@`: at most 64, and a letter or digit first"
    ),
}
Reason = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
UserName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
HexDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SpecText = Annotated[str, Field(max_length=1 << 20)]


class Request(BaseModel):
    """An unknown field is an error: a wish that is not understood must not be dropped silently."""

    model_config = ConfigDict(extra="forbid")


class Submit(Request):
    name: Name | None = None
    spec_yaml: SpecText
    code_digest: HexDigest | None = None


class JobListQuery(BaseModel):
    status: Annotated[str, Field(max_length=200, description="One or several states, with commas between them")] = ""
    name: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    user: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="Whose jobs")] = ""
    team: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="Jobs of a team")] = ""
    project: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="Jobs of a project")] = ""
    parent: Annotated[str, Field(max_length=64, pattern=r"^[0-9A-Za-z-]*$", description="Jobs of its steps")] = ""
    steps: Annotated[bool, Field(description="Also jobs that work for steps of workflows")] = False
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=200, pattern=r"^[\x21-\x7e]*$", description="`next_cursor` of a page")] = ""


class SpecOnly(Request):
    spec_yaml: SpecText


class PlanAsked(SpecOnly):
    strategy: Strategy | None = None
    why_not: Annotated[str, Field(max_length=200)] | None = None


class Why(Request):
    reason: Reason | None = None


class Training(Request):
    """Seed 002's body, or ours."""

    name: Name | None = None
    spec_yaml: SpecText | None = None
    model_name: Name | None = None
    config: dict[str, Any] = {}


# --- answers --------------------------------------------------------------------------------------


class Error(BaseModel):
    error: str
    message: str
    details: dict[str, Any]


class Submitted(BaseModel):
    id: str
    status: Status
    created_at: datetime
    origin: str | None = None


class Changed(BaseModel):
    id: str
    status: Status
    desired: Literal["run", "hold", "cancel"]
    reason: str | None


class Selected(BaseModel):
    provider: str
    region: str
    backend: str
    instance_type: str
    spot: bool
    count: int


class Cost(BaseModel):
    running_usd: float
    estimated_usd: float | None


class Timestamps(BaseModel):
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime | None


class Progress(BaseModel):
    step: int | None
    total_steps: int | None
    fraction: float | None
    at: datetime
    metrics: dict[str, float | None]


class AttemptCounts(BaseModel):
    """`losses` are machines lost: they never count against the user's retries."""

    started: int
    failures: int
    losses: int


class Prediction(BaseModel):
    """Hours are those in which ranks ran; null where nobody knows."""

    estimated_hours: float | None
    actual_hours: float | None
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    estimated_hours_high: float | None  # nine of ten such jobs are done by then
    estimated_cost_high_usd: float | None
    is_within_goal: bool | None  # the cost was at most 15 % off


class JobView(BaseModel):
    id: str
    name: str
    status: Status
    job_type: str
    framework: str
    execution_mode: str
    selected: Selected | None
    cost: Cost
    timestamps: Timestamps
    desired: Literal["run", "hold", "cancel"]
    reason: str | None
    gpus: int
    priority: int
    progress: Progress | None
    attempts: AttemptCounts
    origin: str | None
    lineage: str
    parent: str | None  # the workflow that it works for,
    step: int | None  # and the number of the step there
    steps: int  # that it has; 0: it is no workflow
    deadline: datetime | None
    budget_usd: float | None
    user_id: str
    team: str | None
    project: str | None
    code_digest: str | None
    prediction: Prediction | None  # once it has ended
    shards: ShardCounts | None  # of a job that works on items


class JobBrief(BaseModel):
    id: str
    name: str
    status: Status
    reason: str | None
    desired: Literal["run", "hold", "cancel"]
    user_id: str
    team: str | None
    project: str | None
    job_type: str
    framework: str
    gpus: int
    provider: str | None
    region: str | None
    cost_usd: float
    per_hour_usd: float  # of what runs now
    progress: float | None
    steps: int  # that it has; 0: it is no workflow
    health: Literal["ok", "warning", "critical", "unknown"] | None  # as last found; null: it was never looked at
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class JobPage(BaseModel):
    items: list[JobBrief]
    next_cursor: str | None


class JobEvent(BaseModel):
    """A change of status; with `all=true` also everything else that happened, told apart by `kind` and `type`."""

    model_config = ConfigDict(extra="allow")
    seq: int
    at: datetime
    from_: Status | None = Field(default=None, alias="from")
    to: Status | None = None
    reason: str | None = None


class Events(BaseModel):
    items: list[JobEvent]
    next_after: int | None


class Artifact(BaseModel):
    type: str
    uri: str
    created_at: datetime
    meta: dict[str, Any]


class Artifacts(BaseModel):
    items: list[Artifact]


class MetricItem(BaseModel):
    attempt: int
    rank: int
    n: int
    t: int
    step: int | None
    values: dict[str, float | None]


class SeriesPoint(BaseModel):
    """Samples of one stretch of time, added up; of one sample alone `count` or `invalid` is 1."""

    t: int  # ms: the beginning of the stretch
    count: int  # that are numbers
    invalid: int  # NaN and infinities
    min: float | None
    max: float | None
    mean: float | None
    last: float | None
    last_t: int
    step: int | None  # of the last


class Series(BaseModel):
    name: str
    points: list[SeriesPoint]  # a stretch without samples has none


class Metrics(BaseModel):
    """Points as they came, or with a range or a resolution `series`: the two are never in one answer."""

    items: list[MetricItem]
    next_offset: int
    resolution_s: float | None = None  # of `series`; 0: every sample by itself
    series: list[Series] | None = None
    left_out: int = 0  # names for which there was no room: ask for them by name


class CheckpointItem(BaseModel):
    step: int
    uri: str
    size_bytes: int
    manifest_sha256: str
    created_at: datetime
    job_id: str
    attempt_id: str | None  # null: whole in storage, and not reported by anybody yet
    attempt: int | None  # its number
    shards: int
    kept_in: Literal["storage", "folder"]
    is_latest: bool  # what the next attempt begins with, unless it turns out corrupt
    metadata: dict[str, Any]


class Checkpoints(BaseModel):
    items: list[CheckpointItem]


class CheckpointRemoved(BaseModel):
    removed: int  # the step


class CheckpointFile(BaseModel):
    name: str
    size: int
    shard: int


class HeldPiece(BaseModel):
    file: int  # its place in `files`
    offset: int
    size: int
    sha256: str


class CheckpointObject(BaseModel):
    """Pieces of files, one after another, for whoever has the address; it expires."""

    url: str
    headers: dict[str, str]
    size: int
    holds: list[HeldPiece]


class CheckpointFiles(BaseModel):
    step: int
    uri: str
    size_bytes: int
    shards: int
    files: list[CheckpointFile]
    objects: list[CheckpointObject]
    lives_s: float  # until the addresses expire, from now


class RankItem(BaseModel):
    rank: int
    node_id: str
    node_rank: int
    local_rank: int
    devices: list[str]
    state: str
    exit_code: int | None
    signal: int | None
    reason: str | None
    started_at: datetime | None
    ended_at: datetime | None


class AttemptMachine(BaseModel):
    machine_id: str | None  # null until the seller has named it
    provider: str
    region: str
    zone: str  # empty where the seller has none
    instance_type: str
    is_spot: bool


class AttemptItem(BaseModel):
    id: str
    task_id: str
    number: int
    phase: str
    outcome: str | None
    reason: str | None
    resume_step: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    machines: list[AttemptMachine]
    ranks: list[RankItem]


class Attempts(BaseModel):
    items: list[AttemptItem]


class Spec(BaseModel):
    spec_yaml: str


class LaunchScript(BaseModel):
    script: str
    is_placed: bool  # False: names like node-0 stand for machines that are not chosen yet


class SpecProblem(BaseModel):
    """Lines and columns are counted from 1; 0 is nowhere."""

    line: int
    column: int
    field: str
    message: str
    hint: str


class Validated(BaseModel):
    valid: Literal[True]
    warnings: list[SpecProblem]


class SpecExample(BaseModel):
    name: str
    about: str
    spec_yaml: str


class SpecExamples(BaseModel):
    items: list[SpecExample]


class Explanation(BaseModel):
    model_config = ConfigDict(extra="allow")
    status: Status
    reason: str | None


class Package(BaseModel):
    digest: str
    size_bytes: int


class NodeItem(BaseModel):
    id: str
    provider: str
    region: str
    state: str
    job_id: str
    task_id: str
    machine_id: str
    address: str
    devices: list[str]
    enrolled_at: datetime
    facts: dict[str, Any]
    instance_type: str
    is_spot: bool
    gpu: str | None
    gpus: int  # that are paid for
    price_per_hour_usd: float
    rank: int | None  # the lowest that runs there
    heard_at: datetime | None
    usage: dict[str, float]  # its newest figures: cpu_percent, gpu0_percent …


class Nodes(BaseModel):
    items: list[NodeItem]


class Version(BaseModel):
    version: str
    api: str
    agent_protocol: int


class Health(BaseModel):
    model_config = ConfigDict(extra="allow")
    status: str


class SystemCheck(BaseModel):
    name: str  # provider, loops, queue, orders, ledger, database, streams, prices, agents
    subject: str  # which provider, which source
    status: Literal["ok", "warning", "critical", "unknown"]
    words: str
    advice: str
    details: dict[str, Any]


class SystemHealth(BaseModel):
    status: Literal["ok", "warning", "critical", "unknown"]  # the worst
    checks: list[SystemCheck]


class ServerHealth(Health):
    system: SystemHealth


class ProviderHealth(BaseModel):
    provider: str
    status: str
    places: list[Health]  # one for each region


class Alive(BaseModel):
    status: str


class TrainingStarted(BaseModel):
    job_id: str
    execution_id: str
    id: str
    status: Status
    created_at: datetime


class TrainingView(JobView):
    job_id: str
