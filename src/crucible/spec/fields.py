"""The table of every field of a spec: its kind, bounds, default, meaning, and the attribute of `JobSpec` it sets.
Adding a field is adding a line here, in `sections` or in `workload`. Rules between fields are in `rules`."""

from collections.abc import Mapping
from datetime import timedelta

from crucible.model.spec import Framework, JobSpec, JobType, Retry
from crucible.spec.addresses import CODE, IMAGE, INPUT, INPUT_NAME, MOUNT_POINT, MOUNTED, PYTHON, Entrypoint
from crucible.spec.kinds import NAME, NAME_LENGTH, Text, Whole
from crucible.spec.quantities import Duration, Minutes
from crucible.spec.secrets import ENV_NAME, SecretEntry
from crucible.spec.sections import (
    CHECKPOINT,
    CONSTRAINTS,
    CONTAINER,
    DATA,
    EXECUTION,
    MODEL,
    MOST_RETRIES,
    ONE_SECOND,
    PROGRESS,
    RESOURCES,
    RETRY,
    choice,
)
from crucible.spec.shapes import FreeMap, ListOf, MapOf, OneOrList
from crucible.spec.shards import SHARDS
from crucible.spec.sweep import EVALUATION, SWEEP
from crucible.spec.table import Field, Group
from crucible.spec.template import TEMPLATE_NAME
from crucible.spec.workflow import with_steps
from crucible.spec.workload import WORKLOAD

_LONGEST_RUN = timedelta(days=366)

_NAME = Text("a name", pattern=NAME, hint="one line, without spaces at its ends", max_length=NAME_LENGTH)
_ARGUMENT = Text("text", may_be_empty=True, takes_numbers=True)
_SHELL = Text("shell lines")

WORK = Group(
    make=JobSpec,
    one_of=("entrypoint", "command", "model", "template"),
    fields=(
        Field(
            name="type",
            kind=choice(
                JobType,
                train="training",
                evaluation="eval",
                batch_inference="inference",
                sweep="hpo",
                preprocess="preprocessing",
            ),
            default="training",
            example="training",
            doc="what kind of work it is",
            aka=("job_type", "kind"),
        ),
        Field(
            name="framework",
            kind=choice(Framework, torch="pytorch", ddp="pytorch_ddp", tf="tensorflow", none="plain"),
            default="plain",
            example="pytorch_ddp",
            doc="how the processes are started and find each other; plain: just a command",
        ),
        Field(name="name", kind=_NAME, example="resnet50-imagenet", doc="shown in lists", aka=("job_name",)),
        Field(
            name="entrypoint",
            kind=Entrypoint(),
            example="train.py",
            doc="script to run: a path inside the shipped code, an object (s3://, gs://, az://, minio://), "
            "or a file of a git repository at a commit (git+https://host/repo@<commit>#path/to/file.py)",
            aka=("script", "entrypoint_uri", "training_script", "main"),
        ),
        Field(
            name="args",
            kind=ListOf(_ARGUMENT, "a list of arguments"),
            example=["--epochs", "90"],
            doc="arguments of the entrypoint",
            aka=("arguments",),
        ),
        Field(
            name="command",
            kind=OneOrList(
                Text("a command", takes_numbers=True),
                "a command, or a list of its words",
                alone=lambda text: ("/bin/sh", "-c", text),
            ),
            example="python train.py --epochs 90",
            doc="instead of an entrypoint: text is run by /bin/sh, a list is run as it stands",
            aka=("cmd", "run"),
        ),
        Field(
            name="code",
            kind=CODE,
            example=".",
            doc="folder or file to ship with the job, relative to the spec; "
            "what .gitignore and .crucibleignore name stays behind",
            aka=("workdir", "source", "working_dir"),
        ),
        Field(
            name="setup",
            kind=OneOrList(_SHELL, "shell lines, or a list of them"),
            example="pip install -r requirements.txt",
            doc="shell lines run on each machine before the job; without an image, what they install is kept for later "
            "runs",
        ),
        Field(
            name="env",
            kind=MapOf(ENV_NAME, _ARGUMENT, "a mapping of variables"),
            example={"NCCL_DEBUG": "INFO"},
            doc="environment variables",
            aka=("environment", "envs", "env_vars"),
        ),
        Field(
            name="secrets",
            kind=ListOf(SecretEntry(), "a list of secrets"),
            example=["HF_TOKEN", {"name": "GCP_KEY", "file": "gcp.json", "env": "GOOGLE_APPLICATION_CREDENTIALS"}],
            doc="names of secrets (`crucible secret set`): each becomes the variable of its name, another one (env), "
            "or a file below $CRUCIBLE_SECRETS (file), whose path is then in env",
            aka=("secret", "credentials"),
        ),
        Field(
            name="python",
            kind=PYTHON,
            example="/opt/venv/bin/python",
            doc="the Python on the machine that runs the job; the one that runs Crucible's agent if not given",
            aka=("python_path", "interpreter"),
        ),
        Field(
            name="image",
            kind=IMAGE,
            example="pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime",
            doc="container image to run in; a plain process if not given",
            aka=("docker_image", "container_image"),
        ),
        Field(name="container", kind=CONTAINER, doc="how the image is run"),
        Field(
            name="volumes",
            kind=MapOf(MOUNT_POINT, MOUNTED, "a mapping of paths"),
            example={"/data": "/host/data"},
            doc="path inside the job -> folder of the host, volume, or object storage; "
            "without an image only a folder at its own path",
            aka=("mounts", "file_mounts"),
        ),
        Field(
            name="model",
            kind=MODEL,
            example={"plugin": "resnet", "config": {"lr": 0.001}},
            doc="train a registered model plugin",
        ),
        Field(name="resources", kind=RESOURCES, doc="what the job needs", aka=("requirements",)),
        Field(name="data", kind=DATA, doc="what the job reads"),
        Field(
            name="inputs",
            kind=MapOf(INPUT_NAME, INPUT, "a mapping of names to trees"),
            example={"weights": "output://0f3c6a3e-7f1e-4d2b-9a55-0d6a5a2f7a10"},
            doc="what earlier jobs left: each is a folder below $CRUCIBLE_INPUTS, by its name; "
            "output://JOB, output://JOB/TASK or tree://DIGEST",
        ),
        Field(
            name="workload",
            kind=WORKLOAD,
            doc="what the job computes, as far as you know: time, cost per step and GPU memory follow",
        ),
        Field(name="constraints", kind=CONSTRAINTS, doc="what a plan must respect"),
        Field(name="execution", kind=EXECUTION, doc="where and how the job runs"),
        Field(
            name="checkpoint", kind=CHECKPOINT, doc="how the job can be resumed", aka=("checkpoints", "checkpointing")
        ),
        Field(name="retry", kind=RETRY, doc="what happens when your code fails"),
        Field(
            name="retry_count",
            kind=Whole(0, MOST_RETRIES),
            to="retry",
            make=lambda limit: Retry(limit=limit),
            example=3,
            doc="short for retry.limit",
        ),
        Field(
            name="timeout",
            kind=Duration(ONE_SECOND, _LONGEST_RUN),
            example="2h",
            doc="a run that takes longer is stopped and has failed",
            aka=("max_runtime", "time_limit"),
        ),
        Field(
            name="timeout_minutes",
            kind=Minutes(_LONGEST_RUN),
            to="timeout",
            example=60,
            doc="the same as a number of minutes",
        ),
        Field(name="progress", kind=PROGRESS, doc="how to tell how far a run is"),
        Field(
            name="priority",
            kind=Whole(-1000, 1000),
            default=0,
            example=10,
            doc="higher goes first within a team's share",
        ),
        Field(name="team", kind=_NAME, example="vision", doc="who pays"),
        Field(name="project", kind=_NAME, example="imagenet", doc="what the cost is counted under"),
        Field(
            name="template",
            kind=TEMPLATE_NAME,
            example="ddp-resnet",
            doc="job template that this spec fills in; what else the job says goes before what the template says",
        ),
        Field(
            name="with",
            kind=FreeMap("a mapping of the template's parameters"),
            to="given",
            example={"lr": 0.1},
            doc="parameters of the template",
            aka=("template_parameters",),
        ),
        Field(name="sharing", kind=FreeMap(), example={"fraction": 0.5}, doc="share of a GPU"),
        Field(name="sweep", kind=SWEEP, doc="trials of a hyper-parameter search", aka=("hpo", "search")),
        Field(name="evaluation", kind=EVALUATION, doc="every model on every dataset", aka=("evaluate", "eval")),
        Field(name="shards", kind=SHARDS, doc="work on many items", aka=("batch", "array")),
    ),
)
JOB = with_steps(WORK)


def _job(job: JobSpec) -> JobSpec:
    return job


SPEC = Group(
    make=_job,
    fields=(Field(name="job", kind=JOB, is_required=True, doc="everything stands under `job:`"),),
)


def groups(group: Group = SPEC, path: str = "") -> Mapping[str, Group]:
    """Every group of the table by its path, outer ones first."""
    found: dict[str, Group] = {path: group} if path else {}
    for field in group.fields:
        if isinstance(field.kind, Group):
            found.update(groups(field.kind, f"{path}.{field.name}" if path else field.name))
    return found


def samples() -> Mapping[str, str]:
    """A sample of every field that is not a mapping of ours, by its full path."""
    found = {}
    for path, group in groups().items():
        for field in group.fields:
            if not isinstance(field.kind, Group):
                found[f"{path}.{field.name}"] = field.sample
    return found


def homes() -> Mapping[str, str]:
    """The full path of every field by its name, and by what others call it; outer fields win."""
    names: dict[str, str] = {}
    others: dict[str, str] = {}
    for path, group in groups().items():
        for field in group.fields:
            names.setdefault(field.name, f"{path}.{field.name}")
            for aka in field.aka:
                others.setdefault(aka, f"{path}.{field.name}")
    return {**others, **names, "job": "job"}
