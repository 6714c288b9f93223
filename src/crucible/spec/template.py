"""A job template: one YAML file with a description, typed parameters, and a job in which `${{ name }}` stands for one
of them. Reading it finds every problem at its line; nothing in it is ever run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from crucible.spec.kinds import (
    INVALID,
    NAME_LENGTH,
    Bad,
    Choice,
    Flag,
    Number,
    ScalarKind,
    Schema,
    Text,
    Whole,
    nearest,
)
from crucible.spec.problems import Reading, Stop, below, invalid_spec, shown
from crucible.spec.quantities import Duration, Money, Size
from crucible.spec.sections import choice
from crucible.spec.shapes import ListOf
from crucible.spec.table import Field, Group
from crucible.spec.text import START, decode
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, compose, describe

MOST_PARAMETERS = 100
# `${{ name }}`, and what looks as if it were meant to be one.
REFERENCE = re.compile(r"\$\{\{ *([A-Za-z][A-Za-z0-9_-]*) *\}\}")
_OPENING = "${{"

_FAR = 1e300
_EXACT = 2**53  # whole numbers beyond are not the same everywhere
_MOST_GIB = 2.0**40
_MOST_USD = 10**12
_LONGEST = timedelta(days=36_600)

TEMPLATE_NAME = Text(
    "a name such as fine-tune",
    pattern=r"[a-z0-9][a-z0-9-]{0,62}",
    hint="small letters, digits and -, at most 63",
    max_length=NAME_LENGTH,
)
_PARAMETER_NAME = Text(
    "the name of a parameter", pattern=r"[A-Za-z][A-Za-z0-9_-]*", hint="letters, digits, _ and -", max_length=64
)
_LINE = Text("a line of text", pattern=r"[^\x00-\x1f\x7f]+", hint="one line", max_length=500)


class Type(StrEnum):
    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    SIZE = "size"
    DURATION = "duration"
    MONEY = "money"


# How each is read, and what it is called, where no bounds are given.
_KINDS: Mapping[Type, tuple[ScalarKind, str]] = {
    Type.TEXT: (Text("text", may_be_empty=True), "text"),
    Type.WHOLE: (Whole(-_EXACT, _EXACT), "a whole number"),
    Type.NUMBER: (Number(-_FAR, _FAR), "a number"),
    Type.FLAG: (Flag(), "true or false"),
    Type.SIZE: (Size(_MOST_GIB), "a size such as 80GB"),
    Type.DURATION: (Duration(timedelta(0), _LONGEST), "a duration such as 90m"),
    Type.MONEY: (Money(_MOST_USD), "an amount in US dollars such as 100"),
}
_ORDERED = (Type.WHOLE, Type.NUMBER, Type.SIZE, Type.DURATION, Type.MONEY)


@dataclass(frozen=True, slots=True)
class Bounded(ScalarKind):
    """A kind whose values lie between others, which are told as they were written."""

    kind: ScalarKind
    what: str
    least: Scalar | None = None
    most: Scalar | None = None

    @property
    def words(self) -> str:
        plain = self.what.partition(" such as ")[0]  # the bounds are examples enough
        if self.least is not None and self.most is not None:
            return f"{plain} from {self.least.text} to {self.most.text}"
        if self.least is not None:
            return f"{plain} of at least {self.least.text}"
        return self.what if self.most is None else f"{plain} of at most {self.most.text}"

    def parse(self, scalar: Scalar) -> Any:
        try:
            value = self.kind.parse(scalar)
        except Bad as bad:
            raise Bad(bad.message.replace(self.kind.words, self.words), bad.hint) from None
        is_low = self.least is not None and value < self.kind.parse(self.least)
        if is_low or (self.most is not None and value > self.kind.parse(self.most)):
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}")
        return value

    def schema(self) -> Schema:
        return self.kind.schema()


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: Type
    kind: ScalarKind
    doc: str = ""
    default: Scalar | None = None  # None: it must be given
    least: Scalar | None = None
    most: Scalar | None = None
    choices: tuple[str, ...] = ()

    def view(self) -> dict[str, Any]:
        """For programs: bounds and default as values of JSON."""
        given = {"least": self.least, "most": self.most, "default": self.default}
        return {
            "name": self.name,
            "type": self.type.value,
            "doc": self.doc,
            "required": self.default is None,
            "choices": list(self.choices),
            **{name: None if scalar is None else self._json(scalar) for name, scalar in given.items()},
        }

    def _json(self, scalar: Scalar) -> Any:
        plain = self.type in (Type.WHOLE, Type.NUMBER, Type.FLAG)
        return self.kind.parse(scalar) if plain else scalar.text


@dataclass(frozen=True, slots=True)
class Template:
    name: str
    description: str
    parameters: tuple[Parameter, ...]
    job: Entries

    def by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    def references(self) -> Iterator[str]:
        """Names of parameters, as often as they stand in the job."""
        for scalar, _, _ in _scalars(self.job, "job"):
            yield from (found[1] for found in REFERENCE.finditer(scalar.text))


def read_template(text: str | bytes) -> Template:
    """The template that `text` describes, or InvalidSpec with every problem."""
    reading = Reading()
    try:
        found = _read(text, reading)
    except Stop:
        found = None
    if found is None or reading.problems:
        raise invalid_spec(reading.problems, "the template")
    return found


def unknown_parameter(name: str, known: Sequence[str]) -> str:
    """A hint for a name that no parameter has."""
    near = nearest(name, tuple(known))
    if near:
        return f"did you mean '{near}'?"
    return f"its parameters: {', '.join(known)}" if known else "it has no parameters"


# --- the file -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _As:
    """A node that is looked at later: what it means depends on others."""

    what: str
    shape: type[Entries] | type[Scalar]

    @property
    def words(self) -> str:
        return self.what

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if isinstance(node, self.shape):
            return node
        reading.add(node.at, path, f"expected {self.what}, found {describe(node)}")
        return INVALID

    def schema(self) -> Schema:
        return {}


_VALUE = _As("a value", Scalar)

PARAMETER = Group(
    make=dict,
    fields=(
        Field(
            name="type",
            kind=choice(Type, integer="whole", int="whole", string="text", bool="flag"),
            is_required=True,
            doc="text, whole, number, flag, choice, size, duration or money",
        ),
        Field(name="default", kind=_VALUE, doc="what it is if nobody says; without, it must be given"),
        Field(name="least", kind=_VALUE, doc="no less than this", aka=("min", "minimum")),
        Field(name="most", kind=_VALUE, doc="no more than this", aka=("max", "maximum")),
        Field(name="choices", kind=ListOf(Text("a word"), "a list of words"), doc="of a choice", aka=("options",)),
        Field(name="doc", kind=_LINE, doc="what it is for, in a line", aka=("description", "help")),
    ),
)


@dataclass(frozen=True, slots=True)
class _Parameters:
    @property
    def words(self) -> str:
        return "a mapping of parameters"

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if not isinstance(node, Entries):
            reading.add(node.at, path, f"expected {self.words}, found {describe(node)}", "write `lr: {type: number}`")
            return INVALID
        if len(node.entries) > MOST_PARAMETERS:
            reading.add(node.at, path, f"more than {MOST_PARAMETERS} parameters", "leave some of them to the job")
            return INVALID
        found = [_parameter(key, value, below(path, key.text), reading) for key, value in node.entries]
        return tuple(one for one in found if one is not None)

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": PARAMETER.schema()}


HEAD = Group(
    make=dict,
    fields=(
        Field(name="name", kind=TEMPLATE_NAME, is_required=True, doc="what it is asked for by"),
        Field(name="description", kind=_LINE, is_required=True, doc="what its jobs do, in a line", aka=("doc",)),
        Field(name="parameters", kind=_Parameters(), doc="what may differ from job to job"),
    ),
)

FILE = Group(
    make=dict,
    fields=(
        Field(name="template", kind=HEAD, is_required=True, doc="its name, description and parameters"),
        Field(name="job", kind=_As("the fields of a job", Entries), is_required=True, doc="the job to be filled in"),
    ),
)


def _read(text: str | bytes, reading: Reading) -> Template | None:
    source = decode(text, reading)
    if not source.strip():
        reading.stop(START, "template", "the template is empty", "`crucible template show NAME --text` prints one")
    root = compose(source, reading)
    if not isinstance(root, Entries):
        reading.stop(root.at, "template", f"expected a mapping, found {describe(root)}", "start with `template:`")
    read = FILE.read(root, "", reading)
    if read is INVALID:
        return None
    head, job = read["template"], read["job"]
    template = Template(head["name"], head["description"], head.get("parameters", ()), job)
    _check_references(template, root, reading)
    return template


def _parameter(key: Scalar, node: Node, path: str, reading: Reading) -> Parameter | None:
    """None if its problem was told."""
    name = _PARAMETER_NAME.read(Scalar(key.text, False, key.at), path, reading)
    given = PARAMETER.read(node, path, reading)
    fields = {below(path, field.name) for field in PARAMETER.fields}
    if name is INVALID or given is INVALID or not reading.is_sound(*fields):
        return None
    type_, choices = given["type"], given.get("choices", ())
    if problem := _unfit(type_, given):
        reading.add(node.at, path, *problem)
        return None
    least, most = (_bound(given.get(side), type_, below(path, side), reading) for side in ("least", "most"))
    kind = Choice(choices) if type_ is Type.CHOICE else Bounded(*_KINDS[type_], least, most)
    if least and most and kind_of(type_).parse(least) > kind_of(type_).parse(most):
        reading.add(most.at, below(path, "most"), f"{shown(most.text)} is less than least ({least.text})", "swap them")
        return None
    default = given.get("default")
    if default is not None and kind.read(_as_written(default, type_), below(path, "default"), reading) is INVALID:
        return None
    default = None if default is None else _as_written(default, type_)
    return Parameter(name, type_, kind, given.get("doc", ""), default, least, most, choices)


def kind_of(type_: Type) -> ScalarKind:
    return _KINDS[type_][0]


def _unfit(type_: Type, given: Mapping[str, Any]) -> tuple[str, str] | None:
    """What does not go with its type."""
    if type_ is Type.CHOICE and "choices" not in given:
        return "a choice needs choices", "for example `choices: [adam, sgd]`"
    if type_ is not Type.CHOICE and "choices" in given:
        return f"choices go with type choice, not {type_}", "set `type: choice`"
    if type_ not in _ORDERED and ("least" in given or "most" in given):
        return f"{type_} has no least and most", f"they go with {', '.join(_ORDERED)}"
    return None


def _bound(scalar: Scalar | None, type_: Type, path: str, reading: Reading) -> Scalar | None:
    if scalar is None or Bounded(*_KINDS[type_]).read(scalar, path, reading) is INVALID:
        return None
    return scalar


def _as_written(scalar: Scalar, type_: Type) -> Scalar:
    """Where text is wanted `null` and `~` are text."""
    return Scalar(scalar.text, False, scalar.at) if type_ in (Type.TEXT, Type.CHOICE) else scalar


# --- references -----------------------------------------------------------------------------------------------


def _check_references(template: Template, root: Entries, reading: Reading) -> None:
    known = template.by_name().keys()
    declared, before = _declared(root), len(reading.problems)
    used: set[str] = set()
    for scalar, path, is_key in _scalars(template.job, "job"):
        if is_key and _OPENING in scalar.text:
            reading.add(scalar.at, path, "a parameter cannot stand in a name", "use it in a value")
        elif not is_key:
            used |= _check_reference(scalar, path, tuple(declared), reading)
    for key, _ in template.job.entries:
        if key.text in ("template", "with"):
            reading.add(key.at, f"job.{key.text}", "a template cannot fill in another one", "write its job out")
    if len(reading.problems) > before:
        return  # a parameter whose name is misspelt is meant to be used
    for name in known - used:
        reading.add(
            declared[name].at, below("template.parameters", name), "is never used", "remove it, or use it in job"
        )


def _check_reference(scalar: Scalar, path: str, known: Sequence[str], reading: Reading) -> set[str]:
    names = [found[1] for found in REFERENCE.finditer(scalar.text)]
    if len(names) < scalar.text.count(_OPENING):
        hint = "the form is ${{ name }}"
        reading.add(scalar.at, path, f"{shown(scalar.text)} has a reference that cannot be read", hint)
    for name in names:
        if name not in known:
            reading.add(scalar.at, path, f"there is no parameter {shown(name)}", unknown_parameter(name, known))
    return set(names)


def _declared(root: Entries) -> dict[str, Scalar]:
    """Every parameter that the file names, also one that could not be read: to use it is no second mistake."""
    node: Node = root
    for step in ("template", "parameters"):
        found = [value for key, value in node.entries if key.text == step] if isinstance(node, Entries) else []
        if not found:
            return {}
        node = found[0]
    return {key.text: key for key, _ in node.entries} if isinstance(node, Entries) else {}


def _scalars(node: Node, path: str) -> Iterator[tuple[Scalar, str, bool]]:
    """Every scalar with its path, and whether it is the name of a field. Recursion is bounded by the tree's depth."""
    match node:
        case Scalar():
            yield node, path, False
        case Listing():
            for number, item in enumerate(node.items):
                yield from _scalars(item, f"{path}[{number}]")
        case Entries():
            for key, value in node.entries:
                here = below(path, key.text)
                yield key, here, True
                yield from _scalars(value, here)
