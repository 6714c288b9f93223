"""The steps of a workflow: fields that only a step has, beside those of every job, and the rules of a job within each.
What a step takes over from its workflow is in `inherit`, what steps say of each other in `references`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from crucible.model.spec import JobSpec, Step, When
from crucible.spec import references, rules
from crucible.spec.kinds import INVALID, NAME_LENGTH, Flag, Schema, Text
from crucible.spec.problems import Position, Reading, shown
from crucible.spec.quantities import Size
from crucible.spec.sections import choice
from crucible.spec.shapes import ListOf, MapOf, OneOrList
from crucible.spec.table import Field, Group
from crucible.spec.yaml_nodes import Listing, Node

MOST_STEPS = 500
_LARGEST = 1024.0**3  # GiB: an exbibyte, as of datasets

_STEP = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
_PATH = r"(/(?!\.\.?(/|$))[^/\x00-\x1f\x7f]+)"
_NAME = Text("the name of a step", pattern=_STEP, hint="letters, digits, _ . -", max_length=NAME_LENGTH)
_INPUT = Text("a name", pattern=r"[A-Za-z][A-Za-z0-9_-]*", hint="letters, digits, _ -", max_length=NAME_LENGTH)
_OUTPUT = Text(
    "a step, or a file or folder that it left, such as preprocess/train.csv",
    pattern=f"{_STEP}{_PATH}*",
    hint="the step's name, then the path below its outputs",
    max_length=4096,
)
_LIST = Text(
    "a file that a step left, such as preprocess/files.json",
    pattern=f"{_STEP}{_PATH}+",
    hint="the step's name, then the path of the file below its outputs",
    max_length=4096,
)

OWN = (
    Field(
        name="name", kind=_NAME, is_required=True, example="train", doc="how other steps call it", aka=("id", "step")
    ),
    Field(
        name="needs",
        kind=OneOrList(_NAME, "a step, or a list of steps"),
        example=["preprocess"],
        doc="steps that must have ended before it begins",
        aka=("after", "depends_on", "dependencies", "requires"),
    ),
    Field(
        name="when",
        kind=choice(When, success="succeeded", failure="failed", always="ended", completed="succeeded"),
        default="succeeded",
        example="failed",
        doc="what must have become of them. succeeded: all of them; failed: one of them, or of those before them; "
        "ended: whatever. Otherwise the step is skipped",
        aka=("if", "condition", "trigger_rule"),
    ),
    Field(
        name="inputs",
        kind=MapOf(_INPUT, _OUTPUT, "a mapping of inputs"),
        example={"data": "preprocess/clean"},
        doc="name -> what a step before it left: all of its outputs, or a path below them",
        aka=("artifacts",),
    ),
    Field(
        name="output_size",
        kind=Size(_LARGEST),
        to="output_gib",
        example="40GB",
        doc="how much it will leave for the steps that read it, all its tasks together: its plan then counts what "
        "carrying that costs",
        aka=("outputs_size", "output_gb", "artifact_size"),
    ),
    Field(
        name="for_each",
        kind=_LIST,
        example="preprocess/files.json",
        doc="a file that a step left, with a JSON list or a line for each item: the step has a task for each, "
        "which finds its own in $item",
        aka=("foreach", "fan_out", "matrix", "with_items"),
    ),
    Field(
        name="cache",
        kind=Flag(),
        default=True,
        example=False,
        doc="a step whose job and inputs are as they were before is not run again",
        aka=("reuse", "memoize"),
    ),
)
OWN_NAMES = frozenset(field.name for field in OWN)
# A template fills in a whole job, with its code.
_OF_JOBS = frozenset({"template", "with"})


def with_steps(work: Group) -> Group:
    """The table of a job that may also be a workflow of such jobs."""
    fields = (*OWN, *(field for field in work.fields if field.name not in OWN_NAMES | _OF_JOBS))
    one_of = tuple(name for name in work.one_of if name not in _OF_JOBS)
    steps = Field(
        name="steps",
        kind=Steps(Group(make=_step, one_of=one_of, fields=fields)),
        example=[
            {"name": "prepare", "command": "make data"},
            {"name": "train", "needs": ["prepare"], "command": "make"},
        ],
        doc="steps of a workflow: each is a job of its own, and what it does not say is as the workflow says",
        aka=("tasks", "workflow", "dag", "pipeline"),
    )
    return Group(make=work.make, one_of=(*work.one_of, steps.name), fields=(*work.fields, steps))


def _step(
    *,
    name: str,
    needs: tuple[str, ...] = (),
    when: When = When.SUCCEEDED,
    inputs: Mapping[str, str] | None = None,
    output_gib: float | None = None,
    for_each: str | None = None,
    cache: bool = True,
    **job: Any,
) -> Step:
    once = tuple(dict.fromkeys(needs))
    return Step(
        name=name,
        job=JobSpec(**job),
        needs=once,
        when=when,
        inputs=inputs or {},
        output_gib=output_gib,
        for_each=for_each,
        cache=cache,
    )


@dataclass(frozen=True, slots=True)
class Steps:
    step: Group

    @property
    def words(self) -> str:
        return "a list of steps"

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if isinstance(node, Listing) and len(node.items) > MOST_STEPS:
            reading.add(node.at, path, f"has {len(node.items)} steps, and {MOST_STEPS} are the most", "make it smaller")
            return INVALID
        before = len(reading.problems)
        found = ListOf(_Each(self.step), self.words).read(node, path, reading)
        if not isinstance(node, Listing) or not isinstance(found, tuple):
            return INVALID
        references.check(found, references.Places(node.items, path), reading)
        return found if len(reading.problems) == before else INVALID

    def schema(self) -> Schema:
        """A step may take what it runs from the workflow, and never has code of its own."""
        step = {key: value for key, value in self.step.schema().items() if key != "anyOf"}
        properties = {name: value for name, value in step["properties"].items() if name != "code"}
        return {"type": "array", "minItems": 1, "maxItems": MOST_STEPS, "items": {**step, "properties": properties}}


@dataclass(frozen=True, slots=True)
class _Each:
    """A step that could not be read does not keep the others from being looked at."""

    step: Group

    @property
    def words(self) -> str:
        return "a step"

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        found = self.step.read(node, path, reading)
        return None if found is INVALID else found

    def schema(self) -> Schema:
        return self.step.schema()


# --- rules within each step ------------------------------------------------------------------------------------------


def apply(spec: JobSpec, reading: Reading, now: datetime | None) -> JobSpec:
    """`spec` with the rules of a job applied to each of its steps; what contradicts itself is told."""
    for name in (*references.MANY, "inputs"):
        path = f"job.{name}"
        if path in reading.given:
            reading.add(
                reading.given[path], path, "a workflow has none of its own", "give it to the step that it is for"
            )
    rules.warn_of_credentials(spec, reading)
    inside = _inside(reading)
    return replace(spec, steps=tuple(_ruled(spec, n, inside[n], reading, now) for n in range(len(spec.steps))))


def _ruled(spec: JobSpec, number: int, inner: Reading, reading: Reading, now: datetime | None) -> Step:
    step, path = spec.steps[number], f"job.steps[{number}]"
    whole = rules.apply(step.job, inner, now)
    _check_code(spec, step, inner, reading)
    for one in inner.problems:
        at, field = Position(one.line, one.column), path + one.field.removeprefix("job")
        reading.add(at, field, one.message, one.hint)
    for one in inner.warnings:
        # What is only taken over may well mean nothing to this step.
        if inner.given.get(one.field) != reading.given.get(one.field):
            reading.warn(Position(one.line, one.column), path + one.field.removeprefix("job"), one.message, one.hint)
    return replace(step, job=whole)


def _check_code(spec: JobSpec, step: Step, inner: Reading, reading: Reading) -> None:
    """All steps run the code that is shipped with the workflow."""
    own = inner.given.get("job.code")
    if own is not None and own != reading.given.get("job.code"):
        inner.add(own, "job.code", "a step has no code of its own", "move it to the workflow: all steps share it")
    entrypoint = step.job.entrypoint
    if spec.code is None and own is None and entrypoint is not None and "://" not in entrypoint:
        at = inner.given["job.entrypoint"]
        inner.add(
            at, "job.entrypoint", f"{shown(entrypoint)} must be shipped", "give `code` to the workflow: `code: .`"
        )


def _inside(reading: Reading) -> Mapping[int, Reading]:
    """What was read of each step, as if it stood alone."""
    found: dict[int, Reading] = {}
    for path, at in reading.given.items():
        if path.startswith("job.steps["):
            number, _, rest = path.removeprefix("job.steps[").partition("]")
            inner = found.setdefault(int(number), Reading(homes=reading.homes, samples=reading.samples))
            inner.given[f"job{rest}"] = at
    return found
