"""Arithmetic of two tensors; integers are compared as scalars where these tell the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.nnef.model import Argument, Operation, Ref
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Constant, Expr, TensorType, call, is_float, tensor_type
from serde.relay.op.elementwise.unary import clip_limits
from serde.walk.takes import Takes, of_dtypes

__all__ = [
    "are_integers", "emit_binary", "export_binary", "import_binary", "is_number", "join_root",
    "narrow_as_scalars", "operands",
]  # fmt: skip


def join_root(ctx: Export, data: Value) -> Value | None:
    """Return ``sqrt(sqr(x) + epsilon)`` as one fragment."""
    total = ctx.producer(data, "add")
    square = None if total is None else ctx.producer(total.inputs["x"], "sqr")
    if total is None or square is None or not isinstance(total.inputs["y"], float):
        return None
    return ctx.emit("softabs", *operands(square), epsilon=total.inputs["y"])


def _join_division(ctx: Export, lhs: Value, rhs: Value) -> Value | None:
    """Return a softmax over several axes, or a tensor divided by its length, as one fragment."""
    if not lhs.name or not rhs.name:
        return None
    return _join_softmax(ctx, lhs, rhs) or _join_unit(ctx, lhs, rhs)


def _join_softmax(ctx: Export, lhs: Value, rhs: Value) -> Value | None:
    total, power = ctx.producer(rhs, "sum_reduce"), ctx.producer(lhs, "exp")
    if total is None or power is None or total.inputs["input"] != Ref(lhs.name):
        return None
    shifted = ctx.producer(power.inputs["x"], "sub")
    most = None if shifted is None else ctx.producer(shifted.inputs["y"], "max_reduce")
    if shifted is None or most is None or most.inputs["input"] != shifted.inputs["x"]:
        return None
    axes = _summed_axes(total)
    if axes is None or axes != list(most.attributes["axes"]):
        return None
    return ctx.emit("softmax", *operands(most), axes=axes)


def _join_unit(ctx: Export, lhs: Value, rhs: Value) -> Value | None:
    """``x / max(length + bias, epsilon)``."""
    bound = ctx.producer(rhs, "max")
    if bound is None or not isinstance(bound.inputs["y"], float):
        return None
    length, bias = _without_bias(ctx, bound.inputs["x"])
    root = ctx.producer(length, "sqrt")
    total = ctx.producer(length if root is None else root.inputs["x"], "sum_reduce")
    axes = None if total is None else _summed_axes(total)
    if total is None or axes is None:
        return None
    terms = ctx.producer(total.inputs["input"], "abs" if root is None else "sqr")
    if terms is None or terms.inputs["x"] != Ref(lhs.name):
        return None
    op = "l1_normalization" if root is None else "l2_normalization"
    return ctx.emit(op, lhs, axes=axes, bias=bias, epsilon=bound.inputs["y"])


def _without_bias(ctx: Export, length: Argument) -> tuple[Argument, float]:
    """Return a tensor and the number that was added to it."""
    moved = ctx.producer(length, "add")
    if moved is None or not isinstance(moved.inputs["y"], float):
        return length, 0.0
    return moved.inputs["x"], moved.inputs["y"]


def _summed_axes(reduction: Operation) -> list[int] | None:
    """Return the axes of a sum, None of a mean."""
    return None if reduction.attributes.get("normalize") else list(reduction.attributes["axes"])


def operands(operation: Operation) -> list[Value]:
    """Return the tensors that an assignment reads."""
    return [Value(each.name) for each in operation.operands() if isinstance(each, Ref)]


_EXACT: Final = 2**24
"""float32 holds all whole numbers up to this one."""

_NARROW: Final = ("int8", "uint8", "int16", "uint16")

SCALARS = of_dtypes("floats and bool", lambda dtype: is_float(dtype) or dtype == "bool")


def are_integers(node: Call) -> bool:
    """Whether the first operand of a call holds integers."""
    type_ = node.args[0].type
    return isinstance(type_, TensorType) and type_.dtype != "bool" and not is_float(type_.dtype)


def narrow_as_scalars(x: Expr) -> Expr:
    """Return integers as scalars that are all exact."""
    dtype = tensor_type(x).dtype
    if dtype not in _NARROW:
        raise Unsupported(
            f"NNEF has no arithmetic of integers, and scalars do not hold every {dtype}",
            hint="cast to float32 before if all values are below 2**24",
        )
    return relay.cast(x, "float32")


def _as_scalars(lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """Return integers as scalars that compare alike.

    However scalars round a number beyond what they hold, it stays on its side of one that they do.
    """
    sides = (lhs, rhs)
    narrow = all(tensor_type(each).dtype in _NARROW for each in sides)
    if not narrow and not any(map(_is_small, sides)):
        raise Unsupported(
            f"NNEF compares scalars only, which do not hold every {tensor_type(lhs).dtype}",
            hint="cast to float32 before if all values are below 2**24",
        )
    return relay.cast(lhs, "float32"), relay.cast(rhs, "float32")


def _is_small(x: Expr) -> bool:
    """Whether a constant and its neighbours are whole numbers that scalars hold."""
    if not isinstance(x, Constant):
        return False
    return not x.data.size or max(abs(int(x.data.min())), abs(int(x.data.max()))) < _EXACT


def _expand_comparison(lhs: Expr, rhs: Expr, *, build: Callable[[Expr, Expr], Expr]) -> Expr:
    return build(*_as_scalars(lhs, rhs))


for _name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
    OPS.expands(_name)(partial(_expand_comparison, build=getattr(relay, _name)))


@OPS.expands("maximum")
def expand_maximum(lhs: Expr, rhs: Expr) -> Expr:
    """The side that is selected stays an integer."""
    return relay.where(relay.greater(*_as_scalars(lhs, rhs)), lhs, rhs)


@OPS.expands("minimum")
def expand_minimum(lhs: Expr, rhs: Expr) -> Expr:
    """The side that is selected stays an integer."""
    return relay.where(relay.less(*_as_scalars(lhs, rhs)), lhs, rhs)


@OPS.expands("clip")
def expand_clip(a: Expr, *, a_min: float, a_max: float) -> Expr:
    """A bound that the dtype has anyway is left out."""
    dtype = tensor_type(a).dtype
    low, high = clip_limits(np.dtype(dtype), a_min, a_max)
    if low > np.iinfo(dtype).min:
        a = relay.maximum(a, relay.const(low, dtype))
    return relay.minimum(a, relay.const(high, dtype)) if high < np.iinfo(dtype).max else a


OPS.refuses_calls(
    "fixed_point_multiply", "fixed_point_multiply_per_axis", "left_shift", "reinterpret",
    "right_shift", "unravel_index", reason="NNEF has no arithmetic of integers and their bits",
)  # fmt: skip


BINARY: Final = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "min": "minimum",
    "max": "maximum",
}
"""Fragments of two tensors, and Relay's operators."""


def import_binary(ctx: Import, x: Expr, y: Expr, *, target: str) -> Expr:
    """Read a fragment of two tensors, which NNEF broadcasts from the first axis on."""
    return call(target, *ctx.align(x, y))


for _name, _target in BINARY.items():
    OPS.imports(_name)(partial(import_binary, target=_target))


def emit_binary(ctx: Export, op: str, x: Value, y: Value) -> Value:
    """Write a fragment of two tensors, which Relay broadcasts from the last axis on.

    One of them needs no axes of 1 behind its own where the other has them.
    """
    x, y = ctx.align(x, y)
    if ctx.type(x).rank == ctx.type(y).rank:
        short = _without_trailing(ctx, x)
        x, y = (x, _without_trailing(ctx, y)) if short is x else (short, y)
    return ctx.emit(op, x, y)


def _without_trailing(ctx: Export, x: Value) -> Value:
    """Return a tensor without axes of 1 that were added behind its own."""
    added = ctx.producer(x, "unsqueeze")
    if added is None or x.type is None:
        return x
    axes, rank = list(added.attributes["axes"]), ctx.type(x).rank
    trailing = list(range(rank - len(axes), rank))
    return operands(added)[0] if axes == trailing and len(axes) < rank else x


def is_number(x: Value, value: float) -> bool:
    """Whether a value is that number, as a scalar."""
    return x.data is not None and not x.data.ndim and x.data.item() == value


def export_binary(ctx: Export, lhs: Value, rhs: Value, *, op: str) -> Value:
    """Write a call of two tensors."""
    return emit_binary(ctx, op, lhs, rhs)


for _name in ("add", "sub", "pow"):
    OPS.exports(BINARY[_name])(partial(export_binary, op=_name))


@OPS.exports("multiply")
def export_multiply(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if lhs.name and lhs.name == rhs.name:
        return ctx.emit("sqr", lhs)
    return emit_binary(ctx, "mul", lhs, rhs)


@OPS.exports("divide")
def export_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    if is_number(lhs, 1.0) and is_float(ctx.type(rhs).dtype):
        square = ctx.producer(rhs, "sqr")
        return ctx.emit("rcp", rhs) if square is None else ctx.emit("rsqr", *operands(square))
    return _join_division(ctx, lhs, rhs) or emit_binary(ctx, "div", lhs, rhs)


def _export_extremum(ctx: Export, lhs: Value, rhs: Value, *, op: str, logical: str) -> Value:
    """The greater of two truth values is true where one is."""
    return emit_binary(ctx, logical if ctx.type(lhs).dtype == "bool" else op, lhs, rhs)


OPS.exports("maximum", takes=Takes(lhs=SCALARS))(partial(_export_extremum, op="max", logical="or"))
OPS.exports("minimum", takes=Takes(lhs=SCALARS))(partial(_export_extremum, op="min", logical="and"))


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Export, lhs: Value, rhs: Value) -> Value:
    return ctx.emit("floor", emit_binary(ctx, "div", lhs, rhs))


OPS.refuses_calls(
    "floor_mod",
    "mod",
    "trunc_mod",
    reason="NNEF has no remainder, and a rounded quotient does not give the exact one",
)


@OPS.imports("rcp")
def import_rcp(ctx: Import, x: Expr) -> Expr:
    return relay.divide(ctx.const(1), x)


@OPS.imports("sqr")
def import_sqr(ctx: Import, x: Expr) -> Expr:
    return relay.multiply(x, x)


@OPS.imports("rsqr")
def import_rsqr(ctx: Import, x: Expr) -> Expr:
    return relay.divide(ctx.const(1), relay.multiply(x, x))
