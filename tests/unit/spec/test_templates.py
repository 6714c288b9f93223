"""Templates are read, filled in and laid under jobs. Reports of what is wrong are in tests/golden/templates."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.model.errors import InvalidSpec
from crucible.model.spec import JobSpec
from crucible.model.units import MicroUsd
from crucible.spec import load
from crucible.spec.filling import apply, fill, naming, no_such_template
from crucible.spec.template import Template, Type, read_template

TUNE = """\
template:
  name: tune
  description: Tune a model
  parameters:
    data: {type: text, doc: where the data is}
    lr: {type: number, default: 0.1, least: 0, most: 10}
    gpus: {type: whole, default: 0, least: 0}
    spot: {type: flag, default: no}
    framework: {type: choice, choices: [plain, pytorch], default: plain}
    memory: {type: size, default: 1GB}
    limit: {type: duration, default: 90}
    budget: {type: money, default: $5}
job:
  name: tune-${{framework}}-${{ gpus }}
  framework: ${{ framework }}
  entrypoint: tune.py
  args: ["--data", "${{ data }}", "--lr=${{ lr }}"]
  env: {SPOT: "${{ spot }}", SAID: "a ${{ data }} b ${{ data }}", COST: "costs $5 or ${5}"}
  resources: {gpus: "${{ gpus }}", cpu_memory: "${{ memory }}"}
  timeout: ${{ limit }}
  constraints: {allow_spot: "${{ spot }}", budget: "${{ budget }}"}
"""


@pytest.fixture(scope="module")
def tune() -> Template:
    return read_template(TUNE)


def job_of(template: Template, **given: Any) -> JobSpec:
    return load(fill(template, given)).spec


def test_a_value_that_stands_alone_keeps_its_type(tune: Template) -> None:
    spec = job_of(tune, data="d", gpus=2, memory="3GB", spot=True, limit="1h30m", budget="7.5")
    assert (spec.resources.gpus, spec.resources.cpu_memory_gib) == (2, 3.0)
    assert spec.timeout == timedelta(minutes=90)
    assert (spec.constraints.allow_spot, spec.constraints.budget) == (True, MicroUsd(7_500_000))


def test_what_is_not_given_is_as_the_template_says(tune: Template) -> None:
    spec = job_of(tune, data="d")
    assert (spec.resources.gpus, spec.timeout, spec.constraints.allow_spot) == (0, timedelta(seconds=90), False)
    assert spec.constraints.budget == MicroUsd(5_000_000) and spec.args[-1] == "--lr=0.1"


def test_inside_text_a_value_is_text(tune: Template) -> None:
    spec = job_of(tune, data="x: y", gpus="1", framework="pytorch")
    assert (spec.name, spec.env["SAID"], spec.env["SPOT"]) == ("tune-pytorch-1", "a x: y b x: y", "false")
    assert spec.env["COST"] == "costs $5 or ${5}", "what is no reference stays as it is"


@pytest.mark.parametrize(
    "text",
    ["", "yes", "null", "~", "010", "1e5", "a: b", "- x", "'", '"', "#", "{}", "${{ lr }}", "ä\nb\n", " x ", "\t"],
)
def test_text_arrives_to_the_letter_whatever_yaml_would_make_of_it(tune: Template, text: str) -> None:
    assert job_of(tune, data=text).args[1] == text


@pytest.mark.parametrize(("name", "value", "shown"), [("lr", "1e-4", "--lr=1e-4"), ("lr", 0.25, "--lr=0.25")])
def test_numbers_of_a_command_line_and_of_a_program_are_the_same(
    tune: Template, name: str, value: Any, shown: str
) -> None:
    assert job_of(tune, data="d", **{name: value}).args[-1] == shown


def test_flags_are_true_or_false_however_they_were_said(tune: Template) -> None:
    for said in ("yes", "on", "TRUE", True):
        assert job_of(tune, data="d", spot=said).env["SPOT"] == "true"


def test_every_problem_is_told_at_once_and_nothing_is_made(tune: Template) -> None:
    with pytest.raises(InvalidSpec) as caught:
        fill(tune, {"lr": 11, "gpu": 1, "spot": "perhaps", "memory": None, "limit": [1], "budget": {"a": 1}})
    problems = {one["field"].removeprefix("parameters."): one["message"] for one in caught.value.details["problems"]}
    assert problems.keys() == {"data", "lr", "gpu", "spot", "memory", "limit", "budget"}
    assert "found a list" in problems["limit"] and "found a mapping" in problems["budget"]
    assert "has no parameter 'gpu'" in problems["gpu"] and caught.value.message.startswith("what is given to")


def test_the_text_says_what_it_is_from(tune: Template) -> None:
    first = fill(tune, {"data": "a\nb", "lr": 1}).splitlines()[0]
    assert first == "# From the template tune: data=a\\nb, lr=1"


def test_text_that_grows_without_bound_is_refused() -> None:
    many = ", ".join(['"${{ x }}"'] * 100)
    template = read_template(
        f"template: {{name: t, description: d, parameters: {{x: {{type: text}}}}}}\njob: {{command: [{many}]}}"
    )
    with pytest.raises(InvalidSpec, match="too long with these parameters"):
        fill(template, {"x": "y" * 60_000})


# --- jobs that name one ---------------------------------------------------------------------------------------


def test_a_job_names_a_template_and_what_it_takes(tune: Template) -> None:
    text = "job:\n  template: tune\n  with: {data: /d, gpus: 3}\n"
    named = naming(text)
    assert named is not None and (named.name, named.at, named.has_code) == ("tune", (2, 13), False)
    spec = load(apply(text, tune)).spec
    assert (spec.args[1], spec.resources.gpus, spec.template) == ("/d", 3, None)


def test_what_the_job_says_itself_goes_first(tune: Template) -> None:
    text = "job: {template: tune, with: {data: d}, name: mine, env: {X: y}, resources: {gpus: 4}, timeout_minutes: 5}"
    spec = load(apply(text, tune)).spec
    assert (spec.name, spec.env["X"], spec.env["SPOT"]) == ("mine", "y", "false")
    assert (spec.resources.gpus, spec.resources.cpu_memory_gib) == (4, 1.0)
    assert spec.timeout == timedelta(minutes=5), "two ways to say the same: the job's own counts"


def test_a_job_that_says_what_it_runs_takes_nothing_of_that_from_the_template(tune: Template) -> None:
    spec = load(apply("job: {template: tune, with: {data: d}, command: ls}", tune)).spec
    assert spec.command == ("/bin/sh", "-c", "ls") and spec.entrypoint is None and spec.args == ()


@pytest.mark.parametrize(
    "text", ["job: {command: ls}", "job: {command: 'echo template'}", "job: {template: }", "- template"]
)
def test_a_job_that_names_none_is_left_alone(text: str) -> None:
    assert naming(text) is None


def test_code_of_its_own_is_noticed() -> None:
    named = naming("job: {template: t, code: .}")
    assert named is not None and named.has_code


def test_a_template_that_is_not_there_is_told_where_it_is_named() -> None:
    named = naming("job:\n  template: fine-tun\n")
    assert named is not None
    (problem,) = no_such_template(named, ["fine-tune", "sweep"]).details["problems"]
    assert (problem["line"], problem["column"], problem["field"]) == (2, 13, "job.template")
    assert problem["hint"] == "did you mean 'fine-tune'?"


def test_parameters_without_a_template_are_a_mistake() -> None:
    with pytest.raises(InvalidSpec, match="has no effect without a template"):
        load("job: {command: ls, with: {lr: 1}}")


def test_a_step_names_no_template() -> None:
    with pytest.raises(InvalidSpec, match=r"job.steps\[0\].template: unknown field 'template'"):
        load("job: {steps: [{name: a, template: t}]}")


# --- reading --------------------------------------------------------------------------------------------------


def test_programs_see_parameters_with_values_of_json(tune: Template) -> None:
    views = {view["name"]: view for view in (parameter.view() for parameter in tune.parameters)}
    assert views["data"] == {
        "name": "data",
        "type": "text",
        "doc": "where the data is",
        "required": True,
        "choices": [],
        "default": None,
        "least": None,
        "most": None,
    }
    assert (views["lr"]["default"], views["lr"]["least"], views["lr"]["most"]) == (0.1, 0.0, 10.0)
    assert (views["gpus"]["default"], views["spot"]["default"], views["memory"]["default"]) == (0, False, "1GB")
    assert views["framework"]["choices"] == ["plain", "pytorch"]
    assert {view["type"] for view in views.values()} == set(Type)


def test_a_template_needs_no_parameters() -> None:
    template = read_template("template: {name: t, description: d}\njob: {command: ls}")
    assert load(fill(template, {})).spec.command[-1] == "ls"


def test_the_example_in_the_manual_is_a_template() -> None:
    page = (Path(__file__).parents[3] / "docs" / "templates.md").read_text()
    template = read_template(page.split("```yaml\n")[1].split("```")[0])
    assert load(fill(template, {"data": "/data/train.csv"})).spec.args
