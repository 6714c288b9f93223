"""The form of a table of fields: a Group is one mapping of the spec, a Field one line of it. The same table reads a
spec, makes the JSON Schema and fills the reference, so that the three cannot differ."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crucible.spec.kinds import INVALID, Kind, Schema
from crucible.spec.problems import Reading, below, shown
from crucible.spec.suggest import meant
from crucible.spec.text import TOP
from crucible.spec.yaml_nodes import Entries, Node, Scalar, describe


def written(value: Any) -> str:
    """As it may stand in YAML, of which JSON is a part."""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`to` is the attribute that the field sets; two fields that set the same one exclude each other."""

    name: str
    kind: Kind
    doc: str
    to: str = ""
    make: Callable[[Any], Any] | None = None  # from what the kind gives to what the attribute holds
    default: Any = None  # as a user would write it; None: nothing
    example: Any = None
    is_required: bool = False
    aka: tuple[str, ...] = ()  # what others call it: suggested, never accepted

    @property
    def target(self) -> str:
        return self.to or self.name

    @property
    def sample(self) -> str:
        """A line that may stand in a spec."""
        return f"{self.name}: {written(self.example)}"


@dataclass(frozen=True)
class Group:
    """`make` builds the value from the attributes that were given."""

    fields: tuple[Field, ...]
    make: Callable[..., Any]
    one_of: tuple[str, ...] = ()  # at least one of these fields must be given

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {field.name: field for field in self.fields}

    @property
    def words(self) -> str:
        return "a mapping"

    def read(self, node: Node, path: str, reading: Reading) -> Any:
        if not isinstance(node, Entries):
            hint = "put its fields on the lines below, indented" if path else "start with `job:`"
            reading.add(node.at, path or TOP, f"expected a mapping, found {describe(node)}", hint)
            return INVALID
        values: dict[str, Any] = {}
        sources: dict[str, str] = {}  # attribute -> the field that set it
        for key, value in node.entries:
            field = self.by_name.get(key.text)
            if field is None:
                self._tell_unknown(key, path, reading)
            elif self._is_first(field, key, path, sources, reading):
                values[field.target] = _value(field, key, value, below(path, field.name), reading)
        is_whole = self._has_required(node, path, reading)
        sound = {name: value for name, value in values.items() if value is not INVALID}
        return self.make(**sound) if is_whole and self._can_make(sound) else INVALID

    def schema(self) -> Schema:
        result: Schema = {
            "type": "object",
            "properties": {field.name: _schema(field) for field in self.fields},
            "additionalProperties": False,
        }
        required = [field.name for field in self.fields if field.is_required]
        if required:
            result["required"] = required
        if self.one_of:
            result["anyOf"] = [{"required": [name]} for name in self.one_of]
        excluding = [{"not": {"required": list(pair)}} for pair in self.exclusive()]
        if excluding:
            result["allOf"] = excluding
        return result

    def exclusive(self) -> Iterator[tuple[str, str]]:
        """Pairs of fields that set the same thing."""
        first: dict[str, str] = {}
        for field in self.fields:
            other = first.setdefault(field.target, field.name)
            if other != field.name:
                yield other, field.name

    def _tell_unknown(self, key: Scalar, path: str, reading: Reading) -> None:
        own = next((field.name for field in self.fields if key.text in field.aka), None)
        hint = f"did you mean '{own}'?" if own else meant(key.text, path, self.by_name.keys(), reading.homes)
        reading.add(key.at, below(path, key.text), f"unknown field {shown(key.text)}", hint)

    def _is_first(self, field: Field, key: Scalar, path: str, sources: dict[str, str], reading: Reading) -> bool:
        other = sources.setdefault(field.target, field.name)
        if other == field.name:
            return True
        message = f"{other} and {field.name} are two ways to say the same"
        reading.add(key.at, below(path, field.name), message, "keep one of them")
        return False

    def _has_required(self, node: Entries, path: str, reading: Reading) -> bool:
        names = {key.text for key, _ in node.entries}
        at = reading.given.get(path, node.at)
        missing = [field for field in self.fields if field.is_required and field.name not in names]
        if reading.is_partial:
            return not missing
        for field in missing:
            reading.add(at, below(path, field.name), f"is missing, expected {field.kind.words}", field.doc)
        if self.one_of and names.isdisjoint(self.one_of):
            hint = f"for example `{self.by_name[self.one_of[0]].sample}`"
            reading.add(at, path, f"needs one of {', '.join(self.one_of)}", hint)
        return not missing

    def _can_make(self, sound: Mapping[str, Any]) -> bool:
        return all(field.target in sound for field in self.fields if field.is_required)


def _value(field: Field, key: Scalar, node: Node, path: str, reading: Reading) -> Any:
    reading.given[path] = key.at
    if isinstance(node, Scalar) and node.is_null:
        # Told at the name: the place of a value that is not there is the next line.
        message = f"has no value, expected {field.kind.words}"
        reading.add(key.at, path, message, "give a value or remove the field")
        value: Any = INVALID
    else:
        value = field.kind.read(node, path, reading)
    if value is INVALID:
        reading.unreadable.add(path)
        return INVALID
    return field.make(value) if field.make is not None else value


def _schema(field: Field) -> Schema:
    result = {"title": field.name.replace("_", " ").capitalize(), "description": field.doc, **field.kind.schema()}
    if field.default is not None:
        result["default"] = field.default
    if field.example is not None:
        result["examples"] = [field.example]
    return result
