"""Quantised graphs between linear operators, in the forms that runtimes fuse.

Whatever reads quantised numbers becomes an operator on floats between DequantizeLinear and
QuantizeLinear. What else a runtime wants differs:

- ONNX Runtime fuses a layer whose data and result are both uint8, and a matrix product with a bias
  where all zero points are written. A sum fuses if both sides are quantised, so the result of a
  convolution in front of one is quantised too.
- TensorRT takes int8 with zero points of zero, biases as floats, and adds a residual to the sums of
  a convolution, whose result therefore stays as it is.

Sources: the selectors of ONNX Runtime's QDQ transformer, as what it made of nets showed, and
TensorRT's guide on explicit quantisation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, Tuple, Var, call, called_name
from serde.relay.ir.leaves import known_dtype
from serde.relay.ir.visit import children, post_order, rewrite_function, use_counts
from serde.relay.transform import FunctionPass

__all__ = ["LevelsAsPairs", "SignedPairs", "SumsBetweenPairs", "UnsignedPairs", "loses_levels"]

_QUANTIZE: Final = "serde.quantize_linear"
_DEQUANTIZE: Final = "serde.dequantize_linear"
_BYTES: Final = ("int8", "uint8")
_MOVES: Final = (
    "nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.global_max_pool2d", "nn.batch_flatten",
    "reshape", "transpose", "squeeze", "expand_dims", "strided_slice",
)  # fmt: skip
"""Operators whose results are some of the numbers that they are given."""

_MEANS: Final = (
    "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.global_avg_pool2d",
    "nn.adaptive_avg_pool2d", "nn.sum_pool2d", "divide",
)  # fmt: skip
_CONVOLUTIONS: Final = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_MATRIX_PRODUCTS: Final = ("nn.matmul", "nn.dense", "nn.batch_matmul")
_PRODUCTS: Final = (*_CONVOLUTIONS, *_MATRIX_PRODUCTS)
_MIDDLE: Final = 128
"""Level of uint8 that stands for zero of int8."""


def _is_zero(point: Expr) -> bool:
    """Whether a zero point is left out, or is zero."""
    if isinstance(point, Tuple):
        return not point.fields
    return isinstance(point, Constant) and not point.data.any()


def _scale(node: Expr) -> float | None:
    """Return the scale of activations that were quantised with one, and around level zero."""
    if (
        called_name(node) != _QUANTIZE
        or not isinstance(node, Call)
        or known_dtype(node) not in _BYTES
    ):
        return None
    scale, zero = node.args[1], node.args[2]
    plain = node.attrs["precision"] is None and not node.attrs["block_size"]
    if not plain or not isinstance(scale, Constant) or scale.data.size != 1 or not _is_zero(zero):
        return None
    return float(scale.data.item())


def _real(node: Expr, scale: float, zero: int = 0) -> Expr:
    """Return the numbers that activations stand for."""
    point = Constant(np.array(zero, known_dtype(node)))
    return call(_DEQUANTIZE, node, relay.const(np.float32(scale)), point, axis=0, span=node.span)


def _levels(real: Expr, scale: float, dtype: str, like: Expr, zero: int = 0) -> Expr:
    """Return numbers quantised, under the name of `like`."""
    point = Constant(np.array(zero, dtype))
    step = relay.const(np.float32(scale))
    return call(_QUANTIZE, real, step, point, axis=0, out_dtype=dtype, span=like.span)


def loses_levels(function: Function) -> bool:
    """Whether some activations are uint8, which int8 holds with half the levels."""
    return any(
        _scale(node) is not None and known_dtype(node) == "uint8" for node in use_counts(function)
    )


class LevelsAsPairs(FunctionPass):
    """Write operators on quantised numbers on floats, each result quantised by its own scale.

    The numbers stay the same but for means, whose scale rounds. A product whose data were taken
    for levels, and whose weight had the scale of both, gets the two scales.
    """

    name: ClassVar[str] = "LevelsAsPairs"

    def transform(self, function: Function) -> Function:
        """Rewrite bottom-up, so that what an operator reads is quantised right before it."""
        return rewrite_function(function, lambda _old, new: _as_pair(new))


def _as_pair(node: Expr) -> Expr:
    if not isinstance(node, Call):
        return node
    name = called_name(node)
    if name == _QUANTIZE:
        return _mean_pair(node)
    if name in _PRODUCTS:
        return _with_own_scales(node)
    if known_dtype(node) not in _BYTES or not node.args:
        return node
    if name == "concatenate":
        return _joined_pair(node)
    data = node.args[0]
    scale = _scale(data)
    if scale is None:
        return node
    real: Expr
    if name in _MOVES:
        real = call(name, _real(data, scale), *node.args[1:], span=node.span, **node.attrs)
    elif name == "maximum" and _is_zero(node.args[1]):
        real = relay.nn.relu(_real(data, scale))
    elif name == "cast" and isinstance(data, Call) and called_name(data.args[0]) == "nn.relu":
        real = _real(data, scale)
    else:
        return node
    return _levels(real, scale, known_dtype(node), node)


def _mean_pair(node: Call) -> Expr:
    """Return a mean of levels that was rounded to levels as a mean of what they stand for."""
    if _scale(node) != 1.0 or called_name(node.args[0]) not in _MEANS:
        return node
    path = [node.args[0]]
    while isinstance(path[-1], Call) and called_name(path[-1]) in _MEANS:
        path.append(path[-1].args[0])
    inner = path.pop()
    levels = inner.args[0] if isinstance(inner, Call) and called_name(inner) == "cast" else inner
    scale = _scale(levels)
    if scale is None or known_dtype(levels) != known_dtype(node):
        return node
    real = _real(levels, scale)
    for each in reversed(path):
        if isinstance(each, Call):
            real = call(called_name(each), real, *each.args[1:], span=each.span, **each.attrs)
    return _levels(real, scale, known_dtype(node), node)


def _joined_pair(node: Call) -> Expr:
    (group,) = node.args
    fields = group.fields if isinstance(group, Tuple) else ()
    scales = {_scale(each) for each in fields}
    (scale,) = scales if len(scales) == 1 else (None,)
    if scale is None:
        return node
    real = relay.concatenate([_real(each, scale) for each in fields], axis=node.attrs["axis"])
    return _levels(real, scale, known_dtype(node), node)


def _with_own_scales(node: Call) -> Expr:
    """Return a product whose data have their scale, and whose weight no more than its own."""
    data, weight = node.args[0], node.args[1]
    if called_name(data) != _DEQUANTIZE or called_name(weight) != _DEQUANTIZE:
        return node
    if not isinstance(data, Call) or not isinstance(weight, Call):
        return node
    levels, unit = data.args[0], data.args[1]
    scale = _scale(levels)
    if scale in (None, 1.0) or not isinstance(unit, Constant) or unit.data.item() != 1.0:
        return node
    held, both, zero = weight.args
    own = relay.divide(both, relay.const(np.float32(scale)))
    narrow = call(_DEQUANTIZE, held, own, zero, span=weight.span, **weight.attrs)
    real = _real(levels, float(scale or 1.0))
    return call(called_name(node), real, narrow, *node.args[2:], span=node.span, **node.attrs)


class SumsBetweenPairs(FunctionPass):
    """Quantise the results of products that are added to something, as ONNX Runtime wants it.

    The source rounds the sum only. What a side must hold follows from the range of the result and
    that of the other side: beyond, the result is at the end of its range whatever the side is. So
    nothing is cut off, and the side is rounded to 255 levels of that.
    """

    name: ClassVar[str] = "SumsBetweenPairs"

    def transform(self, function: Function) -> Function:
        """Rewrite each quantisation of a sum."""
        uses = use_counts(function)

        def replace(old: Expr, new: Expr) -> Expr:
            scale = _scale(new)
            if scale is None or not isinstance(new, Call) or not isinstance(old, Call):
                return new
            return _sum_pair(old, new, scale, uses) or new

        return rewrite_function(function, replace)


def _sum_pair(old: Call, node: Call, scale: float, uses: Mapping[Expr, int]) -> Expr | None:
    total, before = node.args[0], old.args[0]
    is_positive = known_dtype(node) == "uint8"
    has_relu = called_name(total) == "nn.relu"
    if has_relu and isinstance(total, Call) and isinstance(before, Call):
        total, before = total.args[0], before.args[0]
    if called_name(total) != "add" or not isinstance(total, Call) or not isinstance(before, Call):
        return None
    for place in (0, 1):
        side, other = total.args[place], total.args[1 - place]
        reach = _reach(other)
        if reach is None or not _is_product(side) or uses[before.args[place]] != 1:
            continue
        limits = np.iinfo(known_dtype(node))
        low = 0.0 if has_relu or is_positive else float(limits.min) * scale
        pair = _unsigned_pair(side, low - reach[1], float(limits.max) * scale - reach[0])
        sides = (pair, other) if place == 0 else (other, pair)
        real: Expr = call("add", *sides, span=total.span)
        real = relay.nn.relu(real) if has_relu else real
        return _levels(real, scale, known_dtype(node), node)
    return None


def _is_product(node: Expr) -> bool:
    if called_name(node) in ("nn.bias_add", "add") and isinstance(node, Call):
        node = node.args[0]
    return called_name(node) in _PRODUCTS


def _reach(node: Expr) -> tuple[float, float] | None:
    """Return the range of dequantised activations."""
    if called_name(node) != _DEQUANTIZE or not isinstance(node, Call):
        return None
    levels, scale, zero = node.args
    if known_dtype(levels) not in _BYTES or not isinstance(scale, Constant) or scale.data.size != 1:
        return None
    if not _is_zero(zero):
        return None
    limits, step = np.iinfo(known_dtype(levels)), float(scale.data.item())
    return limits.min * step, limits.max * step


def _unsigned_pair(side: Expr, low: float, high: float) -> Expr:
    """Return numbers rounded to levels of uint8 between two ends, of which one is a level."""
    step = float(np.float32((high - low) / 255))
    zero = int(np.clip(np.rint(-low / step), 0, 255))
    return _real(_levels(side, step, "uint8", side, zero), step, zero)


@dataclass(frozen=True)
class UnsignedPairs(FunctionPass):
    """Hold all activations as uint8, those of int8 around the level 128; write all zero points.

    The numbers stay the same.

    Attributes:
        weights: Names of the variables that are weights.
    """

    name: ClassVar[str] = "UnsignedPairs"

    weights: frozenset[str]

    def transform(self, function: Function) -> Function:
        """Rewrite dequantisations, with what quantises for nothing else."""
        return _with_other_levels(function, self.weights, "int8", _as_unsigned, _with_zero_point)


Levels = Callable[[Call, float], tuple[Expr, float, int]]


def _with_other_levels(
    function: Function,
    weights: frozenset[str],
    dtype: str,
    change: Levels,
    finish: Callable[[Expr], Expr],
) -> Function:
    """Return a function whose activations of one dtype have other levels.

    Args:
        function: The function.
        weights: Names of the variables that are weights.
        dtype: The dtype.
        change: Returns for a quantisation and its scale another one, how many times as large its
            scale is, and its zero point.
        finish: Rewrites all other dequantisations.
    """
    activations = _activations(function, weights)
    made: dict[Expr, tuple[Expr, float, int]] = {}

    def replace(old: Expr, new: Expr) -> Expr:
        if (
            not isinstance(new, Call)
            or not isinstance(old, Call)
            or called_name(new) != _DEQUANTIZE
        ):
            return new
        levels = new.args[0]
        scale = _scale(levels)
        if scale is None or known_dtype(levels) != dtype or old.args[0] not in activations:
            return finish(new)
        if levels not in made and isinstance(levels, Call):
            made[levels] = change(levels, scale)
        other, factor, zero = made[levels]
        own = _scaled(new.args[1], factor)
        shape = own.type.concrete_shape if isinstance(own.type, TensorType) else None
        if shape is None:
            return new
        point = Constant(np.full(shape, zero, known_dtype(other)))
        return finish(call(_DEQUANTIZE, other, own, point, span=new.span, **new.attrs))

    return rewrite_function(function, replace)


def _as_unsigned(node: Call, scale: float) -> tuple[Expr, float, int]:
    return _levels(node.args[0], scale, "uint8", node, _MIDDLE), 1.0, _MIDDLE


def _scaled(scale: Expr, factor: float) -> Expr:
    """Return a scale that is larger; that of numbers ranged at run time is computed."""
    if factor == 1.0:
        return scale
    if isinstance(scale, Constant):
        return Constant((scale.data.astype(np.float64) * factor).astype(np.float32))
    return relay.multiply(scale, relay.const(np.float32(factor)))


def _activations(function: Function, weights: frozenset[str]) -> set[Expr]:
    """Return what depends on an input, and is read by dequantisations alone."""
    found: set[Expr] = set()
    read: set[Expr] = {function.body}
    for node in post_order(function.body):
        if isinstance(node, Var):
            is_input = node.name_hint not in weights
        else:
            is_input = any(child in found for child in children(node))
        if is_input:
            found.add(node)
        if not isinstance(node, Call) or called_name(node) != _DEQUANTIZE:
            read.update(children(node))
    return found - read


def _with_zero_point(node: Expr) -> Expr:
    """Return a dequantisation with its zero point also where that is zero."""
    if not isinstance(node, Call):
        return node
    levels, scale, zero = node.args
    shape = scale.type.concrete_shape if isinstance(scale.type, TensorType) else None
    if known_dtype(levels) not in _BYTES or not isinstance(zero, Tuple) or shape is None:
        return node
    point = Constant(np.zeros(shape, known_dtype(levels)))
    return call(_DEQUANTIZE, levels, scale, point, span=node.span, **node.attrs)


@dataclass(frozen=True)
class SignedPairs(FunctionPass):
    """Hold all activations as int8 around zero, zero points left out, and biases as floats.

    Those of uint8 keep the end of their range and half of their levels.

    Attributes:
        weights: Names of the variables that are weights.
    """

    name: ClassVar[str] = "SignedPairs"

    weights: frozenset[str]

    def transform(self, function: Function) -> Function:
        """Rewrite dequantisations, with what quantises for nothing else."""
        return _with_other_levels(function, self.weights, "uint8", _as_signed, _without_zero_point)


def _as_signed(node: Call, scale: float) -> tuple[Expr, float, int]:
    """Return levels of int8; what cut numbers below zero off, as uint8 does, is written."""
    factor = 255 / 127
    real = node.args[0]
    real = real if _is_not_negative(real) else relay.nn.relu(real)
    return _levels(real, scale * factor, "int8", node), factor, 0


def _is_not_negative(real: Expr) -> bool:
    """Whether numbers are known to be zero or more."""
    name = called_name(real)
    if name == "nn.relu":
        return True
    if not isinstance(real, Call):
        return isinstance(real, Tuple) and all(map(_is_not_negative, real.fields))
    if name in (*_MOVES, *_MEANS, "concatenate"):
        return _is_not_negative(real.args[0])
    if name != _DEQUANTIZE or _scale(real.args[0]) is None or not isinstance(real.args[0], Call):
        return False
    return known_dtype(real.args[0]) == "uint8" or _is_not_negative(real.args[0].args[0])


def _without_zero_point(node: Expr) -> Expr:
    """Return a dequantisation without a zero point that is zero; of a bias, its floats."""
    if not isinstance(node, Call):
        return node
    levels, scale, zero = node.args
    if known_dtype(levels) == "int32" and _is_zero(zero):
        return relay.multiply(relay.cast(levels, "float32"), scale)
    if known_dtype(levels) not in _BYTES or not _is_zero(zero) or isinstance(zero, Tuple):
        return node
    return call(_DEQUANTIZE, levels, scale, None, span=node.span, **node.attrs)
