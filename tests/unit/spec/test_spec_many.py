"""What a sweep and an evaluation say, read from YAML; what type and mode a job of many tasks has."""

from datetime import timedelta

import pytest

from crucible.model.errors import InvalidSpec
from crucible.model.spec import JobSpec, JobType, Mode
from crucible.model.sweep import (
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
from crucible.spec import load


def job(lines: str) -> JobSpec:
    return load("job:\n  command: x\n  " + lines + "\n").spec


def sweep(lines: str) -> Sweep:
    found = job("sweep:\n    " + lines.replace("\n", "\n    ")).sweep
    assert found is not None
    return found


def test_a_sweep_says_everything_at_once() -> None:
    found = sweep(
        "method: tpe\ntrials: 50\nseed: 7\ndeliver: args\nmax_failures: 3\nmax_time: 2h\n"
        "objective: {metric: acc, goal: maximize, reading: best}\n"
        "stop_early: {rule: asha, after_step: 10, reduction: 4}\n"
        "parameters: {lr: {min: 1e-5, max: 0.1, scale: log}}"
    )
    assert found == Sweep(
        method=Search.TPE,
        parameters=(Parameter(name="lr", least=1e-5, most=0.1, scale=Scale.LOG),),
        count=50,
        seed=7,
        objective=Objective(metric="acc", goal=Goal.MAXIMIZE, reading=Reading.BEST),
        pruning=Pruning(rule=Pruner.ASHA, after_step=10, reduction=4),
        deliver=Delivery.ARGS,
        max_failures=3,
        max_time=timedelta(hours=2),
    )


@pytest.mark.parametrize(
    ("written", "parameter"),
    [
        ("[1, 0.5, yes, true]", Parameter(name="p", values=(1, 0.5, "yes", True))),
        ("7", Parameter(name="p", values=(7,))),
        ("adam", Parameter(name="p", values=("adam",))),
        ("{min: 0, max: 1}", Parameter(name="p", least=0, most=1)),
        ("{min: 2, max: 8, step: 2}", Parameter(name="p", least=2, most=8, step=2, is_whole=True)),
        ("{min: 2, max: 8, step: 2, whole: false}", Parameter(name="p", least=2, most=8, step=2)),
        ("{min: 0, max: 1, step: 0.1}", Parameter(name="p", least=0, most=1, step=0.1)),
        ("{min: 1, max: 64, whole: true}", Parameter(name="p", least=1, most=64, is_whole=True)),
    ],
)
def test_a_parameter_is_a_value_some_values_or_a_range(written: str, parameter: Parameter) -> None:
    assert sweep(f"method: random\ntrials: 1\nparameters: {{p: {written}}}").parameters == (parameter,)


def test_listed_trials_need_no_method() -> None:
    found = sweep("trials: [{lr: 0.1, opt: sgd}, {lr: 0.2, opt: adam}]")
    assert found.method is Search.LIST
    assert found.trials == ({"lr": 0.1, "opt": "sgd"}, {"lr": 0.2, "opt": "adam"})
    assert found.size == 2


@pytest.mark.parametrize(
    ("lines", "size"),
    [
        ("parameters: {a: [1, 2], b: {min: 0, max: 1, step: 0.1}}", 22),
        ("trials: 5\nparameters: {a: [1, 2], b: {min: 0, max: 1, step: 0.1}}", 5),
        ("trials: 50\nparameters: {a: [1, 2]}", 2),
        ("parameters: {a: {min: 3, max: 3}}", 1),
        ("method: random\ntrials: 9\nparameters: {a: [1]}", 9),
    ],
)
def test_the_number_of_trials_is_known_before_any_is_made(lines: str, size: int) -> None:
    assert sweep(lines).size == size


def test_a_grid_with_a_limit_may_come_from_a_space_of_any_size() -> None:
    lines = "trials: 10\nparameters: {a: {min: 0, max: 1e15, whole: true}, b: {min: 0, max: 1, step: 1e-300}}"
    assert sweep(lines).size == 10


def test_an_evaluation_names_models_and_datasets() -> None:
    spec = job("evaluation: {models: [base, tuned], datasets: [squad], metrics: f1, baseline: base}")
    assert spec.evaluation == Evaluation(
        models=("base", "tuned"), datasets=("squad",), metrics=("f1",), baseline="base", goal=Goal.MAXIMIZE
    )


@pytest.mark.parametrize(
    ("lines", "job_type"),
    [
        ("sweep: {parameters: {a: [1]}}", JobType.HPO),
        ("evaluation: {models: [a], datasets: [d]}", JobType.EVAL),
        ("shards: {count: 2}", JobType.INFERENCE),
        ("shards: {count: 2}\n  type: preprocessing", JobType.PREPROCESSING),
    ],
)
def test_the_type_follows_from_what_a_job_is_made_of(lines: str, job_type: JobType) -> None:
    spec = job(lines)
    assert spec.type is job_type
    assert spec.execution.mode is Mode.MULTI_TASK


def test_trials_may_be_told_to_have_machines_of_their_own() -> None:
    spec = job("sweep: {parameters: {a: [1]}}\n  execution: {mode: single_cluster}")
    assert spec.execution.mode is Mode.SINGLE_CLUSTER


def test_a_spec_that_fills_in_a_template_may_leave_out_what_the_template_gives() -> None:
    assert load("job: {template: t, type: hpo}").spec.sweep is None
    assert load("job: {template: t, sweep: {method: tpe, stop_early: {rule: asha}}}").spec.sweep is not None


def test_names_that_differ_only_as_variables_are_told_apart_as_arguments() -> None:
    found = sweep("deliver: args\nparameters: {a-b: [1], a.b: [2]}")
    assert [each.name for each in found.parameters] == ["a-b", "a.b"]


def test_the_models_times_the_datasets_are_bounded() -> None:
    models, datasets = (", ".join(f"{kind}{n}" for n in range(400)) for kind in "md")
    with pytest.raises(InvalidSpec, match="400 models x 400 datasets are more than 100,000 tasks"):
        job(f"evaluation: {{models: [{models}], datasets: [{datasets}]}}")
