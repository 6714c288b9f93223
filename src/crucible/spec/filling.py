"""From a template and values of its parameters to the text of a job, which is valid or not made at all. A value that
stands alone keeps its type; inside text it is put in as text. Nothing is computed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crucible.model.errors import InvalidSpec
from crucible.spec.inherit import entry, inherited
from crucible.spec.kinds import INVALID, nearest
from crucible.spec.problems import NOWHERE, Position, Problem, Reading, Stop, below, invalid_spec, shown
from crucible.spec.reader import load_tree
from crucible.spec.template import REFERENCE, Parameter, Template, Type, unknown_parameter
from crucible.spec.text import MAX_BYTES, decode
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, compose, describe
from crucible.spec.yaml_text import text_of

Values = Mapping[str, Scalar]

_WORDS = {True: "true", False: "false"}


def fill(template: Template, given: Mapping[str, Any]) -> str:
    """The job with values as programs and command lines have them; InvalidSpec with every problem."""
    reading = Reading(samples=_samples(template, "parameters"))
    nodes = {name: _node(value) for name, value in given.items()}
    values = _checked(template, nodes, {}, NOWHERE, "parameters", reading)
    if reading.problems:
        raise invalid_spec(reading.problems, f"what is given to the template {template.name}")
    return _job_text(template, values, set(given), Entries(NOWHERE), NOWHERE)


@dataclass(frozen=True, slots=True)
class Named:
    """A template, as a job names it."""

    name: str
    at: Position
    has_code: bool  # of its own, so that the template's is not meant


def naming(text: str | bytes) -> Named | None:
    """The template that a job names, if its text can be read at all: what is wrong with it `load` says."""
    if not re.search(r"\btemplate\b", text if isinstance(text, str) else text.decode("utf-8", "replace")):
        return None  # as of most jobs: they need not be read twice
    try:
        job = _job(compose(decode(text, Reading()), Reading()))
    except Stop:
        return None
    name = entry(job, "template")
    if not isinstance(name, Scalar) or name.is_null:
        return None
    return Named(name.text, name.at, entry(job, "code") is not None)


def no_such_template(named: Named, known: Sequence[str]) -> InvalidSpec:
    near = nearest(named.name, tuple(known))
    hint = f"did you mean '{near}'?" if near else "`crucible template ls` lists them"
    return invalid_spec([Problem(*named.at, "job.template", f"there is no template {shown(named.name)}", hint)])


def apply(text: str | bytes, template: Template) -> str:
    """The text of a job that names `template`, with its parameters filled in; what else the job says goes before what
    the template says. InvalidSpec with every problem, at the lines of `text`."""
    reading = Reading(samples=_samples(template, "job.with"))
    try:
        job = _job(compose(decode(text, reading), reading))
    except Stop:
        raise invalid_spec(reading.problems) from None
    asked = entry(job, "with")
    entries = asked.entries if isinstance(asked, Entries) else []
    at = {key.text: key.at for key, _ in entries}
    missing_at = next((key.at for key, _ in job.entries if key.text == "template"), NOWHERE)
    values = _checked(template, {key.text: value for key, value in entries}, at, missing_at, "job.with", reading)
    if reading.problems:
        raise invalid_spec(reading.problems)
    own = [(key, value) for key, value in job.entries if key.text not in ("template", "with")]
    return _job_text(template, values, set(at), Entries(NOWHERE, own), missing_at)


# --- values ---------------------------------------------------------------------------------------------------


def _checked(
    template: Template,
    given: Mapping[str, Node],
    at: Mapping[str, Position],
    missing_at: Position,
    path: str,
    reading: Reading,
) -> Values:
    """What each parameter is, its default if it was not given; everything that is wrong is told."""
    known = template.by_name()
    for name in given.keys() - known.keys():
        here = at.get(name, NOWHERE)
        message = f"the template {template.name} has no parameter {shown(name)}"
        reading.add(here, below(path, name), message, unknown_parameter(name, tuple(known)))
    values = {}
    for name, parameter in known.items():
        value = _value(parameter, given.get(name), below(path, name), missing_at, reading)
        if value is not None:
            values[name] = value
    return values


def _node(value: Any) -> Node:
    """As it would stand in YAML, without quotes: a command line has none, and the type of the parameter decides."""
    match value:
        case bool():
            return Scalar(_WORDS[value], True, NOWHERE)
        case str() | int() | float():
            return Scalar(str(value), True, NOWHERE)
        case None:
            return Scalar("null", True, NOWHERE)
    return Entries(NOWHERE) if isinstance(value, Mapping) else Listing(NOWHERE)


def _samples(template: Template, path: str) -> dict[str, str]:
    given = [parameter for parameter in template.parameters if parameter.default and parameter.default.text]
    return {below(path, one.name): f"{one.name}: {one.default.text}" for one in given if one.default}


def _value(parameter: Parameter, node: Node | None, path: str, missing_at: Position, reading: Reading) -> Scalar | None:
    if node is None:
        if parameter.default is None:
            reading.add(missing_at, path, f"is missing, expected {parameter.kind.words}", parameter.doc)
        return parameter.default
    if parameter.type in (Type.TEXT, Type.CHOICE) and isinstance(node, Scalar):
        node = replace(node, is_plain=False)  # `null` and `010` are text there
    if not isinstance(node, Scalar):
        reading.add(node.at, path, f"expected {parameter.kind.words}, found {describe(node)}", parameter.doc)
        return None
    return None if parameter.kind.read(node, path, reading) is INVALID else node


# --- text -----------------------------------------------------------------------------------------------------


def _job_text(template: Template, values: Values, given: set[str], own: Entries, at: Position) -> str:
    """Raises InvalidSpec: parameters that are right one by one can make a job that is not. What is wrong with what the
    template says is told at `at`."""
    if sum(len(values[name].text) for name in template.references()) > MAX_BYTES:
        raise invalid_spec(
            [Problem(*NOWHERE, "job", "is too long with these parameters")], f"the job of {template.name}"
        )
    canonical = {name: _canonical(template.by_name()[name], value) for name, value in values.items()}
    job = inherited(own, _filled_entries(template.job, canonical, at))
    root = Entries(at, [(Scalar("job", True, at), job)])
    try:
        load_tree(root)
    except InvalidSpec as error:
        problems = [Problem(**one) for one in error.details["problems"]]
        raise invalid_spec(problems, f"the job that the template {template.name} gives") from None
    text = text_of(root)
    return f"# From the template {template.name}{_said(values, given)}\n{text}"


def _said(values: Values, given: set[str]) -> str:
    """What was given, on one line."""
    words = [f"{name}={shown(value.text)[1:-1]}" for name, value in values.items() if name in given]
    return f": {', '.join(words)}" if words else ""


def _canonical(parameter: Parameter, value: Scalar) -> Scalar:
    if parameter.type is Type.FLAG:
        return Scalar(_WORDS[parameter.kind.parse(value)], True, value.at)
    return replace(value, is_plain=parameter.type not in (Type.TEXT, Type.CHOICE))


def _filled(node: Node, values: Values, at: Position) -> Node:
    """Recursion is bounded by the depth of the tree."""
    match node:
        case Scalar():
            alone = REFERENCE.fullmatch(node.text.strip())
            if alone is not None:
                return replace(values[alone[1]], at=at)
            text = REFERENCE.sub(lambda found: values[found[1]].text, node.text)
            return Scalar(text, node.is_plain and text == node.text, at)
        case Listing():
            return Listing(at, [_filled(item, values, at) for item in node.items])
        case Entries():
            return _filled_entries(node, values, at)


def _filled_entries(node: Entries, values: Values, at: Position) -> Entries:
    return Entries(at, [(replace(key, at=at), _filled(value, values, at)) for key, value in node.entries])


def _job(root: Node) -> Entries:
    job = entry(root, "job")
    return job if isinstance(job, Entries) else Entries(NOWHERE)
