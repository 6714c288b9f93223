"""Parameters of a Keras model that is a plain list of layers: shapes are followed from the input on."""

import ast
import math
from collections.abc import Callable, Mapping, Sequence

from crucible.core.router.code import Code
from crucible.core.router.facts import Scope
from crucible.core.router.layers import Size

Shape = tuple[float, ...]

_SAME_SHAPE = frozenset({
    "Dropout", "Activation", "ReLU", "LeakyReLU", "Softmax", "Rescaling", "RandomFlip", "RandomRotation", "RandomZoom",
    "SpatialDropout2D", "GaussianNoise", "Masking",
})  # fmt: skip


def sequential(code: Code, layers: Sequence[ast.expr], scope: Scope) -> Size:
    """`unknown` counts the layers from the first on whose input cannot be told."""
    total, shape = Size(), None
    for node in layers:
        if not isinstance(node, ast.Call):
            continue
        layer = _Layer(code, node, scope)
        shape = layer.shape_argument() or shape
        if layer.kind in ("Input", "InputLayer"):
            continue
        if shape is None and layer.kind not in _SAME_SHAPE:
            total += Size(0.0, 1, 1)
            continue
        size, shape = layer.applied(shape)
        total += size
    return total


class _Layer:
    def __init__(self, code: Code, node: ast.Call, scope: Scope) -> None:
        self._code, self._node, self._scope = code, node, scope
        self.kind = code.qualified(node.func, scope).rpartition(".")[2]

    def shape_argument(self) -> Shape | None:
        for name in ("input_shape", "shape", "batch_input_shape"):
            node = self._keyword(name)
            if node is None and self.kind == "Input" and self._node.args:
                node = self._node.args[0]
            if isinstance(node, (ast.Tuple, ast.List)):
                values = [self._code.constants.number(one, self._scope) for one in node.elts]
                numbers = [value.number for value in values if value is not None and value.number is not None]
                return tuple(numbers) if len(numbers) == len(values) and values else None
        return None

    def applied(self, shape: Shape | None) -> tuple[Size, Shape | None]:
        """Its parameters on an input of that shape, and the shape of its output."""
        if shape is None or self.kind in _SAME_SHAPE:
            return Size(), shape
        rule = _RULES.get(self.kind)
        return rule(self, shape) if rule is not None else (Size(0.0, 1, 1), None)

    def _dense(self, shape: Shape) -> tuple[Size, Shape | None]:
        units = self._number("units", 0)
        if units is None:
            return Size(0.0, 1, 1), None
        return Size(shape[-1] * units + units, 1), (*shape[:-1], units)

    def _convolution(self, shape: Shape) -> tuple[Size, Shape | None]:
        filters, kernel = self._number("filters", 0), self._pair("kernel_size", 1)
        if filters is None or kernel is None or len(shape) != 3:
            return Size(0.0, 1, 1), None
        strides = self._pair("strides", 2) or (1.0, 1.0)
        bias = self._keyword("use_bias")
        has_bias = not (isinstance(bias, ast.Constant) and bias.value is False)
        count = kernel[0] * kernel[1] * shape[2] * filters + (filters if has_bias else 0)
        return Size(count, 1), (*self._slid(shape, kernel, strides), filters)

    def _pooling(self, shape: Shape) -> tuple[Size, Shape | None]:
        size = self._pair("pool_size", 0) or (2.0, 2.0)
        if len(shape) != 3:
            return Size(), None
        return Size(), (*self._slid(shape, size, self._pair("strides", 1) or size), shape[2])

    def _flatten(self, shape: Shape) -> tuple[Size, Shape | None]:
        return Size(), (math.prod(shape),)

    def _global_pooling(self, shape: Shape) -> tuple[Size, Shape | None]:
        return Size(), shape[-1:]

    def _batch_norm(self, shape: Shape) -> tuple[Size, Shape | None]:
        return Size(4 * shape[-1], 1), shape

    def _layer_norm(self, shape: Shape) -> tuple[Size, Shape | None]:
        return Size(2 * shape[-1], 1), shape

    def _embedding(self, shape: Shape) -> tuple[Size, Shape | None]:
        entries, dim = self._number("input_dim", 0), self._number("output_dim", 1)
        if entries is None or dim is None:
            return Size(0.0, 1, 1), None
        return Size(entries * dim, 1), (*shape, dim)

    def _lstm(self, shape: Shape) -> tuple[Size, Shape | None]:
        units = self._number("units", 0)
        if units is None:
            return Size(0.0, 1, 1), None
        keeps = self._keyword("return_sequences")
        is_kept = isinstance(keeps, ast.Constant) and keeps.value is True
        return Size(4 * (units * (shape[-1] + units) + units), 1), (*shape[:-1], units) if is_kept else (units,)

    def _slid(self, shape: Shape, window: Shape, strides: Shape) -> Shape:
        padding = self._keyword("padding")
        is_same = isinstance(padding, ast.Constant) and padding.value == "same"
        sides = zip(shape[:2], window, strides, strict=True)
        return tuple(
            math.ceil(side / max(step, 1)) if is_same else max(1, math.floor((side - size) / max(step, 1)) + 1)
            for side, size, step in sides
        )

    def _keyword(self, name: str) -> ast.expr | None:
        return next((keyword.value for keyword in self._node.keywords if keyword.arg == name), None)

    def _argument(self, name: str, position: int) -> ast.expr | None:
        given = self._keyword(name)
        if given is None and position < len(self._node.args):
            return self._node.args[position]
        return given

    def _number(self, name: str, position: int) -> float | None:
        known = self._code.constants.number(self._argument(name, position), self._scope)
        return known.number if known else None

    def _pair(self, name: str, position: int) -> Shape | None:
        node = self._argument(name, position)
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2:
            values = [self._code.constants.number(one, self._scope) for one in node.elts]
            numbers = [value.number for value in values if value is not None and value.number is not None]
            return tuple(numbers) if len(numbers) == 2 else None
        known = self._code.constants.number(node, self._scope)
        return (known.number, known.number) if known and known.number is not None else None


_RULES: Mapping[str, Callable[[_Layer, Shape], tuple[Size, Shape | None]]] = {
    "Dense": _Layer._dense,
    "Conv2D": _Layer._convolution,
    "MaxPooling2D": _Layer._pooling,
    "MaxPool2D": _Layer._pooling,
    "AveragePooling2D": _Layer._pooling,
    "Flatten": _Layer._flatten,
    "GlobalAveragePooling1D": _Layer._global_pooling,
    "GlobalAveragePooling2D": _Layer._global_pooling,
    "GlobalMaxPooling2D": _Layer._global_pooling,
    "BatchNormalization": _Layer._batch_norm,
    "LayerNormalization": _Layer._layer_norm,
    "Embedding": _Layer._embedding,
    "LSTM": _Layer._lstm,
}
