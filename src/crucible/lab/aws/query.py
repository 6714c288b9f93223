"""Form parameters, as the EC2 and Query protocols spell them, to values of the input shape. A name that the shape
does not know is refused; what a value may be beyond its type is checked elsewhere."""

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Never
from urllib.parse import parse_qsl

from crucible.lab.aws.errors import UNPRINTABLE, AwsError, invalid
from crucible.lab.aws.models import Operation, Shape

MOST_FIELDS = 20_000  # 1,000 instance ids with room to spare; more is an attack
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_ENVELOPE = ("Action", "Version")
_SIGNATURE = re.compile(r"X-Amz-(Algorithm|Credential|Date|Expires|SignedHeaders|Signature|Security-Token)")

Tree = dict[str, Any]  # name -> text or a Tree: what the dots in the names say


def fields(form: str) -> dict[str, str]:
    """Names and texts of a form, each name once."""
    try:
        pairs = parse_qsl(
            form, keep_blank_values=True, strict_parsing=bool(form), max_num_fields=MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise AwsError("MalformedQueryString", "The query string contains a syntax error.") from None
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            raise AwsError("InvalidQueryParameter", f"The parameter {name} is given more than once.")
        found[name] = text
    return found


def decode(operation: Operation, given: dict[str, str]) -> dict[str, Any]:
    """The values of an operation's input. Raises AwsError as EC2 does."""
    tree = _tree({name: text for name, text in given.items() if not _is_envelope(name)})
    if operation.input is None:
        if tree:
            _unknown(next(iter(tree)))
        return {}
    values: dict[str, Any] = _Decoder(is_ec2=operation.protocol == "ec2").structure(operation.input, tree, "")
    return values


def _is_envelope(name: str) -> bool:
    return name in _ENVELOPE or _SIGNATURE.fullmatch(name) is not None


def _tree(given: dict[str, str]) -> Tree:
    root: Tree = {}
    for name, text in given.items():
        *outer, last = name.split(".")
        node = root
        for part in outer:
            below = node.setdefault(part, {})
            if not isinstance(below, dict):
                _unknown(name)
            node = below
        if last in node:
            _unknown(name)
        node[last] = text
    return root


class _Decoder:
    def __init__(self, *, is_ec2: bool) -> None:
        self._is_ec2 = is_ec2
        self._of: dict[str, Callable[[Shape, Any, str], Any]] = {
            "structure": self.structure,
            "list": self._list if is_ec2 else self._wrapped_list,
            "map": self._map,
        }

    def structure(self, shape: Shape, node: Any, path: str) -> dict[str, Any]:
        if not isinstance(node, dict):
            invalid(f"Value ({node}) for parameter {path} is invalid. It must be a structure.")
        known = {self._wire_name(member, name): (name, member) for name, member in shape.members.items()}
        values = {}
        for wire_name, below in node.items():
            inner = f"{path}.{wire_name}" if path else wire_name
            if wire_name not in known:
                _unknown(inner)
            name, member = known[wire_name]
            values[name] = self._value(member, below, inner)
        return values

    def _value(self, shape: Shape, node: Any, path: str) -> Any:
        compound = self._of.get(shape.type_name)
        if compound is not None:
            return compound(shape, node, path)
        if not isinstance(node, str):
            _unknown(f"{path}.{next(iter(node))}")
        return scalar(shape.type_name, node, path)

    def _list(self, shape: Shape, node: Any, path: str) -> list[Any]:
        return [self._value(shape.member, below, f"{path}.{number}") for number, below in _numbered(node, path)]

    def _wrapped_list(self, shape: Shape, node: Any, path: str) -> list[Any]:
        if node == "":
            return []
        if shape.serialization.get("flattened"):
            return self._list(shape, node, path)
        wrapper = shape.member.serialization.get("name", "member")
        return self._list(shape, _only(node, wrapper, path), f"{path}.{wrapper}")

    def _map(self, shape: Shape, node: Any, path: str) -> dict[str, Any]:
        if not shape.serialization.get("flattened"):
            node, path = _only(node, "entry", path), f"{path}.entry"
        key, value = shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")
        found = {}
        for number, pair in _numbered(node, path):
            inner = f"{path}.{number}"
            if not isinstance(pair, dict) or set(pair) != {key, value}:
                invalid(f"{inner} must have a {key} and a {value}.")
            name = self._value(shape.key, pair[key], f"{inner}.{key}")
            found[name] = self._value(shape.value, pair[value], f"{inner}.{value}")
        return found

    def _wire_name(self, shape: Shape, name: str) -> str:
        said: dict[str, Any] = shape.serialization
        if self._is_ec2:
            if "queryName" in said:
                return str(said["queryName"])
            wire_name = str(said.get("name", ""))
            return wire_name[:1].upper() + wire_name[1:] or name
        if shape.type_name == "list" and said.get("flattened") and "name" in shape.member.serialization:
            return str(shape.member.serialization["name"])
        return str(said.get("name", name))


def _numbered(node: Any, path: str) -> list[tuple[int, Any]]:
    if not isinstance(node, dict):
        invalid(f"Value ({node}) for parameter {path} is invalid. It must be a list.")
    for number in node:
        if not _INTEGER.fullmatch(number) or int(number) < 1 or str(int(number)) != number:
            _unknown(f"{path}.{number}")
    return sorted((int(number), below) for number, below in node.items())


def _only(node: Any, name: str, path: str) -> Any:
    if not isinstance(node, dict):
        invalid(f"Value ({node}) for parameter {path} is invalid.")
    for other in node:
        if other != name:
            _unknown(f"{path}.{other}")
    return node[name]


def scalar(kind: str, text: str, path: str) -> Any:
    """The value that `text` stands for in a parameter of this kind."""
    try:
        return _SCALARS[kind](text)
    except (ValueError, OverflowError):
        invalid(f"Value ({text}) for parameter {path} is invalid. It must be a {kind}.")


def moment(text: str) -> datetime:
    """ISO 8601, or seconds since 1970."""
    if text.replace(".", "", 1).isdecimal():
        return datetime.fromtimestamp(float(text), UTC)
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _text(text: str) -> str:
    if UNPRINTABLE.search(text):
        raise ValueError
    return text


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _blob(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError from None


_SCALARS: dict[str, Callable[[str], Any]] = {
    "string": _text,
    "character": _text,
    "integer": _integer,
    "long": _integer,
    "float": _number,
    "double": _number,
    "boolean": _boolean,
    "timestamp": moment,
    "blob": _blob,
}


def _unknown(name: str) -> Never:
    raise AwsError("UnknownParameter", f"The parameter {name} is not recognized")
