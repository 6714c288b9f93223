"""YAML text to a tree of nodes that know their place, within limits. The tree is built from the parser's events:
PyYAML's own composing recurses inside C, where a text of many brackets would end the process, and knows no limits.
Scalars stay text here: what `on`, `010` or `1:30` mean depends on the field, not on a version of YAML."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import yaml

from crucible.spec import syntax
from crucible.spec.problems import Position, Reading, below, shown
from crucible.spec.text import START, TOP

MAX_DEPTH = 32  # nested lists and mappings; people do not write deeper ones
MAX_ALIASES = 64
MAX_NODES = 10_000  # with every alias counted as what it stands for

# The pure Python parser reads the same language, ten times slower; wheels of PyYAML bring the C one.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


@dataclass(slots=True)
class Scalar:
    text: str
    is_plain: bool  # written without quotes and not as a block
    at: Position
    size: ClassVar[int] = 1
    height: ClassVar[int] = 0

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in _NULLS


@dataclass(slots=True)
class Listing:
    at: Position
    items: "list[Node]" = field(default_factory=list)
    size: int = 1
    height: int = 1


@dataclass(slots=True)
class Entries:
    """A mapping, in the order written; names are unique."""

    at: Position
    entries: "list[tuple[Scalar, Node]]" = field(default_factory=list)
    size: int = 1
    height: int = 1


Node = Scalar | Listing | Entries


def compose(text: str, reading: Reading) -> Node:
    """The only document of `text`. Duplicate and merge keys are told and left out; anything worse is Stop."""
    loader = _LOADER(text)
    composer = _Composer(reading)
    try:
        while composer.take(loader.get_event()):
            pass
    except yaml.YAMLError as error:
        at, message, hint = syntax.explain(error, text)
        reading.stop(at, composer.path(), message, hint)
    finally:
        loader.dispose()
    root = composer.root
    if root is None or (isinstance(root, Scalar) and root.is_null):
        reading.stop(START, TOP, "the spec is empty", "`crucible spec example` prints one to start from")
    return root


def describe(node: Node) -> str:
    """What stands there, for a message."""
    match node:
        case Listing():
            return "a list"
        case Entries():
            return "a mapping"
    return "nothing" if node.is_null else shown(node.text)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    node: Listing | Entries
    path: str
    anchor: str | None
    key: Scalar | None = None  # of the entry whose value comes next
    names: dict[str, Position] = field(default_factory=dict)


class _Composer:
    def __init__(self, reading: Reading) -> None:
        self.root: Node | None = None
        self._reading = reading
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None: the anchored node is still open
        self._aliases = 0
        self._nodes = 0

    def take(self, event: Any) -> bool:
        """Adds what `event` says; False after the last one."""
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)
        return type(event) is not yaml.StreamEndEvent

    def path(self) -> str:
        """The field that is being read."""
        return self._path() or TOP

    def document(self, event: Any) -> None:
        if self.root is not None:
            at = _position(event)
            self._stop(at, "the text holds several documents", "one spec is one document: remove the `---`")

    def scalar(self, event: Any) -> None:
        node = Scalar(event.value, not event.style, _position(event))  # the C parser says "" for plain, Python's None
        self._check(event, node)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._place(node)

    def start(self, event: Any) -> None:
        at = _position(event)
        node = Listing(at) if isinstance(event, yaml.SequenceStartEvent) else Entries(at)
        self._check(event, node)
        self._open.append(_Open(node, self._path(), event.anchor))

    def end(self, event: Any) -> None:
        frame = self._open.pop()
        if frame.anchor is not None:
            self._anchors[frame.anchor] = frame.node
        self._place(frame.node)

    def alias(self, event: Any) -> None:
        at, name = _position(event), event.anchor
        self._aliases += 1
        if self._aliases > MAX_ALIASES:
            self._stop(at, f"more than {MAX_ALIASES} aliases", "write the values out")
        if name not in self._anchors:
            self._stop(at, f"the alias {shown('*' + name)} has no anchor before it", "write the value out")
        node = self._anchors[name]
        if node is None:
            self._stop(at, f"the alias {shown('*' + name)} contains itself", "write the value out")
        self._count(node, at)
        self._place(node)

    def _check(self, event: Any, node: Node) -> None:
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._stop(node.at, f"tags such as {shown(tag)} are not allowed", "remove the tag; quote text instead")
        if event.anchor is not None:
            if event.anchor in self._anchors:
                self._stop(node.at, f"the anchor {shown('&' + event.anchor)} is set twice", "use another name")
            self._anchors[event.anchor] = None
        self._count(node, node.at)

    def _count(self, node: Node, at: Position) -> None:
        self._nodes += node.size
        if self._nodes > MAX_NODES:
            self._stop(at, f"more than {MAX_NODES} values", "a spec is small: move data into files of the code")
        if len(self._open) + node.height > MAX_DEPTH:
            self._stop(at, f"nested deeper than {MAX_DEPTH} levels", "make it flatter")

    def _place(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        frame = self._open[-1]
        frame.node.size += node.size
        frame.node.height = max(frame.node.height, node.height + 1)
        if isinstance(frame.node, Listing):
            frame.node.items.append(node)
        elif frame.key is None:
            frame.key = self._name(node)
        else:
            self._enter(frame.node, frame.names, frame.key, node)
            frame.key = None

    def _name(self, node: Node) -> Scalar:
        if not isinstance(node, Scalar):
            hint = "quote text that starts with { or ["
            self._stop(node.at, f"a field name must be text, found {describe(node)}", hint)
        return node

    def _enter(self, mapping: Entries, names: dict[str, Position], key: Scalar, value: Node) -> None:
        first = names.setdefault(key.text, key.at)
        if first is not key.at:
            message = f"the field {shown(key.text)} is given twice, first at {first.line}:{first.column}"
            self._reading.add(key.at, self._path(), message, "keep one of them")
        elif key.is_plain and key.text == "<<":
            self._reading.add(key.at, self._path(), "merge keys (<<) are not supported", "write the fields out")
        else:
            mapping.entries.append((key, value))

    def _path(self) -> str:
        if not self._open:
            return ""
        frame = self._open[-1]
        if isinstance(frame.node, Listing):
            return f"{frame.path}[{len(frame.node.items)}]"
        return frame.path if frame.key is None else below(frame.path, frame.key.text)

    def _stop(self, at: Position, message: str, hint: str) -> NoReturn:
        self._reading.stop(at, self.path(), message, hint)


_HANDLERS: dict[type, Callable[[_Composer, Any], None]] = {
    yaml.DocumentStartEvent: _Composer.document,
    yaml.ScalarEvent: _Composer.scalar,
    yaml.SequenceStartEvent: _Composer.start,
    yaml.MappingStartEvent: _Composer.start,
    yaml.SequenceEndEvent: _Composer.end,
    yaml.MappingEndEvent: _Composer.end,
    yaml.AliasEvent: _Composer.alias,
}


def _position(event: Any) -> Position:
    return Position(event.start_mark.line + 1, event.start_mark.column + 1)
