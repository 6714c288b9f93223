"""Elements of XML, each made once from a shape of botocore's and then written many times: listings are long, and a
client asks for them every few seconds. Writing checks: names, types, required members and enumerations. What does not
fit is our bug and raises."""

import base64
import re
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape

from crucible.lab.aws.errors import AnswerMisfit
from crucible.lab.aws.models import OPEN_ENUMS, Shape

_SPECIAL = re.compile("[&<>\r]")
_INTEGERS = ("integer", "long")
_NUMBERS = (*_INTEGERS, "float", "double")


def contents(shape: Shape) -> "Element":
    """The members of a structure, without an element of their own."""
    return _Structure(shape, None)


def stamp(moment: datetime) -> str:
    """As EC2 writes a moment: UTC, milliseconds, Z."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


class Element(ABC):
    """Everything of one shape at one place of a document."""

    def __init__(self, shape: Shape, tag: str | None) -> None:
        self.shape = shape
        self.opening = f"<{tag}>" if tag is not None else ""
        self.closing = f"</{tag}>" if tag is not None else ""

    @abstractmethod
    def write(self, value: Any, out: list[str]) -> None: ...

    def misfit(self, value: Any) -> AnswerMisfit:
        return AnswerMisfit(f"{value!r:.200} is no {self.shape.type_name} {self.shape.name}")


class _Structure(Element):
    def __init__(self, shape: Shape, tag: str | None) -> None:
        super().__init__(shape, tag)
        self._members: dict[str, Element] = {}  # those that were written before
        self._required = tuple(shape.required_members)

    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, dict):
            raise self.misfit(value)
        for name in self._required:
            if name not in value:
                raise AnswerMisfit(f"{self.shape.name} needs {name}")
        out.append(self.opening)
        for name, part in value.items():
            (self._members.get(name) or self._member(name)).write(part, out)
        out.append(self.closing)

    def _member(self, name: str) -> Element:
        if name not in self.shape.members:
            raise AnswerMisfit(f"{self.shape.name} has no {name}")
        shape = self.shape.members[name]
        self._members[name] = found = _element(shape, shape.serialization.get("name", name))
        return found


class _List(Element):
    def __init__(self, shape: Shape, tag: str) -> None:
        is_flat = bool(shape.serialization.get("flattened"))
        super().__init__(shape, None if is_flat else tag)
        self._item_tag = shape.member.serialization.get("name", tag if is_flat else "member")
        self._item: Element | None = None

    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, list):
            raise self.misfit(value)
        item = self._item = self._item or _element(self.shape.member, self._item_tag)
        out.append(self.opening)
        for part in value:
            item.write(part, out)
        out.append(self.closing)


class _Map(Element):
    def __init__(self, shape: Shape, tag: str) -> None:
        super().__init__(shape, tag)
        self._key = _element(shape.key, shape.key.serialization.get("name", "key"))
        self._value = _element(shape.value, shape.value.serialization.get("name", "value"))

    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, dict):
            raise self.misfit(value)
        out.append(self.opening)
        for name, part in value.items():
            out.append("<entry>")
            self._key.write(name, out)
            self._value.write(part, out)
            out.append("</entry>")
        out.append(self.closing)


class _Text(Element):
    def __init__(self, shape: Shape, tag: str) -> None:
        super().__init__(shape, tag)
        self._allowed = frozenset(shape.metadata.get("enum", ()) if shape.name not in OPEN_ENUMS else ())

    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, str) or (self._allowed and value not in self._allowed):
            raise self.misfit(value)
        # A bare carriage return would come out of any parser as a line feed.
        text = escape(value, {"\r": "&#13;"}) if _SPECIAL.search(value) else value
        out.append(f"{self.opening}{text}{self.closing}")


class _Number(Element):
    def write(self, value: Any, out: list[str]) -> None:
        fits = isinstance(value, int) or (isinstance(value, float) and self.shape.type_name not in _INTEGERS)
        if not fits or isinstance(value, bool):
            raise self.misfit(value)
        out.append(f"{self.opening}{value!r}{self.closing}")


class _Flag(Element):
    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, bool):
            raise self.misfit(value)
        out.append(f"{self.opening}{'true' if value else 'false'}{self.closing}")


class _Moment(Element):
    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, datetime):
            raise self.misfit(value)
        out.append(f"{self.opening}{stamp(value)}{self.closing}")


class _Blob(Element):
    def write(self, value: Any, out: list[str]) -> None:
        if not isinstance(value, bytes):
            raise self.misfit(value)
        out.append(f"{self.opening}{base64.b64encode(value).decode()}{self.closing}")


_KINDS: dict[str, type[Element]] = {
    "structure": _Structure,
    "list": _List,
    "map": _Map,
    "string": _Text,
    "character": _Text,
    "boolean": _Flag,
    "timestamp": _Moment,
    "blob": _Blob,
    **dict.fromkeys(_NUMBERS, _Number),
}


def _element(shape: Shape, tag: str) -> Element:
    return _KINDS[shape.type_name](shape, tag)
