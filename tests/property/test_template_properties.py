"""Trees of YAML are written as they were read, and what is given to a template arrives as it was given, whatever it is:
no value can become another field, and nothing but a job or a list of problems comes out."""

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.model.errors import InvalidSpec
from crucible.spec import load
from crucible.spec.filling import fill
from crucible.spec.problems import NOWHERE, Reading
from crucible.spec.template import read_template
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, compose
from crucible.spec.yaml_text import text_of

LONGEST_S = 1.0  # of CPU, for any input

printable = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\u2028\u2029"))
words = printable | st.sampled_from(
    ["yes", "null", "010", "1e5", "a: b", "- x", "#", "{", "}", "&a", "*a", "!t", "|", ">"]
)
texts = words | st.lists(words, min_size=2, max_size=4).map("\n".join) | words.map(lambda text: f" {text}\n")
quoted = texts.map(lambda text: Scalar(text, False, NOWHERE))
plain = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,10}", fullmatch=True).map(lambda text: Scalar(text, True, NOWHERE))
keys = st.from_regex(r"[a-z]{1,8}", fullmatch=True)


def entries(values: dict[str, Node]) -> Entries:
    return Entries(NOWHERE, [(Scalar(key, True, NOWHERE), value) for key, value in values.items()])


trees = st.recursive(
    quoted | plain,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: Listing(NOWHERE, items))
        | st.dictionaries(keys, inner, max_size=4).map(entries)
    ),
    max_leaves=20,
)


def shape(node: Node) -> Any:
    match node:
        case Scalar():
            return node.text, node.is_plain
        case Listing():
            return [shape(item) for item in node.items]
    return {key.text: shape(value) for key, value in node.entries}


@given(st.dictionaries(keys, trees, min_size=1, max_size=4).map(entries))
@settings(max_examples=150, deadline=None)
def test_what_is_written_reads_as_the_same_tree(tree: Entries) -> None:
    reading = Reading()
    assert shape(compose(text_of(tree), reading)) == shape(tree) and not reading.problems


ECHO = read_template(
    """\
template: {name: echo, description: says it, parameters: {x: {type: text}, n: {type: number, default: 1}}}
job:
  entrypoint: echo.py
  args: ["${{ x }}", "<${{ x }}>", "${{ n }}"]
  env: {X: "${{ x }}"}
"""
)


@given(texts)
@settings(max_examples=150, deadline=None)
def test_text_arrives_to_the_letter(text: str) -> None:
    spec = load(fill(ECHO, {"x": text})).spec
    assert spec.args == (text, f"<{text}>", "1")
    assert spec.env == {"X": text}


values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.sampled_from(["x", "n", "y"]) | st.text(max_size=5), values, max_size=4))
@settings(max_examples=150, deadline=None)
def test_whatever_is_given_the_answer_is_a_job_or_problems_and_comes_soon(given: dict[str, Any]) -> None:
    began = time.process_time()
    try:
        load(fill(ECHO, given))
    except InvalidSpec as error:
        assert error.details["problems"]
    assert time.process_time() - began < LONGEST_S


@given(
    st.text() | st.binary(max_size=200) | st.dictionaries(st.sampled_from(["template", "job", "x"]), values).map(str)
)
@settings(max_examples=100, deadline=None)
def test_whatever_is_sent_as_a_template_the_answer_is_one_or_problems(text: str | bytes) -> None:
    try:
        read_template(text)
    except InvalidSpec as error:
        assert error.details["problems"]
