"""Parameters of a model that is written out layer by layer, where the sizes of its layers can be read. Constructors of
the code's own classes are followed with the arguments they get; loops and comprehensions over `range` count."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from crucible.core.router.code import Code
from crucible.core.router.constants import Arguments, Known
from crucible.core.router.facts import ClassFact, Scope
from crucible.core.router.findings import Confidence

_DEPTH = 12
_BASES = 4  # steps up to what a class is made of
# Constructors followed in all: classes that contain each other must end.
_VISITS = 2_000

Numbers = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Size:
    """`unknown` layers could not be read, so that the count is a lower bound."""

    parameters: float = 0.0
    layers: int = 0
    unknown: int = 0
    confidence: Confidence = Confidence.HIGH

    def __add__(self, other: "Size") -> "Size":
        surer = max(self.confidence, other.confidence, key=lambda c: c.rank)
        return Size(self.parameters + other.parameters, self.layers + other.layers, self.unknown + other.unknown, surer)

    def times(self, count: float) -> "Size":
        return Size(self.parameters * count, int(self.layers * count), int(self.unknown * count), self.confidence)


@dataclass(frozen=True, slots=True)
class Layer:
    """How a constructor's arguments become parameters: the names in their order, and the formula."""

    arguments: tuple[str, ...]
    needed: int  # the first so many
    count: Callable[[Numbers], float]


def _linear(a: Numbers) -> float:
    return a["in"] * a["out"] + (a["out"] if a.get("bias", 1) else 0)


def _conv(dimensions: int) -> Callable[[Numbers], float]:
    def count(a: Numbers) -> float:
        kernel = a.get("kernel_volume") or a["kernel"] ** dimensions
        weights = a["in"] * a["out"] * kernel / max(a.get("groups", 1), 1)
        return weights + (a["out"] if a.get("bias", 1) else 0)

    return count


def _recurrent(gates: int) -> Callable[[Numbers], float]:
    def count(a: Numbers) -> float:
        hidden, layers = a["hidden"], int(a.get("layers", 1))
        sides = 2 if a.get("bidirectional", 0) else 1
        first = gates * hidden * (a["in"] + hidden + 2)
        later = gates * hidden * (hidden * sides + hidden + 2)
        return sides * (first + later * (layers - 1))

    return count


def _attention(a: Numbers) -> float:
    return 4 * a["dim"] * a["dim"] + 4 * a["dim"]


def _encoder_layer(a: Numbers) -> float:
    dim, wide = a["dim"], a.get("feedforward", 2048)
    return _attention(a) + 2 * dim * wide + wide + dim + 4 * dim


def _decoder_layer(a: Numbers) -> float:
    return _encoder_layer(a) + _attention(a) + 2 * a["dim"]


_CONV_ARGUMENTS = ("in", "out", "kernel", "stride", "padding", "dilation", "groups", "bias")
_RNN_ARGUMENTS = ("in", "hidden", "layers", "bias", "batch_first", "dropout", "bidirectional")

LAYERS: Mapping[str, Layer] = {
    "Linear": Layer(("in", "out", "bias"), 2, _linear),
    "Embedding": Layer(("in", "out"), 2, lambda a: a["in"] * a["out"]),
    "EmbeddingBag": Layer(("in", "out"), 2, lambda a: a["in"] * a["out"]),
    "Conv1d": Layer(_CONV_ARGUMENTS, 3, _conv(1)),
    "Conv2d": Layer(_CONV_ARGUMENTS, 3, _conv(2)),
    "Conv3d": Layer(_CONV_ARGUMENTS, 3, _conv(3)),
    "ConvTranspose2d": Layer(
        ("in", "out", "kernel", "stride", "padding", "output_padding", "groups", "bias"), 3, _conv(2)
    ),
    "BatchNorm1d": Layer(("out",), 1, lambda a: 2 * a["out"]),
    "BatchNorm2d": Layer(("out",), 1, lambda a: 2 * a["out"]),
    "LayerNorm": Layer(("out",), 1, lambda a: 2 * a["out"]),
    "RMSNorm": Layer(("out",), 1, lambda a: a["out"]),
    "GroupNorm": Layer(("groups", "out"), 2, lambda a: 2 * a["out"]),
    "LSTM": Layer(_RNN_ARGUMENTS, 2, _recurrent(4)),
    "GRU": Layer(_RNN_ARGUMENTS, 2, _recurrent(3)),
    "RNN": Layer(_RNN_ARGUMENTS, 2, _recurrent(1)),
    "MultiheadAttention": Layer(("dim", "heads"), 1, _attention),
    "TransformerEncoderLayer": Layer(("dim", "heads", "feedforward"), 1, _encoder_layer),
    "TransformerDecoderLayer": Layer(("dim", "heads", "feedforward"), 1, _decoder_layer),
}
# What torch calls the arguments above.
_TORCH_NAMES: Mapping[str, str] = {
    "in_features": "in", "out_features": "out", "in_channels": "in", "out_channels": "out", "num_embeddings": "in",
    "embedding_dim": "out", "kernel_size": "kernel", "num_features": "out", "normalized_shape": "out",
    "num_channels": "out", "num_groups": "groups", "input_size": "in", "hidden_size": "hidden", "num_layers": "layers",
    "embed_dim": "dim", "d_model": "dim", "dim_feedforward": "feedforward", "nhead": "heads", "num_heads": "heads",
    "bias": "bias", "groups": "groups", "bidirectional": "bidirectional",
}  # fmt: skip
_MODULES = (
    "torch.nn.Module",
    "nn.Module",
    "lightning.LightningModule",
    "pytorch_lightning.LightningModule",
    "lightning.pytorch.LightningModule",
)


class Counter:
    def __init__(self, code: Code) -> None:
        self._code = code
        self._left = _VISITS

    def is_module(self, name: str, depth: int = 0) -> bool:
        """A class of the code that is a model or a part of one, directly or through its bases."""
        fact = self._code.classes.get(name)
        if fact is None or depth > _BASES:
            return False
        return any(
            base in _MODULES or base.endswith(".Module") or self.is_module(base.rpartition(".")[2], depth + 1)
            for base in fact.bases
        )

    def constructed(self, node: ast.Call, scope: Scope, given: Arguments | None = None, depth: int = 0) -> Size:
        """What one constructor call makes."""
        name = self._code.qualified(node.func, scope)
        last = name.rpartition(".")[2]
        if self.is_module(last):
            return self._own_class(self._code.classes[last], node, scope, given or {}, depth)
        layer = LAYERS.get(last) if name.startswith(("torch.nn.", "flax.linen.")) else None
        inner = self._inner(node, scope, given or {}, depth)
        return inner if layer is None else inner + self._layer(layer, node, scope, given or {})

    def _inner(self, node: ast.Call, scope: Scope, given: Arguments, depth: int) -> Size:
        """Layers among the arguments: Sequential(Linear(…), …), ModuleDict(dict(wte=…))."""
        total = Size()
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            total += self.within(argument, scope, given, depth + 1)
            if isinstance(argument, ast.Starred) and not isinstance(
                argument.value, (ast.List, ast.ListComp, ast.Tuple)
            ):
                total += Size(0.0, 0, 1)  # layers that were gathered elsewhere
        return total

    def within(self, node: ast.AST, scope: Scope, given: Arguments, depth: int = 0) -> Size:
        """All layers that a statement or expression makes, loops counted."""
        if depth > _DEPTH or self._left <= 0:
            return Size()
        if isinstance(node, ast.Call):
            return self.constructed(node, scope, given, depth)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.within(node.elt, scope, given, depth + 1).times(
                self._rounds(node.generators[0].iter, scope, given)
            )
        if isinstance(node, ast.For):
            rounds = self._rounds(node.iter, scope, given)
            return self._sum(node.body, scope, given, depth).times(rounds)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            return Size()
        if isinstance(node, ast.If):  # one of two ways; the first is as good a guess as any
            return self._sum(node.body, scope, given, depth)
        return self._sum(list(ast.iter_child_nodes(node)), scope, given, depth)

    def _sum(self, nodes: Sequence[ast.AST], scope: Scope, given: Arguments, depth: int) -> Size:
        total = Size()
        for node in nodes:
            total += self.within(node, scope, given, depth + 1)
        return total

    def _rounds(self, iterable: ast.expr, scope: Scope, given: Arguments) -> float:
        if isinstance(iterable, (ast.List, ast.Tuple)):
            return len(iterable.elts)
        if isinstance(iterable, ast.Call) and iterable.args and self._code.qualified(iterable.func, scope) == "range":
            values = [self._code.constants.number(one, scope, given) for one in iterable.args[:2]]
            numbers = [value.number for value in values if value is not None and value.number is not None]
            if len(numbers) == len(iterable.args[:2]):
                return max(0.0, numbers[-1] - (numbers[0] if len(numbers) == 2 else 0))
        return 1.0

    def _own_class(self, fact: ClassFact, node: ast.Call, scope: Scope, given: Arguments, depth: int) -> Size:
        self._left -= 1
        if fact.init is None or fact.init_scope is None or self._left <= 0 or depth > _DEPTH:
            return Size()
        bound = self._bound(fact.init.args, node, scope, given)
        total = self._sum(fact.init.body, fact.init_scope, bound, depth)
        return total + self._tied(fact, bound)

    def _bound(self, parameters: ast.arguments, node: ast.Call, scope: Scope, given: Arguments) -> dict[str, Known]:
        """Values of the constructor's parameters, defaults included."""
        names = [one.arg for one in (*parameters.posonlyargs, *parameters.args)][1:]
        bound: dict[str, Known] = {}
        pairs: list[tuple[str, ast.expr]] = list(zip(names, node.args, strict=False))
        pairs += [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
        for name, value in pairs:
            known = self._code.constants.value(value, scope, given)
            if known is not None:
                bound[name] = known
        return bound

    def _tied(self, fact: ClassFact, given: Arguments) -> Size:
        """`self.a.weight = self.b.weight`: one of the two is not there."""
        assert fact.init is not None and fact.init_scope is not None
        for node in fact.init.body:
            if not isinstance(node, ast.Assign) or not _is_weight(node.value):
                continue
            if any(_is_weight(target) for target in node.targets):
                size = self._layer_called(_owner(node.value), fact, given)
                size = size if size.layers else self._layer_called(_owner(node.targets[0]), fact, given)
                return Size(-size.parameters, 0, 0, size.confidence)
        return Size()

    def _layer_called(self, name: str, fact: ClassFact, given: Arguments) -> Size:
        assert fact.init is not None and fact.init_scope is not None
        for node in fact.init.body:
            if isinstance(node, ast.Assign) and any(_attribute(target) == name for target in node.targets):
                return self.within(node.value, fact.init_scope, given)
        return Size()

    def _layer(self, layer: Layer, node: ast.Call, scope: Scope, given: Arguments) -> Size:
        numbers, sure = self._numbers(layer, node, scope, given)
        if any(name not in numbers for name in layer.arguments[: layer.needed]):
            return Size(0.0, 1, 1)
        return Size(max(0.0, layer.count(numbers)), 1, 0, sure)

    def _numbers(
        self, layer: Layer, node: ast.Call, scope: Scope, given: Arguments
    ) -> tuple[dict[str, float], Confidence]:
        numbers: dict[str, float] = {}
        sure = Confidence.HIGH
        for name, value in _named(layer, node):
            known = self._code.constants.value(value, scope, given)
            if name == "kernel" and isinstance(value, (ast.Tuple, ast.List)):
                numbers |= self._kernel(value, scope, given)
            elif known is not None and not isinstance(known.value, str):
                numbers[name] = float(known.value)
                sure = max(sure, known.confidence, key=lambda c: c.rank)
        return numbers, sure

    def _kernel(self, value: ast.Tuple | ast.List, scope: Scope, given: Arguments) -> dict[str, float]:
        volume = 1.0
        for one in value.elts:
            known = self._code.constants.number(one, scope, given)
            if known is None or known.number is None:
                return {}
            volume *= known.number
        return {"kernel": 0.0, "kernel_volume": volume}


def _named(layer: Layer, node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    yield from zip(layer.arguments, node.args, strict=False)
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg in _TORCH_NAMES:
            yield _TORCH_NAMES[keyword.arg], keyword.value


def _is_weight(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "weight"


def _owner(node: ast.expr) -> str:
    """`lm_head` of self.lm_head.weight."""
    return node.value.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) else ""


def _attribute(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""
