"""What an expression is worth if one can tell without running it: literals, names bound to them, options' defaults,
simple arithmetic. Everything is bounded: how deep it looks, how large a number may become."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crucible.core.router.facts import Named, Origin, Scope
from crucible.core.router.findings import Confidence, Site

if TYPE_CHECKING:
    from crucible.core.router.code import Code

Literal = int | float | str | bool

DEPTH = 30
# No size, count or learning rate is larger.
LARGEST = 1e18
_POWER = 64
# So many assignments of one name are looked at.
_LOOKED_AT = 4
# Of all questions together: names that lead to names that lead to names must end.
STEPS = 100_000

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True, slots=True)
class Known:
    value: Literal
    site: Site  # where the value is written, which is where one would change it
    confidence: Confidence
    is_option: bool = False

    @property
    def number(self) -> float | None:
        return None if isinstance(self.value, (str, bool)) else float(self.value)


Arguments = Mapping[str, "Known"]


class Evaluator:
    def __init__(self, code: "Code") -> None:
        self._code = code
        self._left = STEPS
        self._known: dict[ast.expr, Known | None] = {}  # by the node, which it keeps, where no parameters are given

    def value(
        self, node: ast.expr | None, scope: Scope, given: Arguments | None = None, depth: int = 0
    ) -> Known | None:
        """`given` are values of parameters, when a call is followed."""
        look = _LOOKS.get(type(node))
        if node is None or look is None or depth > DEPTH or self._left <= 0:
            return None
        if not given and node in self._known:
            return self._known[node]
        self._left -= 1
        if given:
            return look(self, node, scope, given, depth + 1)
        self._known[node] = None  # what depends on itself is unknown
        self._known[node] = known = look(self, node, scope, {}, depth + 1)
        return known

    def number(self, node: ast.expr | None, scope: Scope, given: Arguments | None = None) -> Known | None:
        known = self.value(node, scope, given)
        return known if known is not None and known.number is not None else None

    def text(self, node: ast.expr | None, scope: Scope) -> Known | None:
        known = self.value(node, scope)
        return known if known is not None and isinstance(known.value, str) else None

    def named(self, name: str, unit: str = "", depth: int = 0) -> Known | None:
        """What options and configurations call so: what is given goes before defaults, the same file before others."""
        for origin in Origin:
            entries = [entry for entry in self._code.named.get(name, ()) if entry.origin is origin]
            here = [entry for entry in entries if entry.scope.unit.name == unit]
            known = _agreed(self._each(here or entries, depth))
            if known is not None:
                return known
        return None

    def _each(self, entries: Sequence[Named], depth: int) -> list[Known]:
        found = []
        for entry in entries[:_LOOKED_AT]:
            known = self.value(entry.value, entry.scope, None, depth + 1)
            if known is not None:
                is_default = entry.origin in (Origin.OPTION, Origin.FIELD)
                ceiling = Confidence.MEDIUM if is_default else known.confidence
                found.append(_weaker(known, ceiling, entry.origin is Origin.OPTION))
        return found

    # --- kinds of expressions ---------------------------------------------------------------------

    def _constant(self, node: ast.Constant, scope: Scope, given: Arguments, depth: int) -> Known | None:
        value = node.value
        if not isinstance(value, (int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
            return None
        if isinstance(value, int) and abs(value) > LARGEST:
            return None
        return Known(value, scope.unit.site(node.lineno), Confidence.HIGH)

    def _name(self, node: ast.Name, scope: Scope, given: Arguments, depth: int) -> Known | None:
        if node.id in given:
            return given[node.id]
        at: Scope | None = scope
        while at is not None:
            if node.id in at.bindings and (at is scope or not at.is_class):
                return self._bound(node.id, at, given, depth)
            at = at.parent
        return self._code.imported_value(node.id, scope, depth)

    def _bound(self, name: str, scope: Scope, given: Arguments, depth: int) -> Known | None:
        values = scope.bindings[name][:_LOOKED_AT]
        if not values and name in scope.defaults:
            known = self.value(scope.defaults[name], scope, None, depth)
            return _weaker(known, Confidence.MEDIUM) if known else None
        found = [known for one in values if (known := self.value(one, scope, given, depth)) is not None]
        best = _agreed(found)
        return _weaker(best, Confidence.MEDIUM) if best is not None and len(found) < len(values) else best

    def _attribute(self, node: ast.Attribute, scope: Scope, given: Arguments, depth: int) -> Known | None:
        key = f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""
        if key in given:
            return given[key]
        imported = self._code.imported_value(key, scope, depth) if key else None
        return imported or self.named(node.attr, scope.unit.name, depth)

    def _subscript(self, node: ast.Subscript, scope: Scope, given: Arguments, depth: int) -> Known | None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self.named(node.slice.value, scope.unit.name, depth)
        return None

    def _unary(self, node: ast.UnaryOp, scope: Scope, given: Arguments, depth: int) -> Known | None:
        known = self.value(node.operand, scope, given, depth)
        if known is None or known.number is None or not isinstance(node.op, ast.USub):
            return None
        return Known(-known.value, known.site, known.confidence, known.is_option)  # type: ignore[operator]  # a number

    def _binary(self, node: ast.BinOp, scope: Scope, given: Arguments, depth: int) -> Known | None:
        left = self.value(node.left, scope, given, depth)
        right = self.value(node.right, scope, given, depth)
        if left is None or right is None or left.number is None or right.number is None:
            return None
        result = _computed(node.op, left.value, right.value)
        if result is None:
            return None
        surest = left if left.confidence.rank >= right.confidence.rank else right
        return Known(result, scope.unit.site(node.lineno), surest.confidence)

    def _either(self, node: ast.BoolOp, scope: Scope, given: Arguments, depth: int) -> Known | None:
        """`x or 8` is x if it is known, else perhaps 8."""
        if not isinstance(node.op, ast.Or):
            return None
        found = [known for one in node.values if (known := self.value(one, scope, given, depth)) is not None]
        return _weaker(found[0], Confidence.MEDIUM) if found else None

    def _chosen(self, node: ast.IfExp, scope: Scope, given: Arguments, depth: int) -> Known | None:
        """One of the two is likely enough to be told as a hint."""
        found = [self.value(one, scope, given, depth) for one in (node.body, node.orelse)]
        agreed = _agreed([known for known in found if known is not None])
        return _weaker(agreed, Confidence.LOW if None in found else agreed.confidence) if agreed else None

    def _call(self, node: ast.Call, scope: Scope, given: Arguments, depth: int) -> Known | None:
        name = self._code.qualified(node.func, scope)
        values = [self.value(argument, scope, given, depth) for argument in node.args[:3]]
        if name in ("int", "float", "str") and len(values) == 1 and values[0] is not None:
            return _converted(name, values[0])
        if name in ("os.environ.get", "os.getenv") and len(values) == 2 and values[1] is not None:
            return _weaker(values[1], Confidence.MEDIUM, is_option=True)
        if name == "os.path.join" and values and all(v is not None and isinstance(v.value, str) for v in values):
            path = "/".join(str(v.value) for v in values if v is not None)
            return Known(path, values[0].site if values[0] else scope.unit.site(node.lineno), Confidence.MEDIUM)
        if name == "getattr" and len(node.args) >= 2 and values[1] is not None:
            return self.named(str(values[1].value), scope.unit.name, depth)
        if name == "len" and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
            return Known(len(node.args[0].elts), scope.unit.site(node.lineno), Confidence.HIGH)
        if (
            name in ("min", "max")
            and len(node.args) == 2
            and all(v is not None and v.number is not None for v in values)
        ):
            pick = min if name == "min" else max
            return pick((v for v in values if v is not None), key=lambda v: v.number or 0.0)
        return None


def _computed(op: ast.operator, left: Literal, right: Literal) -> int | float | None:
    compute = _OPERATORS.get(type(op))
    if compute is None or isinstance(left, str) or isinstance(right, str):
        return None
    if isinstance(op, ast.Pow) and (abs(right) > _POWER or abs(left) > LARGEST):
        return None
    try:
        result = compute(left, right)
    except (ArithmeticError, ValueError, TypeError):
        return None
    return result if isinstance(result, (int, float)) and abs(result) <= LARGEST else None


def _converted(name: str, known: Known) -> Known | None:
    try:
        value: Literal = {"int": int, "float": float, "str": str}[name](known.value)
    except (ValueError, OverflowError):
        return None
    if not isinstance(value, str) and not abs(value) <= LARGEST:
        return None
    return Known(value, known.site, known.confidence, known.is_option)


def _agreed(found: Sequence[Known]) -> Known | None:
    """The first; a hint only, if others differ."""
    if not found:
        return None
    first = found[0]
    return first if all(one.value == first.value for one in found) else _weaker(first, Confidence.LOW)


def _weaker(known: Known, ceiling: Confidence, is_option: bool = False) -> Known:
    confidence = max(known.confidence, ceiling, key=lambda c: c.rank)
    return Known(known.value, known.site, confidence, known.is_option or is_option)


_LOOKS: Mapping[type, Callable[..., Known | None]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Subscript: Evaluator._subscript,
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary,
    ast.BoolOp: Evaluator._either,
    ast.IfExp: Evaluator._chosen,
    ast.Call: Evaluator._call,
}
