"""What one value may be: text, a choice, a number, true or false. A kind reads a scalar, says what it expects in words,
and gives the JSON Schema of the same rule. Kinds know nothing of fields."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from crucible.spec.problems import Reading, shown
from crucible.spec.yaml_nodes import Node, Scalar, describe

Schema = dict[str, Any]

NAME_LENGTH = 200
TEXT_LENGTH = 64 * 1024
NAME = r"(?! )[^\x00-\x1f\x7f]+(?<! )"  # one line that does not start or end with a space

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
_OCTAL = re.compile("[-+]?0[0-9]+")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER = 64  # digits beyond that are no quantity, and cost time to convert
_INT64 = 2**63
# YAML 1.1 words, since every Python program reads them so.
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
# Characters that no system call or SQL text takes; they can only come from escapes in double quotes.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class _Invalid:
    """What `read` returns for a value whose problem it has told."""


INVALID = _Invalid()


class Kind(Protocol):
    @property
    def words(self) -> str:
        """What is expected, to follow "expected"."""
        ...

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        """The value, or INVALID after telling `reading` why."""
        ...

    def schema(self) -> Schema: ...


class Bad(Exception):
    """A scalar that is not of its kind."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class ScalarKind(ABC):
    """Does for every scalar kind what they share: refuses lists, mappings, nothing, and what cannot be stored."""

    @property
    @abstractmethod
    def words(self) -> str: ...

    @abstractmethod
    def parse(self, scalar: Scalar) -> Any:
        """The value, or Bad."""

    @abstractmethod
    def schema(self) -> Schema: ...

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        try:
            return self.parse(self._scalar(node))
        except Bad as bad:
            reading.add(node.at, path, bad.message, bad.hint)
            return INVALID

    def _scalar(self, node: Node) -> Scalar:
        if not isinstance(node, Scalar):
            raise Bad(f"expected {self.words}, found {describe(node)}")
        if node.is_null:
            raise Bad(f"has no value, expected {self.words}", "give a value or remove the field")
        if _UNSTORABLE.search(node.text):
            raise Bad("contains a NUL byte or half a surrogate pair", "remove the escape")
        return node


@dataclass(frozen=True, slots=True)
class Text(ScalarKind):
    """Takes plain `yes`, `010` or `1.50` as written: where text is expected, YAML's other readings have no say."""

    what: str = "text"
    pattern: str = ""  # of the whole text, for Python and ECMAScript alike
    hint: str = ""
    max_length: int = TEXT_LENGTH
    may_be_empty: bool = False
    takes_numbers: bool = False  # in editors too, which see a number where `0.1` stands without quotes

    @property
    def words(self) -> str:
        return self.what

    def parse(self, scalar: Scalar) -> str:
        text = scalar.text
        if not text and not self.may_be_empty:
            raise Bad(f"is empty, expected {self.what}", "give a value or remove the field")
        if len(text) > self.max_length:
            raise Bad(f"is longer than {self.max_length} characters", "make it shorter")
        if self.pattern and not re.fullmatch(self.pattern, text):
            raise Bad(f"expected {self.what}, found {shown(text)}", self.hint)
        return text

    def schema(self) -> Schema:
        result: Schema = {"type": ["string", "number", "boolean"] if self.takes_numbers else "string"}
        if not self.may_be_empty:
            result["minLength"] = 1
        result["maxLength"] = self.max_length
        if self.pattern:
            result["pattern"] = whole(self.pattern)
        return result


def whole(pattern: str) -> str:
    """The form for JSON Schema, whose patterns match anywhere unless they are tied to both ends."""
    return f"^(?:{pattern})$"


@dataclass(frozen=True, slots=True)
class Choice(ScalarKind):
    """One of a few words. `aka` are words of other systems, used only to say which of ours is meant."""

    values: tuple[str, ...]
    make: Callable[[str], Any] = str
    aka: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return "one of " + ", ".join(self.values)

    def parse(self, scalar: Scalar) -> Any:
        if scalar.text in self.values:
            return self.make(scalar.text)
        raise Bad(f"expected {self.words}, found {shown(scalar.text)}", self._nearest(scalar.text))

    def schema(self) -> Schema:
        return {"enum": list(self.values)}

    def _nearest(self, text: str) -> str:
        near = nearest(text, (*self.values, *self.aka))
        return f"did you mean '{self.aka.get(near, near)}'?" if near else ""


def nearest(text: str, names: tuple[str, ...]) -> str:
    """The one of `names` that `text` is probably meant to be, or ""."""
    if len(text) > NAME_LENGTH:
        return ""  # comparing takes the product of the lengths
    found = get_close_matches(text.lower().replace("-", "_"), names, n=1, cutoff=0.7)
    return found[0] if found else ""


@dataclass(frozen=True, slots=True)
class Flag(ScalarKind):
    @property
    def words(self) -> str:
        return "true or false"

    def parse(self, scalar: Scalar) -> bool:
        value = _FLAGS.get(scalar.text.lower())
        if value is None:
            raise Bad(f"expected true or false, found {shown(scalar.text)}")
        if not scalar.is_plain:
            raise Bad("expected true or false, found text in quotes", "remove the quotes")
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Whole(ScalarKind):
    least: int
    most: int

    @property
    def words(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, scalar: Scalar) -> int:
        if not scalar.is_plain:
            raise Bad(f"expected {self.words}, found text in quotes", "remove the quotes")
        if not _WHOLE.fullmatch(scalar.text):
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", number_hint(scalar.text))
        value = int(scalar.text) if len(scalar.text) <= _LONGEST_NUMBER else None
        if value is None or not self.least <= value <= self.most:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}")
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Number(ScalarKind):
    least: float
    most: float
    is_above_least: bool = False  # the least value itself is refused

    @property
    def words(self) -> str:
        if self.is_above_least:
            return f"a number above {self.least:g}, up to {self.most:g}"
        return f"a number from {self.least:g} to {self.most:g}"

    def parse(self, scalar: Scalar) -> float:
        if not scalar.is_plain:
            raise Bad(f"expected {self.words}, found text in quotes", "remove the quotes")
        value = finite(scalar.text)
        if value is None:
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}", number_hint(scalar.text))
        if not self.least <= value <= self.most or (self.is_above_least and value == self.least):
            raise Bad(f"expected {self.words}, found {shown(scalar.text)}")
        return value

    def schema(self) -> Schema:
        least = "exclusiveMinimum" if self.is_above_least else "minimum"
        return {"type": "number", least: self.least, "maximum": self.most}


def finite(text: str) -> float | None:
    """The number that `text` is in decimal, if it is one and can be held."""
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def number_hint(text: str) -> str:
    """What to write instead of a form that YAML 1.1 and 1.2 read differently, or that is no number."""
    if re.fullmatch(r"[-+]?0[0-9]{1,18}", text):
        return f"a leading zero means octal to some readers: write {int(text)}"
    if re.fullmatch(r"[-+]?0[xob][0-9a-fA-F_]+", text):
        return "write the number in decimal"
    if re.fullmatch(r"[-+]?[0-9]+(:[0-9]+)+(\.[0-9]*)?", text):
        return "some readers take this for a number to the base 60: write it in decimal"
    if re.fullmatch(r"[-+]?[0-9][0-9_,]+(\.[0-9]*)?", text):
        return "write the digits without separators"
    if text.lower().lstrip("+-").lstrip(".") in ("inf", "nan", "infinity"):
        return "it must be finite"
    return ""


def free_scalar(scalar: Scalar) -> Any:
    """The JSON value of a scalar in a part that Crucible hands on unread, by the rules of YAML 1.2: `yes` and `1:30`
    are text, `1e-4` is a number. A leading zero is refused, since the versions of YAML read two different numbers."""
    text = scalar.text
    if _UNSTORABLE.search(text):
        raise Bad("contains a NUL byte or half a surrogate pair", "remove the escape")
    if len(text) > TEXT_LENGTH:
        raise Bad(f"is longer than {TEXT_LENGTH} characters", "make it shorter")
    if not scalar.is_plain:
        return text
    if scalar.is_null:
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text.lower() == "true"
    return _free_number(text)


def _free_number(text: str) -> Any:
    number = finite(text)
    if number is None:
        if _OCTAL.fullmatch(text):
            hint = "write it without the leading zero, or in quotes to pass it as text"
            raise Bad(f"{shown(text)} is octal to some readers and decimal to others", hint)
        if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text):
            raise Bad(f"{shown(text)} is not a finite number", "put it in quotes to pass it as text")
        return text
    if not _WHOLE.fullmatch(text):
        return number
    if not -_INT64 <= int(text) < _INT64:
        raise Bad(f"{shown(text)} does not fit in 64 bits", "put it in quotes to pass it as text")
    return int(text)
