"""One walk over the trees collects what everything else asks for: imports, calls, classes, constants, options, texts.
The walk keeps its own stack, so that no nesting can exhaust Python's."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from crucible.core.router.findings import Site
from crucible.core.router.source import Unit

# Longer texts are not names, paths or addresses.
TEXT_LENGTH = 500
_REPEATS = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class or function, with what is assigned in it; None stands for a value that changes as it runs."""

    unit: Unit
    name: str
    parent: "Scope | None" = None
    is_class: bool = False
    bindings: dict[str, list[ast.expr | None]] = field(default_factory=lambda: defaultdict(list))
    defaults: dict[str, ast.expr] = field(default_factory=dict)  # of parameters

    @property
    def module(self) -> "Scope":
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(slots=True, eq=False)
class Call:
    node: ast.Call
    scope: Scope
    target: str  # the variable that gets its value; "" if none does
    is_repeated: bool  # in a loop, or in a function that may be called in one
    name: str = ""  # with what the names were imported as; filled in by `code`
    last: str = ""  # the end of it

    @property
    def site(self) -> Site:
        return self.scope.unit.site(self.node.lineno)

    def argument(self, name: str, position: int | None = None) -> ast.expr | None:
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        if position is not None and position < len(self.node.args):
            return self.node.args[position]
        return None


@dataclass(slots=True, eq=False)
class ClassFact:
    node: ast.ClassDef
    scope: Scope
    bases: tuple[str, ...] = ()
    init: "ast.FunctionDef | None" = None
    init_scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Import:
    module: str  # "torch.nn", or "torch.nn.Linear" of `from torch.nn import Linear`
    local: str  # the name it has in the file
    site: Site


class Origin(IntEnum):
    """What was said last counts: the least goes before the others."""

    GIVEN = 0  # to a configuration: GPTConfig(n_layer=6)
    ASSIGNED = 1  # config.lr = 0.1, {"lr": 0.1}
    OPTION = 2  # of the command line: its default
    FIELD = 3  # of a class: its default


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A value that is known by a name wherever it is used: an option, a field of a configuration."""

    value: ast.expr
    scope: Scope
    origin: "Origin"


@dataclass(slots=True)
class Facts:
    unit: Unit
    scope: Scope
    imports: list[Import] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    classes: dict[str, ClassFact] = field(default_factory=dict)
    named: dict[str, list[Named]] = field(default_factory=lambda: defaultdict(list))
    attributes: list[tuple[ast.Attribute, Scope]] = field(default_factory=list)
    texts: list[tuple[str, int]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    loops: list[tuple[str, ast.expr, Scope]] = field(default_factory=list)  # the variable, and over what

    @property
    def aliases(self) -> dict[str, str]:
        return {one.local: one.module for one in self.imports}


def collect(unit: Unit) -> Facts:
    facts = Facts(unit, Scope(unit, ""))
    walk = _Walk(facts)
    for tree in unit.trees:
        walk.over(tree)
    return facts


class _Walk:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._targets: dict[ast.expr, str] = {}
        self._is_repeated = False

    def over(self, tree: ast.Module) -> None:
        stack: list[tuple[ast.AST, Scope, bool]] = [(tree, self._facts.scope, False)]
        while stack:
            node, scope, self._is_repeated = stack.pop()
            look = _LOOKS.get(type(node))
            inner = scope if look is None else look(self, node, scope) or scope
            is_repeated = self._is_repeated or isinstance(node, _REPEATS)
            children = list(ast.iter_child_nodes(node))
            stack.extend((child, inner, is_repeated) for child in reversed(children))

    def name(self, node: ast.Name, scope: Scope) -> None:
        self._facts.used.add(node.id)

    def text(self, node: ast.Constant, scope: Scope) -> None:
        if isinstance(node.value, str) and 0 < len(node.value) <= TEXT_LENGTH:
            self._facts.texts.append((node.value, node.lineno))

    def attribute(self, node: ast.Attribute, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            self._facts.attributes.append((node, scope))

    def import_(self, node: ast.Import, scope: Scope) -> None:
        site = self._facts.unit.site(node.lineno)
        for alias in node.names:
            local = alias.asname or alias.name.partition(".")[0]
            module = alias.name if alias.asname else local
            self._facts.imports.append(Import(module, local, site))
            if module != alias.name:  # `import torch.distributed` binds torch and says what of it is wanted
                self._facts.imports.append(Import(alias.name, alias.name, site))

    def import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        site = self._facts.unit.site(node.lineno)
        module = node.module or ""
        for alias in node.names:
            full = f"{module}.{alias.name}" if module else alias.name
            self._facts.imports.append(Import(full, alias.asname or alias.name, site))

    def call(self, node: ast.Call, scope: Scope) -> None:
        self._facts.calls.append(Call(node, scope, self._targets.get(node, ""), self._is_repeated))
        for name, value, origin in _options(node):
            self._facts.named[name].append(Named(value, scope, origin))

    def class_(self, node: ast.ClassDef, scope: Scope) -> Scope:
        inner = Scope(scope.unit, node.name, scope, is_class=True)
        self._facts.classes.setdefault(node.name, ClassFact(node, inner))
        return inner

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> Scope:
        inner = Scope(scope.unit, node.name, scope)
        inner.defaults.update(_defaults(node.args))
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            inner.bindings[argument.arg] = []
        owner = self._facts.classes.get(scope.name) if scope.is_class else None
        if owner is not None and node.name == "__init__" and isinstance(node, ast.FunctionDef):
            owner.init, owner.init_scope = node, inner
        return inner

    def assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._bind(target, node.value, scope)

    def annotated(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self._bind(node.target, node.value, scope)

    def walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        self._bind(node.target, node.value, scope)

    def changing(self, node: ast.AugAssign | ast.For | ast.AsyncFor, scope: Scope) -> None:
        for name in ast.walk(node.target):
            if isinstance(name, ast.Name):
                scope.bindings[name.id].append(None)
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            self._facts.loops.append((node.target.id, node.iter, scope))

    def _bind(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            self._bind_several(target, value, scope)
            return
        if isinstance(target, ast.Name):
            scope.bindings[target.id].append(value)
            self._name_call(value, target.id)
            if scope.is_class:
                self._facts.named[target.id].append(Named(_field_default(value), scope, Origin.FIELD))
            for key, inner in _entries(value):
                self._facts.named[key].append(Named(inner, scope, Origin.ASSIGNED))
        elif isinstance(target, ast.Attribute):
            self._facts.named[target.attr].append(Named(value, scope, Origin.ASSIGNED))
            self._name_call(value, target.attr)
        elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            self._facts.named[str(target.slice.value)].append(Named(value, scope, Origin.ASSIGNED))

    def _bind_several(self, target: ast.Tuple | ast.List, value: ast.expr, scope: Scope) -> None:
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            for one, inner in zip(target.elts, value.elts, strict=True):
                self._bind(one, inner, scope)
            return
        for one in target.elts:
            if isinstance(one, ast.Name):
                scope.bindings[one.id].append(None)

    def _name_call(self, value: ast.expr, name: str) -> None:
        if isinstance(value, ast.Call):
            self._targets[value] = name


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


def _field_default(value: ast.expr) -> ast.expr:
    """`field(default=8)` of a dataclass is 8."""
    if isinstance(value, ast.Call):
        for keyword in value.keywords:
            if keyword.arg == "default":
                return keyword.value
    return value


def _entries(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """What a mapping names: {"batch_size": 32}."""
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, inner


# Calls whose keywords are the fields of a configuration.
_CONFIGS = ("Config", "Args", "Arguments", "Namespace", "Dict", "Params", "Settings", "HParams")
_FLAG_CALLS = ("DEFINE_integer", "DEFINE_float", "DEFINE_string", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum")


def _options(node: ast.Call) -> Iterator[tuple[str, ast.expr, Origin]]:
    """Options of the command line with their defaults, and fields of configurations."""
    last = _last(node.func)
    if last in ("add_argument", "option", "add_option"):
        yield from _option(node)
    elif last in _FLAG_CALLS and len(node.args) >= 2 and isinstance(node.args[0], ast.Constant):
        yield str(node.args[0].value), node.args[1], Origin.OPTION
    elif last == "dict" or last.endswith(_CONFIGS):
        yield from ((k.arg, k.value, Origin.GIVEN) for k in node.keywords if k.arg)


def _option(node: ast.Call) -> Iterator[tuple[str, ast.expr, Origin]]:
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    longest = next((name for name in names if name.startswith("--")), names[0] if names else "")
    dest = given.get("dest")
    if isinstance(dest, ast.Constant) and isinstance(dest.value, str):
        longest = dest.value
    default = given.get("default")
    if longest and default is not None:
        yield longest.lstrip("-").partition("/")[0].replace("-", "_"), default, Origin.OPTION


def _last(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


_LOOKS: Mapping[type, Callable[..., Scope | None]] = {
    ast.Name: _Walk.name,
    ast.Constant: _Walk.text,
    ast.Attribute: _Walk.attribute,
    ast.Import: _Walk.import_,
    ast.ImportFrom: _Walk.import_from,
    ast.Call: _Walk.call,
    ast.ClassDef: _Walk.class_,
    ast.FunctionDef: _Walk.function,
    ast.AsyncFunctionDef: _Walk.function,
    ast.Assign: _Walk.assign,
    ast.AnnAssign: _Walk.annotated,
    ast.NamedExpr: _Walk.walrus,
    ast.AugAssign: _Walk.changing,
    ast.For: _Walk.changing,
    ast.AsyncFor: _Walk.changing,
}
