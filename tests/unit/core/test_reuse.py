"""When an earlier result may stand for a step."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core.reuse import cache_key, run_again
from crucible.model.errors import NotFound
from crucible.model.ids import Digest, UserId
from crucible.model.spec import (
    Constraints,
    Data,
    Execution,
    Framework,
    JobSpec,
    Locality,
    Mode,
    Resources,
    Retry,
    Step,
    When,
)
from crucible.model.sweep import Sweep

ANN, CODE = UserId("ann"), Digest("c" * 64)
STEP = Step(name="train", job=JobSpec(command=("python", "train.py")))
GIVEN = {"inputs": {"data": {"path": "", "trees": ["d" * 64]}}, "items": ()}


def key(step: Step = STEP, user: UserId = ANN, code: Digest | None = CODE, given: Any = GIVEN) -> Digest:
    return cache_key(user, step, code, given)


def with_job(**fields: Any) -> Step:
    return replace(STEP, job=replace(STEP.job, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "other", "priority": 9, "team": "vision", "project": "x"},
        {"constraints": Constraints(providers=("aws",), allow_spot=True)},
        {"resources": Resources(cpus=8, gpu_types=("H100",), storage_gib=5, estimated_hours=2)},
        {"execution": Execution(backend="vm", executor="aws", parallelism=4)},
        {"retry": Retry(limit=9), "timeout": timedelta(hours=1)},
        {"data": Data(size_gib=5, region="us-east-1", locality=Locality.REQUIRED)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_where_and_for_whom_a_step_runs_does_not_change_its_result(fields: dict[str, Any]) -> None:
    assert key(with_job(**fields)) == key()
    assert key(replace(STEP, name="x", needs=("y",), when=When.ENDED)) == key()


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ("python", "train.py", "--lr=1")},
        {"env": {"SEED": "1"}},
        {"image": "pytorch:2"},
        {"setup": ("pip install x",)},
        {"framework": Framework.PYTORCH_DDP},
        {"resources": Resources(gpus=8)},
        {"resources": Resources(nodes=2)},
        {"execution": Execution(processes_per_node=2)},
        {"execution": Execution(mode=Mode.MULTI_TASK)},
        {"data": Data(dataset="s3://b/x")},
        {"sweep": Sweep(count=3)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_a_step_runs_changes_its_result(fields: dict[str, Any]) -> None:
    assert key(with_job(**fields)) != key()


def test_code_inputs_and_the_user_count() -> None:
    keys = {
        key(),
        key(code=None),
        key(user=UserId("bob")),
        key(given={**GIVEN, "inputs": {"data": {"path": "", "trees": ["e" * 64]}}}),
        key(given={**GIVEN, "inputs": {"data": {"path": "x", "trees": ["d" * 64]}}}),
        key(given={**GIVEN, "items": [{"item": "a"}]}),
        key(given={**GIVEN, "dataset": "f" * 64}),
    }
    assert len(keys) == 7


def steps() -> list[Step]:
    needs = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ("c",)}
    return [replace(STEP, name=name, needs=before) for name, before in needs.items()]


def test_a_step_is_run_again_with_all_that_comes_after_it() -> None:
    assert run_again(steps(), "b") == {"b", "d"}
    assert run_again(steps(), "c") == {"c", "d", "e"}
    assert run_again(steps(), "a") == set("abcde")


def test_a_step_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(NotFound, match="there is no step z; the steps are a, b, c, d, e"):
        run_again(steps(), "z")
