"""Requirements and preferences become a spec that says neither more nor less."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible import Requirements
from crucible.client.requirements import merged, preferred
from crucible.client.submission import Submission
from crucible.model.errors import InvalidRequest, InvalidSpec
from crucible.model.spec import JobSpec, Strategy
from crucible.spec import load

SCRIPT = "print('hello')\n"


def specs(*args: Any, **details: Any) -> list[JobSpec]:
    return [load(text).spec for text in Submission.make(SCRIPT, *args, **details).texts]


def test_seed_003s_requirements_say_what_they_say() -> None:
    needs = Requirements(
        gpu_memory_gb=16,
        duration_hours_estimated=3,
        checkpoint_frequency_minutes=30,
        interruptible=True,
        max_cost_usd=10.00,
    )
    with_gpu, without = specs(needs, {"optimize_for": "cost", "allowed_backends": None})
    assert (with_gpu.resources.gpus, with_gpu.resources.gpu_memory_gib) == (1, 16)
    assert (without.resources.gpus, without.resources.gpu_memory_gib) == (0, 0)
    for spec in (with_gpu, without):
        assert spec.resources.estimated_hours == 3
        assert spec.checkpoint.interval == timedelta(minutes=30)
        assert spec.constraints.allow_spot
        assert spec.constraints.budget == 10_000_000
        assert spec.constraints.strategy is Strategy.CHEAPEST
        assert spec.constraints.providers == ()


def test_a_number_of_gpus_is_a_rule() -> None:
    (spec,) = specs(Requirements(gpus=4, gpu_types=["A100", "H100"]))
    assert (spec.resources.gpus, spec.resources.gpu_types) == (4, ("A100", "H100"))
    (spec,) = specs(Requirements(gpus=0))
    assert spec.resources.gpus == 0


def test_what_is_not_required_is_not_written() -> None:
    (text,) = Submission.make(SCRIPT, Requirements(gpus=0)).texts
    assert text == "job:\n  entrypoint: train.py\n  resources:\n    gpus: 0\n"


def test_everything_else_can_be_said_in_the_words_of_the_spec() -> None:
    (spec,) = specs(
        Requirements(gpus=2, memory_gb=64, deadline=datetime(2030, 1, 1, tzinfo=UTC), dataset_size_gb=12),
        args=["--epochs", "3"],
        env={"LR": "0.1"},
        spec={"resources": {"cpus": 8}, "retry": {"delay": "1s"}, "priority": 7},
    )
    assert (spec.resources.gpus, spec.resources.cpus, spec.resources.cpu_memory_gib) == (2, 8, 64)
    assert spec.args == ("--epochs", "3") and spec.env == {"LR": "0.1"}
    assert spec.retry.delay == timedelta(seconds=1) and spec.priority == 7
    assert spec.constraints.deadline == datetime(2030, 1, 1, tzinfo=UTC) and spec.data.size_gib == 12


def test_a_spec_that_names_its_gpus_leaves_nothing_to_wish() -> None:
    (spec,) = specs(None, None, spec={"resources": {"gpus": 3}})
    assert spec.resources.gpus == 3


@pytest.mark.parametrize(
    ("needs", "field"),
    [
        (Requirements(gpus=-1), "gpus"),
        (Requirements(gpu_memory_gb=float("nan")), "gpu_memory"),
        (Requirements(max_cost_usd=-5), "budget"),
        (Requirements(duration_hours_estimated=0), "estimated_hours"),
        (Requirements(deadline=datetime(2030, 1, 1)), "deadline"),
        (Requirements(checkpoint_frequency_minutes=-1), "interval"),
        (Requirements(gpu_types=["; rm -rf /"]), "gpu_type"),
    ],
)
def test_an_impossible_requirement_is_refused_before_anything_is_asked(needs: Requirements, field: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        Submission.make(SCRIPT, needs)
    assert any(problem["field"].split("[")[0].endswith(field) for problem in refused.value.details["problems"])


# --- preferences --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "interruptible", "constraints"),
    [
        (["local"], False, {"providers": ["local"]}),
        (["local", "modal"], True, {"providers": ["local", "modal"], "allow_spot": True}),
        (["ec2_ondemand"], True, {"providers": ["aws"], "allow_spot": False}),
        (["ec2_ondemand"], False, {"providers": ["aws"]}),
        (["ec2_spot", "ec2_ondemand"], True, {"providers": ["aws"], "allow_spot": True}),
        (["ec2_spot", "ec2_ondemand"], False, {"providers": ["aws"]}),
        (["ec2_ondemand", "gcp"], True, {"providers": ["aws", "gcp"], "allow_spot": False}),
        (["aws", "gcp_ondemand", "gcp_spot"], True, {"providers": ["aws", "gcp"], "allow_spot": True}),
        ("lambda_labs", False, {"providers": ["lambda"]}),
    ],
)
def test_allowed_backends_are_a_rule(allowed: Any, interruptible: bool, constraints: dict[str, Any]) -> None:
    found = preferred({"allowed_backends": allowed}, interruptible=interruptible)
    assert found.fields == {"constraints": constraints} and found.notes == ()


def test_what_the_spec_cannot_forbid_is_said() -> None:
    found = preferred({"allowed_backends": ["ec2_spot"]}, interruptible=True)
    assert found.fields == {"constraints": {"providers": ["aws"], "allow_spot": True}}
    assert "aws is allowed on spot only" in found.notes[0]


@pytest.mark.parametrize(
    ("preferences", "said"),
    [
        ({"optimise_for": "cost"}, "did you mean optimize_for?"),
        ({"colour": "blue"}, "there are optimize_for, allowed_backends"),
        ({"allowed_backends": []}, "nothing could run"),
        ({"allowed_backends": ["k8s", "local"]}, "k8s cannot be mixed"),
        ({"allowed_backends": ["ec2_spot", "gcp_ondemand"]}, "aws is allowed on spot only and gcp never"),
    ],
)
def test_preferences_that_mean_nothing_are_refused(preferences: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match="(?s)" + said.replace("?", r"\?")):
        preferred(preferences, interruptible=True)


def test_spot_alone_needs_a_job_that_may_be_interrupted() -> None:
    with pytest.raises(InvalidRequest, match="interruptible=False"):
        preferred({"allowed_backends": ["ec2_spot"]}, interruptible=False)


def test_a_scheduler_is_a_backend_of_the_spec() -> None:
    assert preferred({"allowed_backends": "k8s"}, interruptible=True).fields == {"execution": {"backend": "k8s"}}


@pytest.mark.parametrize(
    ("word", "strategy"),
    [("cost", "cheapest"), ("speed", "fastest"), ("reliability", "reliable"), ("near-data", "near-data")],
)
def test_what_to_optimise_for_is_a_strategy(word: str, strategy: str) -> None:
    (spec,) = specs(Requirements(gpus=0), {"optimize_for": word})
    assert spec.constraints.strategy == strategy


def test_an_unknown_aim_names_those_there_are() -> None:
    with pytest.raises(InvalidSpec, match="balanced, cheapest, fastest"):
        specs(Requirements(gpus=0), {"optimize_for": "beauty"})


# --- code ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "details", "said"),
    [
        ("train.py", {}, r"pathlib.Path\('train.py'\)"),
        ("  \n", {}, "code is empty"),
        (SCRIPT, {"entrypoint": "x.py"}, "goes with a folder"),
        (Path("nowhere.py"), {}, "nowhere.py does not exist"),
        (Path(), {}, "is a folder: give entrypoint"),
    ],
)
def test_code_that_cannot_be_code_is_refused(code: Any, details: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Submission.make(code, **details)


def test_an_argument_that_does_not_exist_is_not_swallowed() -> None:
    with pytest.raises(TypeError, match="nmae"):
        Submission.make(SCRIPT, nmae="x")  # type: ignore[call-arg]


# --- merging ------------------------------------------------------------------------------------------------

layers = st.recursive(st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3))
mappings = st.dictionaries(st.sampled_from("abc"), layers, max_size=3)


@given(mappings, mappings)
def test_a_later_layer_wins_and_nothing_of_it_is_lost(below: dict[str, Any], above: dict[str, Any]) -> None:
    result = merged(below, above)
    assert merged(result, above) == result
    assert result.keys() == below.keys() | above.keys()
    for name, value in above.items():
        if not isinstance(value, dict):
            assert result[name] == value


backends = st.sampled_from(["local", "modal", "aws", "ec2_spot", "ec2_ondemand", "gcp", "gcp_spot", "gcp_ondemand"])


@given(st.lists(backends, min_size=1, max_size=5), st.booleans())
def test_spot_is_never_allowed_to_whom_the_list_denies_it(allowed: list[str], interruptible: bool) -> None:
    try:
        fields = preferred({"allowed_backends": allowed}, interruptible=interruptible).fields["constraints"]
    except InvalidRequest:
        return
    denied = {
        provider
        for provider, names in {"aws": ("aws", "ec2_spot"), "gcp": ("gcp", "gcp_spot")}.items()
        if provider in fields["providers"] and not any(name in allowed for name in names)
    }
    assert not fields.get("allow_spot") or (interruptible and not denied)
