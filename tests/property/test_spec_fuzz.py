"""Whatever is sent as a spec, the answer is a spec or a list of problems that have a place, and it comes quickly
(requirement A4, reliability F43 and T11)."""

import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.model.encoding import decode, encode
from crucible.model.errors import InvalidSpec
from crucible.model.spec import JobSpec
from crucible.spec import Loaded, example, load, schema
from crucible.spec.fields import groups

NAMES = sorted({field.name for group in groups().values() for field in group.fields})
LONGEST_S = 1.0  # of CPU, for any input


def outcome(text: str | bytes) -> Loaded | InvalidSpec:
    started = time.process_time()
    try:
        result: Loaded | InvalidSpec = load(text)
    except InvalidSpec as error:
        result = error
    assert time.process_time() - started < LONGEST_S
    if isinstance(result, InvalidSpec):
        check_problems(result, text)
    return result


def check_problems(error: InvalidSpec, text: str | bytes) -> None:
    problems = error.details["problems"]
    assert 1 <= len(problems) <= 100
    assert problems == sorted(problems, key=lambda p: (p["line"], p["column"]))
    lines = len((text if isinstance(text, bytes) else text.encode("utf-8", "replace")).splitlines())
    for problem in problems:
        assert set(problem) == {"line", "column", "field", "message", "hint"}
        assert problem["field"] and problem["message"] and problem["hint"]
        assert 1 <= problem["line"] <= lines + 1
        assert problem["column"] >= 1
        assert "\n" not in problem["field"] + problem["message"] + problem["hint"]


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["80GB", "2h", "$5", "2027-01-01T00:00:00Z", "s3://b/k", "pytorch_ddp", "multi_task", "yes", "010", "1:30"]
    )
)
keys = st.sampled_from(NAMES) | st.text(max_size=12)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6), max_leaves=30
)


@given(st.text(max_size=400) | st.binary(max_size=400))
@settings(max_examples=600, deadline=None)
def test_any_text_is_a_spec_or_a_list_of_problems(text: str | bytes) -> None:
    outcome(text)


@given(st.text(alphabet=" \n:-[]{}'\"#&*!|>%@`?,ajob01~<\t\\", max_size=200))
@settings(max_examples=800, deadline=None)
def test_text_full_of_the_signs_of_yaml_is_a_spec_or_a_list_of_problems(text: str) -> None:
    outcome(text)


@given(trees, st.booleans())
@settings(max_examples=600, deadline=None)
def test_any_tree_under_job_is_a_spec_or_a_list_of_problems(tree: Any, is_flow: bool) -> None:
    outcome(yaml.safe_dump({"job": tree}, default_flow_style=is_flow, allow_unicode=True))


@st.composite
def spoiled_examples(draw: st.DrawFn) -> str:
    """The example with a few lines lost, doubled, moved, indented or cut, and bits of text put in."""
    lines = example().splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["drop", "double", "indent", "cut", "insert", "swap"])):
            case "drop":
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "indent":
                lines[at] = " " * draw(st.integers(1, 3)) + lines[at]
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "insert":
                position = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:position] + draw(st.text(max_size=5)) + lines[at][position:]
            case _:
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines) + "\n"


@given(spoiled_examples())
@settings(max_examples=800, deadline=None)
def test_a_spoiled_example_is_a_spec_or_a_list_of_problems(text: str) -> None:
    outcome(text)


def samples(described: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the table itself gives as examples, so that many specs are valid."""
    if "properties" in described:
        return st.fixed_dictionaries({}, optional={k: samples(v) for k, v in described["properties"].items()})
    return st.sampled_from(described["examples"])


@given(samples(schema()["properties"]["job"]))
@settings(max_examples=300, deadline=None)
def test_a_spec_that_loads_survives_storage_and_loads_the_same_again(job: Any) -> None:
    text = yaml.safe_dump({"job": job})
    result = outcome(text)
    if isinstance(result, Loaded):
        assert decode(JobSpec, encode(result.spec)) == result.spec
        assert load(text.encode()) == result


BOMBS = {
    "billion laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
    "brackets": "[" * 250_000,
    "braces": "{" * 250_000,
    "braces with keys": "{a: " * 60_000,
    "dashes": "- " * 120_000,
    "questions": "? " * 120_000,
    "deep indentation": "\n".join(" " * i + "a:" for i in range(700)),
    "one long word": "job: " + "x" * 250_000,
    "one long name": "job:\n  ? " + "x" * 250_000 + "\n  : 1\n",
    "one long number": "job: {command: x, priority: " + "9" * 250_000 + "}",
    "one long fraction": "job: {command: x, sweep: {a: 0." + "9" * 250_000 + "}}",
    "many fields": "job:\n" + "".join(f"  a{i}: 1\n" for i in range(20_000)),
    "many items": "job: {command: [" + "a," * 100_000 + "]}",
    "many documents": "---\n" * 60_000,
    "many anchors": "job:\n" + "".join(f"  - &a{i} x\n" for i in range(15_000)),
    "many comments": "#\n" * 100_000,
    "many quotes": "job: " + "'" * 250_000,
    "many escapes": 'job: "' + "\\n" * 100_000 + '"',
    "long key in flow": "{" + "a" * 200_000 + ": b, c",
    "many spaces": "job:" + " " * 250_000 + "x",
    "many newlines": "job:" + "\n" * 250_000 + "  x",
    "folded": "job: >\n" + " a\n\n" * 50_000,
    "many colons": "a:" * 120_000,
    "many almost numbers": "job: {command: x, timeout: " + "1:" * 100_000 + "1}",
    "many slashes": "job: {entrypoint: '" + "a/" * 32_000 + "..'}",
    "many stars": "*a " * 80_000,
    "many bangs": "!a " * 80_000,
    "many directives": "%YAML 1.1\n" * 25_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_quickly(name: str) -> None:
    text = BOMBS[name]
    assert len(text) <= 256 * 1024, "a longer text would be refused for its length"
    assert isinstance(outcome(text), InvalidSpec)
