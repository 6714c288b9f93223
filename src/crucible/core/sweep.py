"""What the trials of a search try, how a program hears of it, and what a trial is worth. Pure: a seed and the number of
a trial decide what is drawn for it, so that nothing has to be remembered."""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from crucible.model.sweep import (
    Curve,
    Delivery,
    Evaluation,
    Goal,
    Objective,
    Parameter,
    Params,
    Reading,
    Scalar,
    Scale,
    Search,
    Sweep,
    as_text,
    variable,
)
from crucible.model.task import Task, TaskPhase, Verdict

# A line names so many metrics.
NAMES_SHOWN = 8

# --- what is tried ------------------------------------------------------------------------------------------------


def trials(sweep: Sweep) -> tuple[Params | None, ...]:
    """What each trial is given; None where that is decided only when it begins."""
    numbers = range(sweep.size or 0)
    match sweep.method:
        case Search.LIST:
            return sweep.trials
        case Search.GRID:
            return tuple(combination(sweep.parameters, number) for number in numbers)
        case Search.RANDOM:
            return tuple(drawn(sweep, number) for number in numbers)
        case Search.TPE:
            return (None,) * len(numbers)


def pairs(evaluation: Evaluation) -> tuple[Params, ...]:
    """Every model on every dataset."""
    return tuple({"model": m, "dataset": d} for m in evaluation.models for d in evaluation.datasets)


def combination(parameters: Sequence[Parameter], number: int) -> Params:
    """Of all combinations that one; the last parameter changes first. The others are not made: memory may not hold
    them."""
    chosen: dict[str, Scalar] = {}
    for each in reversed(parameters):
        number, place = divmod(number, each.count or 1)
        chosen[each.name] = value_at(each, place)
    return dict(reversed(chosen.items()))


def value_at(parameter: Parameter, place: int) -> Scalar:
    """The value of that place, of a parameter that has a number of them."""
    if parameter.values:
        return parameter.values[place]
    value = min(parameter.least + place * (parameter.step or 1.0), parameter.most)
    # As it would be written down: three steps of 0.1 are 0.3.
    return int(value) if parameter.is_whole else float(f"{value:.12g}")


def drawn(sweep: Sweep, number: int) -> Params:
    return {each.name: draw(each, uniform(f"{sweep.seed}/{number}/{each.name}")) for each in sweep.parameters}


def uniform(name: str) -> float:
    """A number from 0 up to, but not, 1 that follows from the name."""
    return (int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") >> 3) / (1 << 53)


def draw(parameter: Parameter, chance: float) -> Scalar:
    if parameter.scale is Scale.LOG and not parameter.values:
        return draw_log(parameter, chance)
    if parameter.count is not None:
        return value_at(parameter, int(chance * parameter.count))
    return min(parameter.least + (parameter.most - parameter.least) * chance, parameter.most)


def draw_log(parameter: Parameter, chance: float) -> Scalar:
    """Whole numbers have as much room at the ends as within."""
    room = 0.5 if parameter.is_whole else 0.0
    low, high = math.log(parameter.least - room), math.log(parameter.most + room)
    value = min(max(math.exp(low + (high - low) * chance), parameter.least), parameter.most)
    return round(value) if parameter.is_whole else value


# --- how a program hears of it --------------------------------------------------------------------------------------


def delivered(deliver: Delivery, params: Params) -> tuple[tuple[str, ...], dict[str, str]]:
    """Arguments behind the others, and variables."""
    if deliver is Delivery.ARGS:
        return tuple(f"--{name}={as_text(value)}" for name, value in params.items()), {}
    if deliver is Delivery.ENV:
        return (), {variable(name): as_text(value) for name, value in params.items()}
    return (), {}


# --- what a trial is worth ------------------------------------------------------------------------------------------


def is_better(value: float, other: float, goal: Goal) -> bool:
    return value < other if goal is Goal.MINIMIZE else value > other


def worth(curve: Curve | None, objective: Objective) -> float | None:
    """What the trial is worth if it ends now. A value that is not finite is none: whoever reported it last has lost
    what it reported before, unless its best counts."""
    if curve is None:
        return None
    return curve.last if objective.reading is Reading.LAST else curve.best


def why_worthless(curve: Curve | None, objective: Objective) -> str:
    if curve is None or curve.reports == 0:
        return f"it reported no {objective.metric}"
    return diverged(objective)


def diverged(objective: Objective) -> str:
    return f"its {objective.metric} was no finite number"


def why_no_best(objective: Objective, reasons: Collection[str | None], names: Collection[str]) -> str:
    """What is to be told of trials that have all come to their end without a value: why each has none, and the metrics
    that they reported."""
    metric = objective.metric
    instead = sorted(set(names) - {metric})
    if diverged(objective) in reasons:
        said = ": what was reported of it was NaN or infinite"
    elif instead:
        said = f"; they report {', '.join(instead[:NAMES_SHOWN])}"
    else:
        said = f": none reported it, or anything else (in Python: crucible.train.log(step, {metric}=…))"
    return f"no trial has ended with a finite {metric}{said}"


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def standing(task: Task, goal: Goal) -> tuple[int, float, int]:
    """Ascending, the best first: those that came to their end by their value, then those that were stopped early by
    theirs, then those without a value. Nobody is equal to another: the index decides."""
    if task.phase is not TaskPhase.SUCCEEDED or task.value is None:
        return 2, 0.0, task.index
    signed = task.value if goal is Goal.MINIMIZE else -task.value
    return 1 if task.verdict is Verdict.PRUNED else 0, signed, task.index


def best(tasks: Iterable[Task], goal: Goal) -> Task | None:
    """Of those that came to their end with a value; what was stopped early is not a result."""
    first = min(tasks, key=lambda task: standing(task, goal), default=None)
    return first if first is not None and standing(first, goal)[0] == 0 else None
