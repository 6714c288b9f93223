"""Words for what the YAML parser refuses: the parser says what it was doing, a user needs to know what to change."""

from dataclasses import dataclass
from typing import Any

import yaml

from crucible.spec.problems import Position, shown
from crucible.spec.text import START, position


@dataclass(frozen=True, slots=True)
class _Slip:
    """A usual mistake, known by a part of what the parser says (its C and its Python form differ in the rest)."""

    says: str
    message: str
    hint: str
    is_at_start: bool = False  # shown where the thing began, not where the parser gave up


_SLIPS = (
    _Slip(
        "quoted scalar: found unexpected end",
        "a quote is opened and never closed",
        "add the closing quote",
        is_at_start=True,
    ),
    _Slip(
        "flow sequence",
        "a list in [ ] is not closed, or lacks a comma",
        "check what follows this bracket",
        is_at_start=True,
    ),
    _Slip(
        "flow mapping",
        "a mapping in { } is not closed, or lacks a comma",
        "check what follows this brace",
        is_at_start=True,
    ),
    _Slip(
        "flow node", "a value is missing here, or a bracket is not closed", "check the brackets and commas before it"
    ),
    _Slip("block node", "a value cannot start like this", "put the value in quotes"),
    _Slip("could not find expected ':'", "this line has no ':'", "a field is written `name: value`", is_at_start=True),
    _Slip(
        "mapping values are not allowed",
        "a ':' is not expected here",
        "check the indentation of this line, or quote a value that contains ': '",
    ),
    _Slip(
        "sequence entries are not allowed",
        "a list item is not expected here",
        "put the list on the lines below its field, or quote a value that starts with '- '",
    ),
    _Slip(
        "block mapping",
        "this does not fit the lines before it",
        "fields of one mapping start in the same column; text after a quoted value belongs inside the quotes",
    ),
    _Slip("block collection", "a list item was expected", "start it with '- ' in the same column as the others"),
    _Slip("escape", "unknown escape in a text in double quotes", "use single quotes, or double the backslash"),
    _Slip("hexdecimal", "unknown escape in a text in double quotes", "use single quotes, or double the backslash"),
    _Slip("undefined tag handle", "tags are not allowed", "remove the tag; quote text that needs it"),
    _Slip("<document start>", "the text goes on after its end", "remove the `...`"),
)


def explain(error: yaml.YAMLError, text: str) -> tuple[Position, str, str]:
    """Where, what is wrong, and how to fix it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return START, f"not valid YAML: {str(error).splitlines()[0]}", ""
    at = min(_position(error.problem_mark), position(text, len(text)))  # the parser adds a line to the last one
    problem = error.problem or "cannot be read"
    if "tab" in problem or "cannot start any token" in problem:
        return at, *_bad_start(_character(text, at))
    words = f"{error.context}: {problem}"
    for slip in _SLIPS:
        if slip.says in words:
            start = error.context_mark if slip.is_at_start else None
            return _position(start) if start else at, slip.message, slip.hint
    return at, f"not valid YAML: {problem}", "`crucible spec example` shows the form"


def _bad_start(character: str) -> tuple[str, str]:
    if character == "\t":
        return "a tab is used for indentation", "use spaces"
    return f"a value cannot start with {shown(character)}", "put the value in quotes"


def _character(text: str, at: Position) -> str:
    lines = text.splitlines(keepends=True)
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    return line[at.column - 1 : at.column]


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)
