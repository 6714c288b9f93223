"""Steps of a workflow: what they say, what they take over, and the text of a step's own job."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from crucible.model.errors import InvalidSpec
from crucible.model.spec import JobSpec, Step, When
from crucible.spec import load, step_text
from crucible.spec.workflow import MOST_STEPS, OWN

SHARED = """\
job:
  name: nightly
  code: .
  env: {A: "1", B: no}
  entrypoint: main.py
  args: [--all]
  resources: {cpus: 4, gpu_type: H100}
  retry: {limit: 1}
  timeout: 1h
  constraints: {budget: 12.5, providers: aws}
  steps:
    - name: first
    - name: second
      needs: first
      command: [echo, 010]
      env: {B: yes}
      resources: {gpus: 2}
      retry_count: 7
      timeout_minutes: 5
      constraints: {providers: [local]}
      when: ended
      cache: no
"""


def steps(text: str) -> tuple[Step, ...]:
    return load(text).spec.steps


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as caught:
        load(text)
    return [f"{one['field']}: {one['message']}" for one in caught.value.details["problems"]]


def test_what_a_step_does_not_say_is_as_the_workflow_says() -> None:
    first, _ = steps(SHARED)
    assert first.job.entrypoint == "main.py" and first.job.args == ("--all",)
    assert first.job.env == {"A": "1", "B": "no"}
    assert first.job.retry.limit == 1 and first.job.timeout is not None and first.job.timeout.total_seconds() == 3600
    assert first.job.constraints.budget == 12_500_000 and first.job.constraints.providers == ("aws",)
    assert (first.needs, first.when, first.cache) == ((), When.SUCCEEDED, True)


def test_mappings_are_merged_and_whatever_else_a_step_says_holds_alone() -> None:
    _, second = steps(SHARED)
    assert second.job.env == {"A": "1", "B": "yes"}
    assert (second.job.resources.gpus, second.job.resources.cpus, second.job.resources.gpu_types) == (2, 4, ("H100",))
    assert second.job.constraints.providers == ("local",)
    assert (second.needs, second.when, second.cache) == (("first",), When.ENDED, False)


def test_a_step_that_says_what_it_runs_takes_no_other_start_and_no_other_word_for_the_same() -> None:
    _, second = steps(SHARED)
    assert second.job.command == ("echo", "010")
    assert (second.job.entrypoint, second.job.args) == (None, ())
    assert second.job.retry.limit == 7
    assert second.job.timeout is not None and second.job.timeout.total_seconds() == 300


def test_name_and_type_are_each_step_s_own() -> None:
    text = "job:\n  name: w\n  type: eval\n  command: x\n  steps: [{name: a}, {name: b, type: preprocessing}]\n"
    first, second = steps(text)
    assert [first.job.type, second.job.type] == ["training", "preprocessing"]
    assert first.job.name is None and first.name == "a"


def test_the_text_of_a_step_is_a_job_by_itself() -> None:
    text = step_text(SHARED, 1, {"name": "nightly/second", "inputs": {}, "env": {"C": "x"}})
    job = load(text.replace("  inputs: {}\n", "")).spec
    assert job == JobSpec(**{**fields(steps(SHARED)[1].job), "name": "nightly/second", "env": {**job.env, "C": "x"}})
    assert job.command == ("echo", "010") and job.env["B"] == "yes"
    assert "needs" not in text and "cache" not in text


def fields(job: JobSpec) -> dict[str, object]:
    return {name: getattr(job, name) for name in JobSpec.__dataclass_fields__}


def test_what_is_given_to_a_step_goes_before_what_it_says() -> None:
    text = step_text(SHARED, 0, {"constraints": {"budget": 0.25}, "sweep": {"trials": [{"item": "a: b"}, {"item": 3}]}})
    told = yaml.safe_load(text)["job"]
    assert told["constraints"] == {"budget": 0.25, "providers": "aws"}
    assert told["sweep"]["trials"] == [{"item": "a: b"}, {"item": 3}]
    assert load(text).spec.sweep is not None


def test_a_slip_that_all_steps_take_over_is_told_once_and_where_it_is() -> None:
    text = "job:\n  steps: [{name: a, command: x}, {name: b, command: x}]\n  resources: {gpus: many}\n"
    (told,) = problems(text)
    assert told.startswith("job.resources.gpus:")


def test_rules_between_fields_hold_in_each_step() -> None:
    told = problems("job:\n  resources: {gpus: 1}\n  steps: [{name: a, command: x, resources: {nodes: 2}}]\n")
    assert told == ["job.steps[0].resources.nodes: 2 machines for 1 GPUs"]


def test_a_warning_about_what_a_step_only_took_over_is_not_given() -> None:
    own = "job:\n  steps: [{name: a, command: x, resources: {gpu_type: H100}}]\n"
    (told,) = load(own).warnings
    assert told.field == "job.steps[0].resources.gpu_type"
    shared = "job:\n  resources: {gpu_type: H100}\n  steps: [{name: a, command: x}]\n"
    assert load(shared).warnings == ()


@pytest.mark.parametrize(
    ("needs", "way"),
    [
        ({"a": "a"}, "a → a"),
        ({"a": "b", "b": "a"}, "a → b → a"),
        ({"x": "", "a": "x, c", "b": "a", "c": "b"}, "a → c → b → a"),
    ],
)
def test_a_circle_is_named(needs: dict[str, str], way: str) -> None:
    listed = "".join(f"    - {{name: {name}, command: x, needs: [{before}]}}\n" for name, before in needs.items())
    text = f"job:\n  steps:\n{listed}".replace(", needs: []", "")
    (told,) = problems(text)
    assert told.endswith(f"in a circle: {way}")


def test_there_are_only_so_many_steps_and_values() -> None:
    many = "".join(f"    - {{name: s{i}, command: x}}\n" for i in range(MOST_STEPS + 1))
    (told,) = problems(f"job:\n  steps:\n{many}")
    assert told == f"job.steps: has {MOST_STEPS + 1} steps, and {MOST_STEPS} are the most"
    shared = ", ".join(f"V{i}: x" for i in range(300))
    some = "".join(f"    - {{name: s{i}, command: x}}\n" for i in range(200))
    (told,) = problems(f"job:\n  env: {{{shared}}}\n  steps:\n{some}")
    assert told.startswith("job.steps: the steps have more than 50000 values together")


@pytest.mark.parametrize(
    "field", [field for field in OWN if field.name not in ("name", "for_each")], ids=lambda f: f.name
)
def test_every_sample_of_a_step_s_own_fields_is_valid(field: object) -> None:
    sample = field.sample  # type: ignore[attr-defined]
    needs = "" if sample.startswith("needs") else "\n      needs: preprocess"
    text = f"job:\n  command: x\n  steps:\n    - name: preprocess\n    - name: train{needs}\n      {sample}\n"
    assert len(steps(text)) == 2


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=20)


@given(st.dictionaries(st.from_regex(r"[A-Z]{1,5}", fullmatch=True), words, max_size=4), words)
def test_whatever_words_a_workflow_has_its_steps_have_them_too(env: dict[str, str], argument: str) -> None:
    step = {"name": "a", "command": ["echo", argument]}
    text = yaml.safe_dump({"job": {"env": env or {"A": "b"}, "steps": [step]}}, allow_unicode=True)
    try:
        (whole,) = steps(text)
    except InvalidSpec:
        return  # a character that no spec may have
    assert load(step_text(text, 0, {})).spec == whole.job
