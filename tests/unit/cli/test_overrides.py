"""Options that change the text of a spec."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.cli.overrides import Overrides, apply, parse_env
from crucible.spec import load

TEXT = """\
job:
  name: "sweep 01"   # a comment
  entrypoint: train.py
  resources: {gpus: 1, gpu_memory: 80GB}
  constraints:
    deadline: 2035-01-15T10:00:00Z
    budget: $99.50
"""


def test_values_are_set_and_the_rest_keeps_its_spelling() -> None:
    text = apply(TEXT, Overrides(gpus=8, spot=True, env={"LR": "0.1"}).values())
    spec = load(text).spec
    assert spec.resources.gpus == 8
    assert spec.constraints.allow_spot
    assert dict(spec.env) == {"LR": "0.1"}
    for kept in ('"sweep 01"', "80GB", "2035-01-15T10:00:00Z", "$99.50"):
        assert kept in text


def test_sections_that_are_missing_or_empty_are_made() -> None:
    text = apply("job:\n  entrypoint: train.py\n  env:\n", Overrides(budget=2.5, env={"A": "x"}).values())
    spec = load(text).spec
    assert spec.constraints.budget == 2_500_000
    assert dict(spec.env) == {"A": "x"}


def test_nothing_asked_for_changes_nothing() -> None:
    assert Overrides().values() == {}


@settings(deadline=None)
@given(
    st.text(
        st.characters(min_codepoint=32, exclude_categories=("Cs", "Cc", "Cn"), exclude_characters="\u2028\u2029\ufeff")
    )
)
def test_any_value_of_a_variable_arrives_as_it_was_given(value: str) -> None:
    text = apply("job:\n  command: ['true']\n", Overrides(env={"X": value}).values())
    assert load(text).spec.env["X"] == value


def test_a_word_that_is_no_assignment_is_refused() -> None:
    assert parse_env(["A=1=2", "B="]) == {"A": "1=2", "B": ""}
    for word in ("A", "=1", ""):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            parse_env([word])
