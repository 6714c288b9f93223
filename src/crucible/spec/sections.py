"""The tables of the mappings inside a job: resources, data, constraints, execution and the rest. The job itself is in
`fields`."""

from datetime import timedelta
from enum import StrEnum

from crucible.model.spec import (
    Checkpointing,
    Constraints,
    ContainerOptions,
    Data,
    Execution,
    Locality,
    Mode,
    ModelPlugin,
    ProgressHint,
    Pull,
    Replication,
    Resources,
    Retry,
    Runtime,
    Strategy,
    WhenSpent,
)
from crucible.spec.addresses import DatasetLocation, Location
from crucible.spec.kinds import NAME_LENGTH, Choice, Flag, Number, Text, Whole
from crucible.spec.pattern import Pattern
from crucible.spec.quantities import Duration, Instant, Money, Size
from crucible.spec.shapes import FreeMap, ListOf, OneOrList
from crucible.spec.table import Field, Group

BACKENDS = ("vm", "k8s", "slurm", "ray", "local", "ecs", "modal", "colab")
EXECUTORS = (
    "local", "aws", "gcp", "azure", "alibaba", "tencent", "lambda", "paperspace", "modal", "colab", "onprem",
    "slurm",
)  # fmt: skip

MOST_RETRIES = 100
ONE_SECOND = timedelta(seconds=1)
_PB = 1024.0**2  # in GiB


def choice(enum: type[StrEnum], **aka: str) -> Choice:
    return Choice(tuple(member.value for member in enum), enum, aka)


_REGION = Text(
    "a region such as us-east-1",
    pattern=r"[A-Za-z0-9][A-Za-z0-9._-]*",
    hint="as the provider spells it",
    max_length=NAME_LENGTH,
)
_GPU = Text(
    "a GPU such as H100",
    pattern=r"[A-Za-z0-9][A-Za-z0-9 ._+/-]*",
    hint="the number of GPUs goes into gpus",
    max_length=NAME_LENGTH,
)
_GPUS = Text(
    "a GPU and how many, such as A100-80GB:8",
    pattern=r"[A-Za-z][A-Za-z0-9 ._+/-]*(:[1-9][0-9]{0,5})?",
    hint="the GPU as in gpu_type, then a colon and their number; one if no number is given",
    max_length=NAME_LENGTH,
)
_PROVIDER = Text(
    "a provider such as aws",
    pattern=r"[a-z][a-z0-9_-]*",
    hint="in small letters; `crucible offers` lists them",
    max_length=NAME_LENGTH,
)
_PLUGIN = Text(
    "the name of a model plugin",
    pattern=r"[A-Za-z_][A-Za-z0-9_.:-]*",
    hint="letters, digits, _ . : -",
    max_length=NAME_LENGTH,
)

_AUTH_FILE = Text(
    "an absolute path on the machine",
    pattern=r"/[^\x00-\x1f\x7f]+",
    hint="credentials are never part of a spec: name the file that holds them there",
    max_length=4096,
)
_USER = Text(
    "a user and group as numbers, such as 1000:1000", pattern=r"[0-9]{1,10}(:[0-9]{1,10})?", takes_numbers=True
)

RESOURCES = Group(
    make=Resources,
    fields=(
        Field(
            name="gpus",
            kind=Whole(0, 1_000_000),
            default=0,
            example=8,
            doc="GPUs of the whole job; 0 is a job that needs only CPUs",
            aka=("gpu_count", "num_gpus", "accelerators"),
        ),
        Field(
            name="gpu_type",
            kind=OneOrList(_GPU, "a GPU such as H100, or a list of them"),
            to="gpu_types",
            example="H100",
            doc="GPU model, or a list of acceptable ones; any if not given",
            aka=("gpu_types", "gpu_model", "accelerator"),
        ),
        Field(
            name="nodes",
            kind=Whole(1, 10_000),
            example=2,
            doc="machines of the job; as few as the GPUs and max_gpus_per_node allow if not given",
            aka=("num_nodes", "machines", "node_count"),
        ),
        Field(name="max_gpus_per_node", kind=Whole(1, 4096), example=4, doc="at most so many GPUs on one machine"),
        Field(
            name="requires_multi_node",
            kind=Flag(),
            default=False,
            example=True,
            doc="spread over at least two machines",
        ),
        Field(
            name="gpu_memory",
            kind=Size(4096),
            to="gpu_memory_gib",
            default=0,
            example="80GB",
            doc="least memory of each GPU. GB and GiB both mean the figure that vendors print, TB is 1024 of them, "
            "a bare number is GB",
            aka=("vram", "memory_gb"),
        ),
        Field(
            name="cpu_memory",
            kind=Size(_PB),
            to="cpu_memory_gib",
            default=0,
            example="512GB",
            doc="least main memory of each machine, in the same units",
            aka=("memory", "ram", "ram_gb", "mem"),
        ),
        Field(
            name="cpus",
            kind=Whole(0, 65_536),
            default=0,
            example=16,
            doc="least CPU cores of each machine",
            aka=("vcpus", "cpu"),
        ),
        Field(
            name="storage",
            kind=Size(_PB),
            to="storage_gib",
            default=0,
            example="200GB",
            doc="least disk of each machine",
            aka=("disk", "disk_size", "storage_gb"),
        ),
        Field(
            name="estimated_hours",
            kind=Number(0, 87_600, is_above_least=True),
            example=6.5,
            doc="how long the work takes, if you know: plans and prices get better",
            aka=("hours",),
        ),
        Field(
            name="estimated_on",
            kind=_GPUS,
            example="A100-80GB:8",
            doc="GPUs on which it takes estimated_hours; without it the estimate stands for whatever is chosen",
            aka=("measured_on", "reference_gpu"),
        ),
    ),
)

DATA = Group(
    make=Data,
    fields=(
        Field(
            name="dataset",
            kind=DatasetLocation(),
            example="s3://datasets/imagenet",
            doc="a registered dataset, dataset://NAME[@DIGEST]; or where the data is: s3://, gs://, az://, minio://, "
            "file://, or a path that starts with / or ./",
            aka=("uri", "path", "dataset_uri"),
        ),
        Field(
            name="size",
            kind=Size(1024 * _PB),
            to="size_gib",
            example="150GB",
            doc="size of the dataset",
            aka=("dataset_size",),
        ),
        Field(
            name="region", kind=_REGION, example="us-east-1", doc="where the dataset is stored", aka=("dataset_region",)
        ),
        Field(
            name="locality",
            kind=choice(Locality, preferred="prefer", require="required", none="ignore"),
            default="prefer",
            example="required",
            doc="must the machines be where the data is?",
            aka=("data_locality",),
        ),
        Field(
            name="replication_policy",
            kind=choice(Replication, prestage="pre-stage", cache="on-demand-cache"),
            default="none",
            example="pre-stage",
            doc="none: read in place; pre-stage: copy before the start; on-demand-cache: copy on first access",
            aka=("replication",),
        ),
    ),
)

CONSTRAINTS = Group(
    make=Constraints,
    fields=(
        Field(
            name="budget",
            kind=Money(1_000_000_000),
            example=100,
            doc="most US dollars the job may cost, exact to a micro-dollar",
            aka=("max_budget", "budget_usd", "max_cost"),
        ),
        Field(
            name="when_spent",
            kind=choice(WhenSpent, cancel="stop", end="stop", hold="pause"),
            default="stop",
            example="pause",
            doc="when the budget is spent, stop: it saves and ends; pause: it saves and waits for more",
        ),
        Field(
            name="deadline",
            kind=Instant(),
            example="2027-01-15T10:00:00Z",
            doc="when it must be finished: ISO 8601 with a zone",
            aka=("deadline_at", "due"),
        ),
        Field(
            name="allow_spot",
            kind=Flag(),
            default=False,
            example=True,
            doc="may run on machines that can be taken away",
            aka=("spot", "use_spot", "preemptible"),
        ),
        Field(
            name="min_reliability",
            kind=Number(0, 1),
            default=0,
            example=0.9,
            doc="least probability to finish within deadline and budget",
            aka=("reliability",),
        ),
        Field(
            name="performance_weight",
            kind=Number(0, 1),
            default=0,
            example=0.3,
            doc="0: only cost counts, 1: only speed counts",
        ),
        Field(
            name="preferred_regions",
            kind=ListOf(_REGION, "a list of regions"),
            example=["us-east-1", "europe-west4"],
            doc="a preference, not a rule",
            aka=("regions",),
        ),
        Field(
            name="providers",
            kind=OneOrList(_PROVIDER, "a provider such as aws, or a list of them"),
            example=["aws", "gcp"],
            doc="only machines of these; any if not given",
            aka=("clouds", "allowed_providers"),
        ),
        Field(
            name="max_price_per_hour",
            kind=Money(1_000_000),
            example=12.5,
            doc="most US dollars per hour of all machines together",
            aka=("max_hourly_price", "max_price", "price_limit"),
        ),
        Field(
            name="max_price_age",
            kind=Duration(ONE_SECOND, timedelta(days=3650)),
            example="7d",
            doc="a price that is older counts as unknown",
        ),
        Field(
            name="strategy",
            kind=choice(Strategy, cost="cheapest", speed="fastest", onprem_first="own-first"),
            example="cheapest",
            doc="what a plan makes as good as it can; balanced if not given",
            aka=("objective", "optimize"),
        ),
    ),
)

EXECUTION = Group(
    make=Execution,
    fields=(
        Field(
            name="mode",
            kind=choice(
                Mode, single="single_cluster", cluster="single_cluster", multi="multi_task", tasks="multi_task"
            ),
            example="single_cluster",
            doc="single_cluster: one network for all machines; multi_task: independent tasks anywhere. "
            "Chosen from type and framework if not given",
            aka=("execution_mode",),
        ),
        Field(
            name="backend",
            kind=Choice(BACKENDS, aka={"kubernetes": "k8s", "docker": "local", "ec2": "vm", "ssh": "vm"}),
            example="vm",
            doc="how work is started; chosen if not given",
        ),
        Field(
            name="executor",
            kind=Choice(EXECUTORS, aka={"google": "gcp", "amazon": "aws", "aliyun": "alibaba", "on_prem": "onprem"}),
            example="aws",
            doc="who sells the machines; chosen if not given",
            aka=("provider", "cloud"),
        ),
        Field(
            name="processes_per_node",
            kind=Whole(1, 64),
            example=4,
            doc="processes of the job on each machine; if not given, one for each GPU with pytorch, pytorch_ddp and "
            "horovod, else one",
            aka=("nproc_per_node",),
        ),
        Field(
            name="min_nodes",
            kind=Whole(1, 10_000),
            example=1,
            doc="elastic: the job goes on with so many machines when others are lost; all are needed if not given",
        ),
        Field(
            name="max_nodes",
            kind=Whole(1, 10_000),
            example=4,
            doc="elastic: the job grows to so many machines when they can be had",
        ),
        Field(
            name="parallelism",
            kind=Whole(1, 100_000),
            example=50,
            doc="tasks of the job that run at the same time; as many as the plan finds best if not given",
            aka=("max_parallel", "concurrency"),
        ),
    ),
)

MODEL = Group(
    make=ModelPlugin,
    fields=(
        Field(
            name="plugin",
            kind=_PLUGIN,
            example="resnet",
            is_required=True,
            doc="the plugin that trains the model",
            aka=("model_plugin", "model_name"),
        ),
        Field(name="config", kind=FreeMap(), example={"lr": 0.001}, doc="handed to the plugin as it is"),
    ),
)

CONTAINER = Group(
    make=ContainerOptions,
    fields=(
        Field(
            name="runtime",
            kind=choice(Runtime),
            default="auto",
            example="podman",
            doc="what runs the container; auto: whichever the machine has",
            aka=("engine",),
        ),
        Field(
            name="pull",
            kind=choice(Pull, if_not_present="missing"),
            default="missing",
            example="always",
            doc="when the image is asked for: if the machine lacks it, always, or never",
            aka=("image_pull_policy", "pull_policy"),
        ),
        Field(
            name="auth_file",
            kind=_AUTH_FILE,
            example="/etc/crucible/registry.json",
            doc="credentials of registries: a file on the machine; where docker or podman look if not given",
            aka=("registry_auth",),
        ),
        Field(
            name="user",
            kind=_USER,
            example="1000:1000",
            doc="user and group inside the container, as numbers; whoever the agent is if not given",
        ),
        Field(
            name="shm_size",
            kind=Size(_PB),
            to="shm_gib",
            example="16GB",
            doc="size of /dev/shm; the machine's own if not given",
            aka=("shm",),
        ),
    ),
)

CHECKPOINT = Group(
    make=Checkpointing,
    fields=(
        Field(
            name="dir",
            kind=Location(),
            example="s3://my-bucket/checkpoints",
            doc="where checkpoints go; Crucible's own storage if not given",
            aka=("checkpoint_dir", "path"),
        ),
        Field(
            name="interval",
            kind=Duration(ONE_SECOND, timedelta(days=30)),
            example="10m",
            doc="how often the script should save one",
            aka=("checkpoint_interval", "every"),
        ),
        Field(
            name="keep",
            kind=Whole(2, 1000),
            default=3,
            example=5,
            doc="how many to keep; at least 2, in case the newest is torn",
        ),
    ),
)

RETRY = Group(
    make=Retry,
    fields=(
        Field(
            name="limit",
            kind=Whole(0, MOST_RETRIES),
            default=3,
            example=5,
            doc="how often your code may fail before the job has failed; lost machines do not count",
            aka=("max_retries", "retries", "count"),
        ),
        Field(
            name="delay",
            kind=Duration(timedelta(0), timedelta(days=1)),
            default="1m",
            example="30s",
            doc="wait before the first retry",
        ),
        Field(
            name="growth",
            kind=Number(1, 10),
            default=2,
            example=1.5,
            doc="each wait is so much longer than the one before",
            aka=("backoff",),
        ),
    ),
)

PROGRESS = Group(
    make=ProgressHint,
    fields=(
        Field(
            name="total_steps",
            kind=Whole(1, 2**53),
            example=10_000,
            doc="steps of the whole run",
            aka=("steps", "max_steps"),
        ),
        Field(
            name="pattern",
            kind=Pattern(),
            example="step (?P<step>[0-9]+)",
            doc="regular expression that finds the step in a log line, in its group `step` or its first group; "
            "only for scripts that do not use crucible.train",
        ),
    ),
)
