"""Lists and mappings whose names are the user's. Mappings with names of ours are in `table`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crucible.spec.kinds import INVALID, NAME_LENGTH, Bad, Kind, Schema, Text, free_scalar
from crucible.spec.problems import Reading, below
from crucible.spec.yaml_nodes import Entries, Listing, Node, Scalar, describe


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Kind
    what: str

    @property
    def words(self) -> str:
        return self.what

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if not isinstance(node, Listing):
            reading.add(node.at, path, f"expected {self.what}, found {describe(node)}", "write each item after '- '")
            return INVALID
        if not node.items:
            reading.add(node.at, path, f"is an empty list, expected {self.what}", "give items or remove the field")
            return INVALID
        items = [self.item.read(item, f"{path}[{i}]", reading) for i, item in enumerate(node.items)]
        return INVALID if INVALID in items else tuple(items)

    def schema(self) -> Schema:
        return {"type": "array", "minItems": 1, "items": self.item.schema()}


@dataclass(frozen=True, slots=True)
class OneOrList:
    """A single text or a list; `alone` makes the tuple from a text that stands alone."""

    item: Text
    what: str
    alone: Callable[[str], tuple[str, ...]] = lambda text: (text,)

    @property
    def words(self) -> str:
        return self.what

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if isinstance(node, Listing):
            return ListOf(self.item, self.what).read(node, path, reading)
        text = self.item.read(node, path, reading)
        return INVALID if text is INVALID else self.alone(text)

    def schema(self) -> Schema:
        item = self.item.schema()
        return {"anyOf": [item, {"type": "array", "minItems": 1, "items": item}]}


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose names are the user's."""

    key: Text
    value: Text
    what: str

    @property
    def words(self) -> str:
        return self.what

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if not isinstance(node, Entries):
            reading.add(node.at, path, f"expected {self.what}, found {describe(node)}", "write `name: value` lines")
            return INVALID
        pairs = [self._pair(key, value, path, reading) for key, value in node.entries]
        return INVALID if any(INVALID in pair for pair in pairs) else dict(pairs)

    def schema(self) -> Schema:
        return {"type": "object", "propertyNames": self.key.schema(), "additionalProperties": self.value.schema()}

    def _pair(self, key: Scalar, value: Node, path: str, reading: Reading) -> tuple[Any, Any]:
        here = below(path, key.text)
        return self.key.read(_as_text(key), here, reading), self.value.read(value, here, reading)


def _as_text(key: Scalar) -> Scalar:
    """A name is text, even if it is `null` or `~`."""
    return Scalar(key.text, False, key.at)


@dataclass(frozen=True, slots=True)
class FreeMap:
    """A mapping that Crucible hands on unread, as JSON values."""

    what: str = "a mapping"

    @property
    def words(self) -> str:
        return self.what

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if not isinstance(node, Entries):
            reading.add(node.at, path, f"expected {self.what}, found {describe(node)}", "write `name: value` lines")
            return INVALID
        return _free(node, path, reading)

    def schema(self) -> Schema:
        return {"type": "object"}


def _free(node: Node, path: str, reading: Reading) -> Any:
    """Recursion is bounded by the depth of the tree. Problems are told; what could not be read becomes INVALID."""
    match node:
        case Listing():
            return [_free(item, f"{path}[{i}]", reading) for i, item in enumerate(node.items)]
        case Entries():
            for key, _ in node.entries:
                _FREE_NAME.read(_as_text(key), below(path, key.text), reading)
            return {key.text: _free(value, below(path, key.text), reading) for key, value in node.entries}
    try:
        return free_scalar(node)
    except Bad as bad:
        reading.add(node.at, path, bad.message, bad.hint)
        return INVALID


_FREE_NAME = Text("a name", max_length=NAME_LENGTH)
