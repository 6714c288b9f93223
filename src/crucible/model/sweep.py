"""A search over parameters, and an evaluation of models on datasets: what is tried, what is looked at, when a trial is
given up. Each trial is a task of its job."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

Scalar = str | int | float | bool

MOST_TRIALS = 100_000  # each is a row: more of them is work on many items, which has shards


class Search(StrEnum):
    GRID = "grid"  # every combination
    RANDOM = "random"
    LIST = "list"  # the trials as they are written down
    TPE = "tpe"  # adaptive: what the trials before it found decides what the next one tries


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Either some values, or a range; of whole numbers if `is_whole`."""

    name: str
    values: tuple[Scalar, ...] = ()
    least: float = 0.0
    most: float = 0.0
    step: float | None = None
    scale: Scale = Scale.LINEAR
    is_whole: bool = False

    @property
    def count(self) -> int | None:
        """How many values it has; None: a range without steps has no number."""
        if self.values:
            return len(self.values)
        if self.most == self.least:
            return 1
        step = self.step or (1.0 if self.is_whole else None)
        if step is None:
            return None
        # A hair more, so that three steps of 0.1 reach 0.3; never infinite, however small a step is.
        return math.floor(min((self.most - self.least) / step + 1e-9, 2.0**53)) + 1


class Goal(StrEnum):
    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class Reading(StrEnum):
    """Which of the values that a trial reported is its own."""

    LAST = "last"
    BEST = "best"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    metric: str
    goal: Goal = Goal.MINIMIZE
    reading: Reading = Reading.LAST


class Pruner(StrEnum):
    MEDIAN = "median"  # worse than half of the trials were at the same step
    ASHA = "asha"  # not among the best share at a rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning:
    rule: Pruner = Pruner.MEDIAN
    after_step: int = 1  # nobody is judged before it: ASHA's first rung
    least_trials: int = 5  # median: so many must have been at that step
    reduction: int = 3  # ASHA: of so many, one goes on to the next rung, which is so many times as far


class Delivery(StrEnum):
    """How a trial's parameters reach its program; CRUCIBLE_PARAMS names a JSON file of them in any case."""

    ENV = "env"  # each as a variable of its name
    ARGS = "args"  # --name=value behind the other arguments
    FILE = "file"  # only the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    method: Search = Search.GRID
    parameters: tuple[Parameter, ...] = ()
    trials: tuple[Mapping[str, Scalar], ...] = ()  # of the method `list`
    count: int | None = None  # at most so many; needed for random and tpe
    seed: int = 0
    objective: Objective | None = None
    pruning: Pruning | None = None
    deliver: Delivery = Delivery.ENV
    max_failures: int | None = None  # more failed trials fail the job; None: any number, as long as one succeeds
    max_time: timedelta | None = None  # no trial is begun later than this after the first

    @property
    def size(self) -> int | None:
        """How many trials it has; None: a grid of a range without steps has no number."""
        match self.method:
            case Search.LIST:
                return len(self.trials)
            case Search.RANDOM | Search.TPE:
                return self.count or 0
        counts = [each.count for each in self.parameters]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return None
        return min(math.prod(known), self.count or MOST_TRIALS + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Every model on every dataset: a trial each, named by the two."""

    models: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()  # columns of the table; empty: all that are reported
    baseline: str | None = None  # the model that the others are compared with
    goal: Goal = Goal.MAXIMIZE
    max_failures: int | None = None


Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a trial has reported of its objective so far: enough to judge it, however long it runs. `last` and `best`
    are finite; None: it has reported none, or, of `last`, the newest one was no finite number."""

    last: float | None = None
    best: float | None = None
    reports: int = 0  # finite or not; where a program numbers no steps, they are its steps
    # What it was worth when it first came to each step at which trials are compared; None: nothing.
    marks: tuple[tuple[int, float | None], ...] = ()
    attempt: int = 0  # of the newest report that is in here,
    number: int = 0  # and how many records of that attempt are


@dataclass(frozen=True, slots=True)
class Tried:
    """A trial as an adaptive search sees it: what it was given and what came of it; None: it still runs, or failed."""

    number: int
    params: Params
    value: float | None = None
    is_live: bool = False


def variable(name: str) -> str:
    """The name of a parameter as that of a variable."""
    return name.replace("-", "_").replace(".", "_")


def as_text(value: Scalar) -> str:
    """As a program is given it: it reads back the very number."""
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)
