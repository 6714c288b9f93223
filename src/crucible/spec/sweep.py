"""The fields of a sweep and of an evaluation. A parameter is a list of values, one value, or a range."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from crucible.model.sweep import (
    MOST_TRIALS,
    Delivery,
    Evaluation,
    Goal,
    Objective,
    Parameter,
    Pruner,
    Pruning,
    Reading,
    Scale,
    Search,
    Sweep,
)
from crucible.spec import problems
from crucible.spec.kinds import INVALID, NAME, NAME_LENGTH, Bad, Flag, Number, Schema, Text, Whole, free_scalar
from crucible.spec.problems import below
from crucible.spec.quantities import Duration
from crucible.spec.sections import ONE_SECOND, choice
from crucible.spec.shapes import ListOf, OneOrList
from crucible.spec.table import Field, Group
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, describe

_FAR = 1e300
_EXACT = 2**53  # whole numbers beyond it are not all floats

_PARAMETER = Text(
    "the name of a parameter",
    pattern=r"(?!CRUCIBLE_)[A-Za-z_][A-Za-z0-9_.-]*",
    hint="letters, digits, _ . -; names that start with CRUCIBLE_ are ours",
    max_length=NAME_LENGTH,
)
_METRIC = Text("the name of a metric", pattern=NAME, max_length=NAME_LENGTH)
_NAMES = ListOf(Text("a name", pattern=NAME, max_length=4096), "a list of names")

RANGE = Group(
    make=dict,
    fields=(
        Field(name="min", kind=Number(-_FAR, _FAR), example=0.0001, is_required=True, doc="the least value"),
        Field(name="max", kind=Number(-_FAR, _FAR), example=0.1, is_required=True, doc="the largest value"),
        Field(name="step", kind=Number(0, _FAR, is_above_least=True), example=2, doc="only every so many from min on"),
        Field(
            name="scale", kind=choice(Scale, loguniform="log"), default="linear", example="log", doc="how it is spread"
        ),
        Field(name="whole", kind=Flag(), default=False, example=True, doc="only whole numbers"),
    ),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """A mapping from names to lists of values, single values, or ranges."""

    @property
    def words(self) -> str:
        return "a mapping of parameters"

    def read(self, node: Node, path: str, reading: problems.Reading) -> Any:
        if not isinstance(node, Entries):
            reading.add(node.at, path, f"expected {self.words}, found {describe(node)}", "write `name: [1, 2]` lines")
            return INVALID
        if not node.entries:
            reading.add(node.at, path, f"is empty, expected {self.words}", "give at least one")
            return INVALID
        found = [self._parameter(key, value, below(path, key.text), reading) for key, value in node.entries]
        return INVALID if INVALID in found else tuple(found)

    def schema(self) -> Schema:
        scalar = {"type": ["string", "number", "boolean"]}
        values = {"type": "array", "minItems": 1, "items": scalar}
        return {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _PARAMETER.schema(),
            "additionalProperties": {"anyOf": [scalar, values, RANGE.schema()]},
        }

    def _parameter(self, key: Scalar, node: Node, path: str, reading: problems.Reading) -> Any:
        reading.given[path] = key.at
        name = _PARAMETER.read(Scalar(key.text, False, key.at), path, reading)
        if isinstance(node, Entries):
            made = self._range(key.text, node, path, reading)
            return INVALID if name is INVALID else made
        nodes = node.items if isinstance(node, Listing) else [node]
        if not nodes:
            reading.add(node.at, path, "is an empty list, expected values", "give values, or {min: …, max: …}")
            return INVALID
        values = [_value(one, path, reading) for one in nodes]
        return INVALID if INVALID in values or name is INVALID else Parameter(name=name, values=tuple(values))

    def _range(self, name: str, node: Entries, path: str, reading: problems.Reading) -> Any:
        read = RANGE.read(node, path, reading)
        if read is INVALID:
            return INVALID
        least, most, scale = read["min"], read["max"], read.get("scale", Scale.LINEAR)
        steps_whole = "step" in read and all(end.is_integer() for end in (least, most, read["step"]))
        is_whole = read.get("whole", steps_whole)
        made = Parameter(name=name, least=least, most=most, step=read.get("step"), scale=scale, is_whole=is_whole)
        problem = _contradiction(made)
        if problem:
            reading.add(node.at, path, problem, "for example {min: 1, max: 8}")
        return INVALID if problem else made


def _contradiction(given: Parameter) -> str:
    """Why there is no such range, or ""."""
    if given.most < given.least:
        return f"max ({given.most:g}) is below min ({given.least:g})"
    if given.scale is Scale.LOG and given.least <= 0:
        return "a log scale takes a min above 0"
    if given.scale is Scale.LOG and given.step is not None:
        return "a log scale takes no step"
    ends = (given.least, given.most, given.step or 1.0)
    if given.is_whole and not all(end.is_integer() and abs(end) <= _EXACT for end in ends):
        return f"whole numbers take a whole min, max and step, up to {_EXACT}"
    return ""


def _value(node: Node, path: str, reading: problems.Reading) -> Any:
    if not isinstance(node, Scalar) or node.is_null:
        reading.add(node.at, path, f"expected a number, text or true or false, found {describe(node)}")
        return INVALID
    try:
        return free_scalar(node)
    except Bad as bad:
        reading.add(node.at, path, bad.message, bad.hint)
        return INVALID


@dataclass(frozen=True, slots=True)
class Trials:
    """How many, or which."""

    @property
    def words(self) -> str:
        return f"a number of trials from 1 to {MOST_TRIALS}, or a list of them"

    def read(self, node: Node, path: str, reading: problems.Reading) -> Any:
        if not isinstance(node, Listing):
            return Whole(1, MOST_TRIALS).read(node, path, reading)
        if not node.items:
            reading.add(node.at, path, "is an empty list, expected trials", "give at least one, or their number")
            return INVALID
        found = [self._trial(one, f"{path}[{i}]", reading) for i, one in enumerate(node.items)]
        return INVALID if INVALID in found else tuple(found)

    def schema(self) -> Schema:
        trial = {"type": "object", "minProperties": 1, "propertyNames": _PARAMETER.schema()}
        return {"anyOf": [Whole(1, MOST_TRIALS).schema(), {"type": "array", "minItems": 1, "items": trial}]}

    def _trial(self, node: Node, path: str, reading: problems.Reading) -> Any:
        if not isinstance(node, Entries) or not node.entries:
            reading.add(
                node.at, path, f"expected the parameters of a trial, found {describe(node)}", "for example {lr: 0.1}"
            )
            return INVALID
        read = {}
        reading.given[path] = node.at
        for key, value in node.entries:
            here = below(path, key.text)
            name = _PARAMETER.read(Scalar(key.text, False, key.at), here, reading)
            read[key.text] = INVALID if name is INVALID else _value(value, here, reading)
        return INVALID if INVALID in read.values() else read


OBJECTIVE = Group(
    make=Objective,
    fields=(
        Field(name="metric", kind=_METRIC, example="loss", is_required=True, doc="the metric that trials report"),
        Field(
            name="goal",
            kind=choice(Goal, min="minimize", max="maximize"),
            default="minimize",
            example="maximize",
            doc="what is better: less or more",
            aka=("direction", "mode"),
        ),
        Field(
            name="reading",
            kind=choice(Reading),
            default="last",
            example="best",
            doc="last: what a trial reported last counts; best: the best that it ever reported",
        ),
    ),
)

PRUNING = Group(
    make=Pruning,
    fields=(
        Field(
            name="rule",
            kind=choice(Pruner, hyperband="asha", successive_halving="asha"),
            default="median",
            example="asha",
            doc="median: worse than half of the others were at that step; asha: not among the best share at a rung",
        ),
        Field(
            name="after_step",
            kind=Whole(1, 2**53),
            default=1,
            example=10,
            doc="no trial is stopped before this step; asha: the first rung",
        ),
        Field(
            name="least_trials",
            kind=Whole(1, MOST_TRIALS),
            default=5,
            example=10,
            doc="median: so many must have been there to compare with",
        ),
        Field(
            name="reduction",
            kind=Whole(2, 100),
            default=3,
            example=4,
            doc="asha: one of so many goes on, to a rung so many times as far",
        ),
    ),
)


def _sweep(trials: Any = None, method: Search | None = None, **given: Any) -> Sweep:
    if isinstance(trials, tuple):
        return Sweep(method=method or Search.LIST, trials=trials, **given)
    return Sweep(method=method or Search.GRID, count=trials, **given)


SWEEP = Group(
    make=_sweep,
    fields=(
        Field(
            name="method",
            kind=choice(Search, bayesian="tpe", optuna="tpe", adaptive="tpe"),
            example="random",
            doc="grid: every combination; random; list: the trials as written; tpe: each learns from those before it. "
            "grid, or list where trials are listed, if not given",
            aka=("algorithm", "search", "strategy"),
        ),
        Field(
            name="parameters",
            kind=Parameters(),
            example={"lr": {"min": 0.0001, "max": 0.1, "scale": "log"}, "batch": [16, 32]},
            doc="what is varied: a list of values, or a range",
            aka=("space", "search_space", "params"),
        ),
        Field(
            name="trials",
            kind=Trials(),
            example=200,
            doc="how many trials, or a list of them with their parameters",
            aka=("count", "num_trials", "n_trials", "max_trials"),
        ),
        Field(name="seed", kind=Whole(0, 2**32 - 1), default=0, example=7, doc="the same seed draws the same trials"),
        Field(name="objective", kind=OBJECTIVE, doc="what a trial is judged by"),
        Field(
            name="stop_early",
            kind=PRUNING,
            to="pruning",
            doc="when a trial is given up; never if not given",
            aka=("pruning", "pruner", "early_stopping"),
        ),
        Field(
            name="deliver",
            kind=choice(Delivery, environment="env", arguments="args"),
            default="env",
            example="args",
            doc="how parameters reach the program: as variables, as arguments, or only as the file $CRUCIBLE_PARAMS",
        ),
        Field(
            name="max_failures",
            kind=Whole(0, MOST_TRIALS),
            example=10,
            doc="more failed trials fail the job; any number if not given, as long as one succeeds",
        ),
        Field(
            name="max_time",
            kind=Duration(ONE_SECOND, timedelta(days=366)),
            example="12h",
            doc="no trial begins later than this after the first",
        ),
    ),
)

EVALUATION = Group(
    make=Evaluation,
    fields=(
        Field(
            name="models", kind=_NAMES, example=["base", "tuned"], is_required=True, doc="each is $MODEL of its tasks"
        ),
        Field(
            name="datasets",
            kind=_NAMES,
            example=["squad", "mmlu"],
            is_required=True,
            doc="each is $EVAL_DATASET of its tasks; every model meets every dataset",
        ),
        Field(
            name="metrics",
            kind=OneOrList(_METRIC, "a metric, or a list of them"),
            example=["accuracy"],
            doc="columns of the table; all that are reported if not given",
        ),
        Field(
            name="baseline",
            kind=Text("one of the models", pattern=NAME, max_length=4096),
            example="base",
            doc="the model that the others are compared with",
        ),
        Field(
            name="goal",
            kind=choice(Goal, min="minimize", max="maximize"),
            default="maximize",
            example="minimize",
            doc="what is better: more or less",
        ),
        Field(
            name="max_failures",
            kind=Whole(0, MOST_TRIALS),
            example=0,
            doc="more failed tasks fail the job; any number if not given, as long as one succeeds",
        ),
    ),
)
