"""What a user asked for. A JobSpec is derived from the submitted YAML and never edited; `wire.spec` makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from crucible.model.secret import SecretUse
from crucible.model.shards import Shards
from crucible.model.sweep import Evaluation, Sweep
from crucible.model.units import MicroUsd


class JobType(StrEnum):
    TRAINING = "training"
    HPO = "hpo"
    INFERENCE = "inference"
    EVAL = "eval"
    PREPROCESSING = "preprocessing"


# What may work on many items; the first is meant where none is given.
SHARDED = (JobType.INFERENCE, JobType.EVAL, JobType.PREPROCESSING)


class Framework(StrEnum):
    PLAIN = "plain"
    PYTORCH = "pytorch"
    PYTORCH_DDP = "pytorch_ddp"
    HOROVOD = "horovod"
    HOROVOD_ELASTIC = "horovod_elastic"
    TENSORFLOW = "tensorflow"
    TENSORFLOW_MULTIWORKER = "tensorflow_multiworker"


# Their workers find each other anew when machines come and go.
ELASTIC = frozenset({Framework.PYTORCH, Framework.PYTORCH_DDP, Framework.HOROVOD_ELASTIC})


class Mode(StrEnum):
    SINGLE_CLUSTER = "single_cluster"
    MULTI_TASK = "multi_task"


class Locality(StrEnum):
    PREFER = "prefer"
    REQUIRED = "required"
    IGNORE = "ignore"


class Replication(StrEnum):
    NONE = "none"
    PRE_STAGE = "pre-stage"
    ON_DEMAND_CACHE = "on-demand-cache"


class Strategy(StrEnum):
    """What a plan makes as good as it can. Each is an objective of `core.strategy`."""

    BALANCED = "balanced"  # cost, time by performance_weight, and a penalty for risk
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    RELIABLE = "reliable"
    NEAR_DATA = "near-data"
    SPREAD = "spread"  # tasks over regions
    OWN_FIRST = "own-first"  # own machines, then what is bought


class ModelClass(StrEnum):
    """Kinds of models whose speed on a GPU relates in the same way; rows of the benchmark table."""

    LLM = "llm"
    TRANSFORMER = "transformer"  # encoders, translation
    VISION = "vision"
    DETECTION = "detection"
    DIFFUSION = "diffusion"
    SPEECH = "speech"
    RECOMMENDER = "recommender"
    OTHER = "other"


class Precision(StrEnum):
    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"


class Optimizer(StrEnum):
    ADAMW = "adamw"
    ADAM = "adam"
    SGD = "sgd"
    ADAFACTOR = "adafactor"
    LION = "lion"
    ADAM_8BIT = "adam8bit"
    NONE = "none"  # inference


class Method(StrEnum):
    FULL = "full"
    LORA = "lora"
    QLORA = "qlora"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What the job computes, as far as the user knows: time, $/step and the memory of a GPU follow from it."""

    model: str | None = None  # "llama-2-7b", "resnet50": a row of the shipped list of architectures, or any name
    model_class: ModelClass | None = None
    parameters: float | None = None
    method: Method = Method.FULL
    precision: Precision | None = None
    optimizer: Optimizer | None = None
    batch_size: int | None = None  # per GPU
    sequence_length: int | None = None
    steps: float | None = None
    tokens: float | None = None  # in all
    samples: float | None = None  # of one epoch
    epochs: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    gpus: int = 0
    nodes: int | None = None  # machines; None: as few as the GPUs allow
    gpu_types: tuple[str, ...] = ()  # empty: any
    max_gpus_per_node: int | None = None
    requires_multi_node: bool = False
    gpu_memory_gib: float = 0
    cpu_memory_gib: float = 0  # per instance
    cpus: int = 0  # per instance
    storage_gib: float = 0
    estimated_hours: float | None = None
    estimated_on: str | None = None  # where the estimate was measured: "A100-80GB:8"; None: on whatever is chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A tree of earlier work that must come to the machines, wherever they are."""

    home: str  # "provider/region", or "provider/"
    size_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    dataset: str | None = None
    size_gib: float | None = None
    region: str | None = None
    locality: Locality = Locality.PREFER
    replication_policy: Replication = Replication.NONE
    brought: tuple[Brought, ...] = ()  # the job's inputs, once they are known


class WhenSpent(StrEnum):
    """What becomes of jobs whose budget is spent."""

    PAUSE = "pause"  # they save, stop, and go on when there is money again
    STOP = "stop"  # they save and end


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    budget: MicroUsd | None = None
    when_spent: WhenSpent = WhenSpent.STOP
    deadline: datetime | None = None
    allow_spot: bool = False
    min_reliability: float = 0.0
    performance_weight: float = 0.0
    preferred_regions: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()  # only these; empty: any
    max_price_per_hour: MicroUsd | None = None  # of all machines together
    max_price_age: timedelta | None = None  # a price older than this is as good as unknown
    strategy: Strategy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    mode: Mode = Mode.SINGLE_CLUSTER
    backend: str | None = None  # seed 001: vm, k8s, slurm, ray, local …
    executor: str | None = None  # seed 002: local, aws, gcp …
    processes_per_node: int | None = None  # None: one; where a launcher starts them, one for each GPU of the machine
    min_nodes: int | None = None  # elastic: goes on with so many machines; None: all or none
    max_nodes: int | None = None  # elastic: uses so many where they can be had
    parallelism: int | None = None  # tasks at a time; None: as many as the plan finds best


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    dir: str | None = None  # a folder or URI of the user's; None: Crucible's own storage
    interval: timedelta | None = None  # advice to the script, through crucible.train
    keep: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often the user's own code may fail. A lost machine never counts."""

    limit: int = 3
    delay: timedelta = timedelta(seconds=60)
    growth: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressHint:
    """For scripts that do not import crucible.train: read progress from log lines."""

    total_steps: int | None = None
    pattern: str | None = None  # a regular expression with a group `step`, or the first group


class Runtime(StrEnum):
    """What runs containers on a machine."""

    AUTO = "auto"  # whichever is there
    DOCKER = "docker"
    PODMAN = "podman"


class Pull(StrEnum):
    MISSING = "missing"  # an image that the machine has is not asked for again
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerOptions:
    """How `image` is run."""

    runtime: Runtime = Runtime.AUTO
    pull: Pull = Pull.MISSING
    auth_file: str | None = None  # credentials of registries, on the machine; None: where its runtime looks
    user: str | None = None  # "1000:1000"; None: whoever the agent is, so that files stay readable
    shm_gib: float | None = None  # of /dev/shm; None: the machine's own


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlugin:
    plugin: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    type: JobType = JobType.TRAINING
    framework: Framework = Framework.PLAIN
    name: str | None = None
    entrypoint: str | None = None  # a path inside the shipped code, or a URI
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # argv; a YAML string becomes ("/bin/sh", "-c", text)
    code: str | None = None  # a local folder or file: what the client packs and ships
    setup: tuple[str, ...] = ()  # shell lines run once per node before the ranks
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[SecretUse, ...] = ()
    python: str | None = None  # the interpreter on the machine that `python` means; None: the agent's
    image: str | None = None
    container: ContainerOptions = ContainerOptions()
    volumes: Mapping[str, str] = field(default_factory=dict)
    model: ModelPlugin | None = None
    resources: Resources = Resources()
    data: Data = Data()
    workload: Workload = Workload()
    constraints: Constraints = Constraints()
    execution: Execution = Execution()
    checkpoint: Checkpointing = Checkpointing()
    retry: Retry = Retry()
    timeout: timedelta | None = None
    progress: ProgressHint = ProgressHint()
    priority: int = 0
    team: str | None = None
    project: str | None = None
    template: str | None = None  # filled in before a job is made: what is stored names none
    given: Mapping[str, Any] = field(default_factory=dict)  # to the template: its parameters
    sweep: Sweep | None = None
    shards: Shards | None = None
    evaluation: Evaluation | None = None
    inputs: Mapping[str, str] = field(
        default_factory=dict
    )  # name -> what earlier work left: tree://DIGEST, output://JOB/TASK
    steps: tuple["Step", ...] = ()
    # What later capabilities will use; validated now, refused at submit by core.admission.
    sharing: Mapping[str, Any] | None = None


class When(StrEnum):
    """What must have become of the steps that a step needs."""

    SUCCEEDED = "succeeded"  # all of them
    FAILED = "failed"  # one of them
    ENDED = "ended"  # whatever became of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a workflow: a job of its own, which begins when the steps it needs have ended."""

    name: str
    job: JobSpec
    needs: tuple[str, ...] = ()
    when: When = When.SUCCEEDED
    inputs: Mapping[str, str] = field(default_factory=dict)  # name -> "step", or "step/path" of its outputs
    output_gib: float | None = None  # of what it hands on, as expected; None: nobody knows
    for_each: str | None = None  # "step/path": a JSON list or lines that the step left; a task for each
    cache: bool = True  # a step whose job and inputs are as they were before is not run again
