"""Tree-structured Parzen estimators by optuna. A study is made anew for every suggestion, from what the trials before
it found and a seed of its own: no state outlives a call, and a server that takes over goes on where another stopped."""

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from crucible.core.sweep import drawn, value_at
from crucible.model.errors import InvalidRequest
from crucible.model.sweep import Goal, Parameter, Params, Scalar, Scale, Sweep, Tried

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

# What a suggestion is made from: it takes a tenth of a second with so many, and more would teach little.
_MOST_HISTORY = 500
# Before so many have ended there is nothing to learn from.
_FIRST = 10


class OptunaSampler:
    def check(self) -> None:
        if find_spec("optuna") is None:
            said = "the method tpe needs optuna, which this server does not have"
            raise InvalidRequest(f"{said}: pip install 'crucible[hpo]' there", field="job.sweep.method")

    def suggest(self, sweep: Sweep, numbers: Sequence[int], history: Sequence[Tried]) -> Sequence[Params]:
        if sum(one.value is not None for one in history) < _FIRST:
            return [drawn(sweep, number) for number in numbers]
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        goal = sweep.objective.goal if sweep.objective is not None else Goal.MINIMIZE
        spaces = {each.name: _space(each) for each in sweep.parameters}
        found: list[Params] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is experimental there; nothing that a user could change
            study = optuna.create_study(direction=goal.value)
            study.add_trials([_frozen(sweep, spaces, one) for one in _telling(history, goal)])
            for number in numbers:
                seed = _seed(sweep.seed, number)
                study.sampler = optuna.samplers.TPESampler(n_startup_trials=_FIRST, seed=seed)
                asked = study.ask(spaces).params
                found.append({each.name: _value(each, asked[each.name]) for each in sweep.parameters})
        return found


def _seed(seed: int, number: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4], "big")


def _telling(history: Sequence[Tried], goal: Goal) -> list[Tried]:
    """In the order of their numbers, at most so many: those that still run, then the best. One that ended without a
    value counts as the worst: whatever it tried is not worth trying again."""
    valued = [one.value for one in history if one.value is not None]
    worst = max(valued) if goal is Goal.MINIMIZE else min(valued)
    sign = 1 if goal is Goal.MINIMIZE else -1
    whole = [one if one.is_live or one.value is not None else Tried(one.number, one.params, worst) for one in history]
    whole.sort(key=lambda one: (not one.is_live, sign * (one.value or 0.0), one.number))
    return sorted(whole[:_MOST_HISTORY], key=lambda one: one.number)


def _space(parameter: Parameter) -> "BaseDistribution":
    """What has a number of values is chosen by place: a library that compares 1 with true would mix them up."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if parameter.values:
        return CategoricalDistribution(range(len(parameter.values)))
    if parameter.scale is Scale.LOG:
        if parameter.is_whole:
            return IntDistribution(int(parameter.least), int(parameter.most), log=True)
        return FloatDistribution(parameter.least, parameter.most, log=True)
    if parameter.count is not None:
        return IntDistribution(0, parameter.count - 1)
    return FloatDistribution(parameter.least, parameter.most)


def _is_by_place(parameter: Parameter) -> bool:
    return bool(parameter.values) or (parameter.count is not None and parameter.scale is not Scale.LOG)


def _value(parameter: Parameter, asked: int | float) -> Scalar:
    return value_at(parameter, int(asked)) if _is_by_place(parameter) else asked


def _place(parameter: Parameter, value: Scalar) -> int | float:
    if parameter.values:
        return next(n for n, one in enumerate(parameter.values) if one == value and type(one) is type(value))
    assert not isinstance(value, str)
    if not _is_by_place(parameter):
        return value
    return round((value - parameter.least) / (parameter.step or 1.0))


def _frozen(sweep: Sweep, spaces: Mapping[str, "BaseDistribution"], one: Tried) -> "FrozenTrial":
    from optuna.trial import TrialState, create_trial

    params = {each.name: _place(each, one.params[each.name]) for each in sweep.parameters}
    state = TrialState.RUNNING if one.is_live else TrialState.COMPLETE
    return create_trial(
        state=state, value=None if one.is_live else one.value, params=params, distributions=dict(spaces)
    )
