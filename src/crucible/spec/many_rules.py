"""What must hold between the fields of a job of many tasks: of a sweep, an evaluation, shards or steps. A spec that
fills in a template may leave out what the template gives."""

from collections import Counter
from dataclasses import replace

from crucible.model.spec import SHARDED, JobSpec, JobType
from crucible.model.sweep import MOST_TRIALS, Delivery, Search, Sweep, variable
from crucible.spec.problems import Position, Reading, below

# What a job is made of, and the types that it may have; the first is meant where none is given.
_MANY = {
    "sweep": (JobType.HPO,),
    "evaluation": (JobType.EVAL,),
    "shards": SHARDED,
    "steps": tuple(JobType),
}
_SWEEP, _PARAMETERS, _TRIALS = "job.sweep", "job.sweep.parameters", "job.sweep.trials"


def apply(spec: JobSpec, reading: Reading) -> JobSpec:
    """`spec` with its type, which follows from what it is made of; what contradicts itself is told."""
    given = [name for name in _MANY if f"job.{name}" in reading.given and reading.is_sound(f"job.{name}")]
    for other in given[1:]:
        path = f"job.{other}"
        reading.add(reading.given[path], path, f"{given[0]} and {other} are both given", "keep one of them")
    _check_sweep(spec, reading)
    _check_evaluation(spec, reading)
    _check_hpo(spec, reading)
    return _with_type(spec, given, reading)


def _with_type(spec: JobSpec, given: list[str], reading: Reading) -> JobSpec:
    if not given:
        return spec
    allowed = _MANY[given[0]]
    if "job.type" not in reading.given:
        return spec if given[0] == "steps" else replace(spec, type=allowed[0])
    if spec.type not in allowed and reading.is_sound("job.type"):
        names = " or ".join(allowed)
        said = f"a job with {given[0]} is of type {names}, not {spec.type}"
        reading.add(reading.given["job.type"], "job.type", said, f"write `type: {allowed[0]}`, or leave it out")
    return spec


def _check_hpo(spec: JobSpec, reading: Reading) -> None:
    if spec.type is JobType.HPO and _SWEEP not in reading.given and spec.template is None:
        hint = "for example `sweep: {parameters: {lr: [0.1, 0.01]}}`, or another type"
        reading.add(reading.given["job.type"], _SWEEP, "is missing: type hpo takes what is tried", hint)


def _check_sweep(spec: JobSpec, reading: Reading) -> None:
    sweep = spec.sweep
    if sweep is None or not reading.is_sound(_SWEEP, *(f"{_SWEEP}.{name}" for name in ("method", "parameters"))):
        return
    at = reading.given[_SWEEP]
    if reading.is_sound(_TRIALS):
        _check_trials(sweep, at, reading, is_complete=spec.template is None)
    _check_objective(sweep, reading, is_complete=spec.template is None)
    _check_names(spec, sweep, reading)


def _check_trials(sweep: Sweep, at: Position, reading: Reading, is_complete: bool) -> None:
    if sweep.method is Search.LIST or sweep.trials:
        _check_list(sweep, at, reading, is_complete)
    elif not sweep.parameters and is_complete:
        reading.add(at, _PARAMETERS, "is missing: a sweep takes what is varied, or a list of trials")
    elif sweep.method is Search.GRID:
        _check_grid(sweep, reading)
    elif sweep.count is None and is_complete:
        reading.add(at, _TRIALS, f"is missing: {sweep.method} takes a number of trials")


def _check_list(sweep: Sweep, at: Position, reading: Reading, is_complete: bool) -> None:
    path = _TRIALS
    if sweep.method is not Search.LIST:
        said = f"{sweep.method} chooses its trials, and they are listed"
        reading.add(reading.given[path], path, said, "give their number, or leave method out")
    elif not sweep.trials and is_complete:
        hint = "for example `trials: [{lr: 0.1}, {lr: 0.01}]`"
        reading.add(reading.given.get(path, at), path, "the method list takes a list of trials", hint)
    elif _PARAMETERS in reading.given:
        said = "trials are listed, and parameters are given too"
        reading.add(reading.given[_PARAMETERS], _PARAMETERS, said, "keep one of them")
    for number, trial in enumerate(sweep.trials):
        if trial.keys() != sweep.trials[0].keys():
            names = ", ".join(sweep.trials[0])
            said = f"has {', '.join(trial)}, and the first trial has {names}"
            hint = "every trial gives the same parameters"
            here = f"{path}[{number}]"
            reading.add(reading.given[here], here, said, hint)


def _check_grid(sweep: Sweep, reading: Reading) -> None:
    endless = [each for each in sweep.parameters if each.count is None]
    for each in endless:
        path = below(_PARAMETERS, each.name)
        said = "a grid cannot try every value of a range"
        reading.add(reading.given[path], path, said, "give it a step, list its values, or use method random or tpe")
    if not endless and (sweep.size or 0) > MOST_TRIALS:
        counts = " x ".join(str(each.count) for each in sweep.parameters)
        said = f"{counts} combinations are more than {MOST_TRIALS:,} trials"
        hint = f"give trials: up to {MOST_TRIALS}, fewer values, or use method random"
        reading.add(reading.given[_PARAMETERS], _PARAMETERS, said, hint)


def _check_objective(sweep: Sweep, reading: Reading, is_complete: bool) -> None:
    path = f"{_SWEEP}.objective"
    if sweep.objective is not None or not is_complete or not reading.is_sound(path):
        return
    early = f"{_SWEEP}.stop_early"
    if early in reading.given:
        hint = "give objective: {metric: loss}"
        reading.add(reading.given[early], early, "needs an objective to judge trials by", hint)
    elif sweep.method is Search.TPE:
        at = reading.given[f"{_SWEEP}.method"]
        reading.add(at, path, "is missing: tpe takes what trials are judged by", "give objective: {metric: loss}")


def _check_names(spec: JobSpec, sweep: Sweep, reading: Reading) -> None:
    """As variables, names must differ from each other and from those of `env`."""
    if sweep.deliver is not Delivery.ENV:
        return
    names = [each.name for each in sweep.parameters] or list(sweep.trials[0] if sweep.trials else ())
    path = _PARAMETERS if sweep.parameters else _TRIALS
    counts = Counter(map(variable, names))
    for name in names:
        here = below(path, name) if sweep.parameters else path
        at, known = reading.given.get(here, reading.given.get(path)), variable(name)
        if at is None:
            return
        if counts[known] > 1:
            reading.add(at, here, f"more than one parameter would be the variable {known}", "rename one of them")
        elif known in spec.env:
            reading.add(at, here, f"{known} is a variable of env too", "rename it, or remove it from env")


def _check_evaluation(spec: JobSpec, reading: Reading) -> None:
    asked, path = spec.evaluation, "job.evaluation"
    if asked is None:
        return
    for name, listed in (("models", asked.models), ("datasets", asked.datasets)):
        twice = [each for each, count in Counter(listed).items() if count > 1]
        if twice:
            here = f"{path}.{name}"
            reading.add(reading.given[here], here, f"'{twice[0]}' is there more than once", "keep one of them")
    if len(asked.models) * len(asked.datasets) > MOST_TRIALS:
        said = f"{len(asked.models)} models x {len(asked.datasets)} datasets are more than {MOST_TRIALS:,} tasks"
        reading.add(reading.given[path], path, said, "make several jobs of it")
    here = f"{path}.baseline"
    if asked.baseline is not None and asked.baseline not in asked.models:
        said = f"'{asked.baseline}' is none of the models: {', '.join(asked.models)}"
        reading.add(reading.given[here], here, said, "name one of them")
