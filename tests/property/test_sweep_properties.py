"""Whatever a space or a history looks like: trials lie in it, rankings are total, the best is never stopped."""

import itertools
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crucible.core.pruning import Peers, Report, followed, given_up, joined, newest_mark
from crucible.core.sweep import best, drawn, standing, trials, worth
from crucible.model.sweep import (
    Curve,
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
from crucible.model.task import Task, TaskPhase, Verdict
from making import a_task

scalars = st.one_of(st.integers(-5, 5), st.sampled_from(["a", "b"]), st.booleans(), st.floats(-1, 1))
listed = st.builds(Parameter, name=st.just("p"), values=st.lists(scalars, min_size=1, max_size=4).map(tuple))


@st.composite
def ranges(draw: st.DrawFn) -> Parameter:
    is_whole = draw(st.booleans())
    is_log = draw(st.booleans())
    number: Any = st.integers(1, 1000) if is_whole else st.floats(1e-6, 1e6)
    least, most = sorted((float(draw(number)), float(draw(number))))
    step = None if is_log else draw(st.none() | st.integers(1, 50).map(float))
    scale = Scale.LOG if is_log else Scale.LINEAR
    return Parameter(name="p", least=least, most=most, step=step, is_whole=is_whole, scale=scale)


def is_inside(value: Any, parameter: Parameter) -> bool:
    if parameter.values:
        return any(value == one and type(value) is type(one) for one in parameter.values)
    is_kind = type(value) is (int if parameter.is_whole else float)
    # Twelve digits are written down: what is drawn may miss an end by as much.
    room = 1e-11 * max(abs(parameter.least), abs(parameter.most))
    return is_kind and parameter.least - room <= value <= parameter.most + room


@given(st.lists(listed | ranges().filter(lambda p: p.count is not None and p.count <= 20), min_size=1, max_size=3))
def test_a_grid_is_the_product_of_its_parameters(space: list[Parameter]) -> None:
    parameters = tuple(Parameter(**{**fields(p), "name": f"p{n}"}) for n, p in enumerate(space))
    found = trials(Sweep(parameters=parameters))
    axes = [[one["p"] for one in trials(Sweep(parameters=(p,))) if one] for p in space]
    assert [tuple(one.values()) for one in found if one] == list(itertools.product(*axes))
    assert len(found) == math.prod(p.count or 0 for p in space)


def fields(parameter: Parameter) -> dict[str, Any]:
    return {name: getattr(parameter, name) for name in Parameter.__slots__}


@given(listed | ranges(), st.integers(0, 2**32 - 1), st.integers(0, 10**6))
def test_what_is_drawn_lies_inside_and_is_drawn_again(parameter: Parameter, seed: int, number: int) -> None:
    sweep = Sweep(method=Search.RANDOM, parameters=(parameter,), count=1, seed=seed)
    value = drawn(sweep, number)["p"]
    assert is_inside(value, parameter)
    assert drawn(sweep, number)["p"] == value


@given(listed | ranges(), st.integers(0, 100))
def test_more_trials_begin_with_the_fewer(parameter: Parameter, seed: int) -> None:
    few, many = (
        trials(Sweep(method=Search.RANDOM, parameters=(parameter,), count=count, seed=seed)) for count in (5, 9)
    )
    assert many[:5] == few


# --- what trials are worth ------------------------------------------------------------------------------------------

values = st.none() | st.floats(allow_nan=False, allow_infinity=False)
tasks = st.lists(
    st.tuples(values, st.sampled_from(list(TaskPhase)), st.sampled_from([None, *Verdict])), max_size=12
).map(
    lambda found: [
        a_task(id=f"t{n}", index=n, value=value, phase=phase, verdict=verdict)
        for n, (value, phase, verdict) in enumerate(found)
    ]
)


@given(tasks, st.sampled_from(list(Goal)), st.randoms(use_true_random=False))
def test_the_ranking_is_total_and_does_not_depend_on_the_order(found: list[Task], goal: Goal, rng: Any) -> None:
    ranked = sorted(found, key=lambda task: standing(task, goal))
    assert len({standing(task, goal) for task in found}) == len(found)
    shuffled = list(found)
    rng.shuffle(shuffled)
    assert sorted(shuffled, key=lambda task: standing(task, goal)) == ranked
    assert best(shuffled, goal) == best(found, goal)
    first = best(found, goal)
    if first is not None and first.value is not None:
        rivals = [
            one.value
            for one in found
            if one.phase is TaskPhase.SUCCEEDED and one.verdict is not Verdict.PRUNED and one.value is not None
        ]
        assert first.value == (min(rivals) if goal is Goal.MINIMIZE else max(rivals))


reports = st.lists(st.tuples(st.none() | st.integers(0, 300), st.none() | st.floats(width=32)), max_size=25).map(
    lambda found: [(n, step, value) for n, (step, value) in enumerate(found)]
)
objectives = st.builds(
    Objective, metric=st.just("loss"), goal=st.sampled_from(list(Goal)), reading=st.sampled_from(list(Reading))
)
prunings = st.builds(
    Pruning,
    rule=st.sampled_from(list(Pruner)),
    after_step=st.integers(1, 5),
    least_trials=st.integers(1, 4),
    reduction=st.integers(2, 4),
)


@given(reports, objectives, prunings, st.lists(st.integers(0, 25), max_size=4), st.integers(0, 5))
def test_a_curve_does_not_depend_on_how_its_reports_came(
    said: list[Report], objective: Objective, pruning: Pruning, cuts: list[int], again: int
) -> None:
    """In pieces, and with some of them twice."""
    whole = followed(None, 0, said, objective, pruning)
    curve: Curve | None = None
    for start, end in itertools.pairwise(sorted({0, *cuts, len(said)})):
        curve = followed(curve, 0, said[max(0, start - again) : end], objective, pruning)
    assert (curve or Curve()) == whole


@given(reports, objectives, prunings)
def test_what_a_trial_is_worth_is_finite_and_its_marks_grow(
    said: list[Report], objective: Objective, pruning: Pruning
) -> None:
    curve = followed(None, 0, said, objective, pruning)
    value = worth(curve, objective)
    assert value is None or math.isfinite(value)
    steps = [step for step, _ in curve.marks]
    assert steps == sorted(set(steps))
    assert all(newest_mark(pruning, step) == step for step in steps)
    finite = [v for _, _, v in said if v is not None and math.isfinite(v)]
    expected = None if not finite else (min if objective.goal is Goal.MINIMIZE else max)(finite)
    assert curve.best == expected


@given(st.lists(reports, min_size=1, max_size=12), objectives, prunings)
def test_the_best_at_its_mark_is_never_stopped(
    all_said: list[list[Report]], objective: Objective, pruning: Pruning
) -> None:
    curves = {n: followed(None, 0, said, objective, pruning) for n, said in enumerate(all_said)}
    together: Peers = {}
    for curve in curves.values():
        joined(together, None, curve, objective.goal)
    stopped = given_up(curves, list(curves), together, objective, pruning)
    sign = 1 if objective.goal is Goal.MINIMIZE else -1

    def cost(value: float | None) -> float:
        return math.inf if value is None else sign * value

    for key in stopped:
        mark, value = curves[key].marks[-1]
        peers = [cost(v) for other, curve in curves.items() if other != key for m, v in curve.marks if m == mark]
        assert min(peers) < cost(value)
        worse_than = sum(peer < cost(value) for peer in peers)
        if pruning.rule is Pruner.ASHA:
            assert worse_than >= (len(peers) + 1) // pruning.reduction >= 1
        else:
            assert len(peers) >= pruning.least_trials and 2 * worse_than >= len(peers)
