"""What the API answers, as types over plain JSON. No validation at run time: the server made it, and an older or newer
server may leave out or add fields, so whatever is optional is read with `.get`."""

from typing import Any, Literal, NotRequired, TypedDict

from crucible.client.shard_shapes import ShardCounts

# Statuses that never change again.
TERMINAL = frozenset({"completed", "failed", "cancelled"})


class Selected(TypedDict, total=False):
    provider: str | None
    region: str | None
    backend: str | None
    instance_type: str | None
    spot: bool | None
    count: int | None


class Cost(TypedDict, total=False):
    running_usd: float
    estimated_usd: float | None


class Timestamps(TypedDict):
    created_at: str
    started_at: str | None
    finished_at: str | None


class Progress(TypedDict, total=False):
    step: int | None
    total_steps: int | None
    fraction: float | None
    at: str
    metrics: dict[str, float | None]


class JobBrief(TypedDict):
    """A row of the list."""

    id: str
    name: str
    status: str
    reason: NotRequired[str | None]
    desired: NotRequired[str]
    user_id: NotRequired[str]
    team: NotRequired[str | None]
    project: NotRequired[str | None]
    job_type: NotRequired[str]
    framework: NotRequired[str]
    gpus: NotRequired[int]
    provider: NotRequired[str | None]
    region: NotRequired[str | None]
    cost_usd: NotRequired[float]
    per_hour_usd: NotRequired[float]
    progress: NotRequired[float | None]
    steps: NotRequired[int]
    health: NotRequired[str | None]
    created_at: NotRequired[str]
    started_at: NotRequired[str | None]
    finished_at: NotRequired[str | None]


class Prediction(TypedDict):
    """What was expected of a job and what came of it."""

    estimated_hours: float | None
    actual_hours: float | None
    estimated_cost_usd: float | None
    actual_cost_usd: float | None
    estimated_hours_high: NotRequired[float | None]  # nine of ten such jobs are done by then
    estimated_cost_high_usd: NotRequired[float | None]
    is_within_goal: NotRequired[bool | None]  # the cost was at most 15 % off


class JobView(TypedDict):
    id: str
    name: str
    status: str
    job_type: str
    framework: str
    execution_mode: str
    selected: Selected | None
    cost: Cost
    timestamps: Timestamps
    desired: NotRequired[str]
    reason: NotRequired[str | None]
    gpus: NotRequired[int]
    user_id: NotRequired[str]
    team: NotRequired[str | None]
    project: NotRequired[str | None]
    priority: NotRequired[int]
    origin: NotRequired[str | None]
    lineage: NotRequired[str]
    parent: NotRequired[str | None]
    step: NotRequired[int | None]
    steps: NotRequired[int]
    deadline: NotRequired[str | None]
    budget_usd: NotRequired[float | None]
    code_digest: NotRequired[str | None]
    progress: NotRequired[Progress | None]
    attempts: NotRequired[dict[str, int]]
    prediction: NotRequired[Prediction | None]
    shards: NotRequired[ShardCounts | None]  # of a job that works on items


class GpuCounts(TypedDict):
    held: int
    computing: int


class Overview(TypedDict):
    """How the jobs that one sees stand."""

    at: str
    jobs: dict[str, int]
    most_counted: int
    machines: int
    gpus: GpuCounts
    per_hour_microusd: int
    per_hour_usd: float


class JobPage(TypedDict):
    items: list[JobBrief]
    next_cursor: str | None


class Submitted(TypedDict):
    id: str
    status: str
    created_at: NotRequired[str]
    origin: NotRequired[str | None]


# Not a class: `from` is a word of Python.
JobEvent = TypedDict(
    "JobEvent",
    {
        "seq": int,
        "at": str,
        "from": str | None,
        "to": str | None,
        "reason": str | None,
        "kind": str,
        "type": str,
        "id": str,
        "body": dict[str, Any],
    },
    total=False,
)


class LogRecord(TypedDict):
    """One line of a rank, or with `p` a piece of one. `n` counts from 0 within (attempt, rank); the last line of each
    piece of a stream says at which offset the next piece begins."""

    offset: NotRequired[int]
    attempt: int
    rank: int
    n: int
    t: int
    s: str
    x: str
    p: NotRequired[bool]


class Changed(TypedDict):
    id: str
    status: str
    desired: NotRequired[str]
    reason: NotRequired[str | None]


class MetricPoint(TypedDict):
    attempt: int
    rank: int
    n: int
    t: int
    step: int | None
    values: dict[str, float | None]  # None: not a number


class MetricPage(TypedDict):
    items: list[MetricPoint]
    next_offset: NotRequired[int]


class Checkpoint(TypedDict):
    step: int
    uri: str
    size_bytes: int
    created_at: str
    job_id: NotRequired[str]
    attempt_id: NotRequired[str | None]
    attempt: NotRequired[int | None]
    shards: NotRequired[int]
    kept_in: NotRequired[str]  # storage, folder
    is_latest: NotRequired[bool]
    manifest_sha256: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]


class CheckpointFile(TypedDict):
    name: str
    size: int
    shard: int


class HeldPiece(TypedDict):
    file: int  # its place in `files`
    offset: int
    size: int
    sha256: str


class CheckpointObject(TypedDict):
    """Pieces of files one after another; the address needs no token, and is as secret as one."""

    url: str
    headers: dict[str, str]
    size: int
    holds: list[HeldPiece]


class CheckpointFiles(TypedDict):
    step: int
    uri: str
    size_bytes: int
    shards: int
    files: list[CheckpointFile]
    objects: list[CheckpointObject]
    lives_s: float


class Verified(TypedDict):
    """How far a check is; the last one says how it ended."""

    step: int
    size_bytes: int
    checked_bytes: int
    is_valid: NotRequired[bool]
    problems: NotRequired[list[str]]


class Artifact(TypedDict):
    type: str
    uri: str
    created_at: str
    meta: NotRequired[dict[str, Any]]


class Rank(TypedDict, total=False):
    rank: int
    node_id: str
    state: str
    exit_code: int | None
    signal: int | None
    reason: str | None
    started_at: str | None
    ended_at: str | None


class AttemptMachine(TypedDict, total=False):
    machine_id: str | None
    provider: str
    region: str
    zone: str
    instance_type: str
    is_spot: bool


class Attempt(TypedDict, total=False):
    id: str
    task_id: str
    number: int
    phase: str
    outcome: str | None
    reason: str | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    resume_step: int | None
    machines: list[AttemptMachine]
    ranks: list[Rank]


class Node(TypedDict, total=False):
    id: str
    provider: str
    region: str
    state: str
    job_id: str
    task_id: str
    machine_id: str
    address: str
    devices: list[str]
    enrolled_at: str
    facts: dict[str, Any]
    instance_type: str
    is_spot: bool
    gpu: str | None
    gpus: int
    price_per_hour_usd: float
    rank: int | None
    heard_at: str | None
    usage: dict[str, float]


class Host(TypedDict, total=False):
    name: str
    address: str
    port: int | None
    user: str | None
    zone: str
    use: str
    jump: str | None
    identity_file: str | None
    internal_address: str | None
    python: str | None
    host_key: str
    state: str
    reachable: bool
    reason: str | None
    machines: int
    facts: dict[str, Any]
    added_by: str
    added_at: str
    checked_at: str | None


class SpecExample(TypedDict):
    name: str
    about: str
    spec_yaml: str


class Plan(TypedDict):
    chosen: dict[str, Any] | None
    alternatives: list[dict[str, Any]]
    rejections: list[dict[str, Any]]
    others: NotRequired[list[dict[str, Any]]]
    runnable: NotRequired[dict[str, Any] | None]
    reason: NotRequired[str | None]
    strategy: NotRequired[str]
    considered: NotRequired[int]
    feasible: NotRequired[int]
    bound: NotRequired[float]
    price_age_s: NotRequired[int | None]
    is_price_stale: NotRequired[bool]
    catalog_rows: NotRequired[int]
    plan_cpu_ms: NotRequired[float]
    why_not: NotRequired[list[dict[str, Any]]]
    steps: NotRequired[list[dict[str, Any]]]  # of a workflow: a plan for each, with its name
    total: NotRequired[dict[str, Any] | None]  # of all steps together; None where nothing keeps the limits
    runnable_total: NotRequired[dict[str, Any] | None]
    warnings: NotRequired[list[str]]
    notes: NotRequired[list[str]]


class WaitingTask(TypedDict, total=False):
    task: str
    phase: str
    reason: str
    not_before: str | None
    failures: int
    losses: int


class LaunchScript(TypedDict):
    script: str
    is_placed: bool


class Why(TypedDict, total=False):
    id: str
    status: str
    desired: str
    reason: str | None
    tasks: list[WaitingTask]


class CostEstimate(TypedDict):
    hourly: float | None
    total: float | None
    confidence: Literal["high", "medium", "low"]


class AvailabilityStatus(TypedDict):
    status: Literal["available", "queued", "limited"]
    waitTime: float | None  # seconds
    basis: str


class BackendRecommendation(TypedDict):
    """Seed 003's words; `enabled`, `hours`, `merits` and `offer` are ours."""

    backend: str
    score: float  # from 0 to 1
    costEstimate: CostEstimate
    availability: AvailabilityStatus
    pros: list[str]
    cons: list[str]
    enabled: bool
    hours: float | None
    merits: dict[str, float]
    offer: dict[str, Any] | None


class Recommendations(TypedDict):
    entrypoint: str | None
    files: list[str]
    findings: list[dict[str, Any]]
    notes: list[str]
    characteristics: dict[str, Any]
    assumptions: list[str]
    memory: list[str]
    hours_basis: str
    recommendations: list[BackendRecommendation]  # the best first
    excluded: list[dict[str, Any]]
    spec_yaml: str


class Accuracy(TypedDict):
    """Errors are shares of what happened: 0.1 is 10 % off."""

    count: int
    median_error: float
    p90_error: float
    bias: float
    within: float
    goal: float


class AccuracyGroup(TypedDict):
    key: dict[str, str]  # what its jobs have in common; empty for all
    hours: Accuracy | None
    cost: Accuracy | None
    within_range: float | None  # share of the jobs that cost no more than the upper end that was told


class AccuracyReport(TypedDict):
    jobs: int
    since: str | None
    overall: AccuracyGroup
    groups: list[AccuracyGroup]
    trend: list[AccuracyGroup]  # week by week, each by its Monday
