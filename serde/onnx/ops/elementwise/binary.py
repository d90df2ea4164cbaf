"""Functions of two tensors, and the choice between two."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import (
    cast,
    cast_to_bool,
    compute_dtype,
    emit_where,
    emit_wide,
    retype,
    scalar_like,
)
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call, is_float
from serde.walk.pairs import reads, writes


def _export_arithmetic(ctx: Export, x: Value, y: Value, *, target: str) -> Value:
    return emit_wide(ctx, target, x, y)


for _name, _target in {"add": "Add", "divide": "Div", "multiply": "Mul", "subtract": "Sub"}.items():
    OPS.exports(_name)(partial(_export_arithmetic, target=_target))


def _export_comparison(ctx: Export, x: Value, y: Value, *, target: str) -> Value:
    return ctx.emit(target, _cast_bool(ctx, x), _cast_bool(ctx, y))


def _cast_bool(ctx: Export, x: Value) -> Value:
    """ONNX does not order truth values."""
    return cast(ctx, x, np.int32) if ctx.type(x).dtype == "bool" else x


def _export_logical(ctx: Export, *operands: Value, target: str) -> Value:
    """Relay takes numbers, too, and gives their dtype back."""
    dtype = ctx.type(operands[0]).dtype
    result = ctx.emit(target, *[cast_to_bool(ctx, x) for x in operands])
    return result if dtype == "bool" else cast(ctx, result, dtype)


for _name, _target in {
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
}.items():
    OPS.exports(_name)(partial(_export_logical, target=_target))


@OPS.exports("where")
def export_where(ctx: Export, condition: Value, x: Value, y: Value) -> Value:
    return emit_where(ctx, cast_to_bool(ctx, condition), x, y, ctx.type(x).dtype)


@OPS.exports("power")
def export_power(ctx: Export, x: Value, y: Value) -> Value:
    """Before 12 Pow takes floats only, and never small integers: both go through float64."""
    dtype = ctx.type(x).dtype
    if is_float(dtype) or (dtype in ("int32", "int64") and ctx.version >= 12):
        return ctx.emit("Pow", x, y)
    wide = ctx.emit("Pow", cast(ctx, x, np.float64), cast(ctx, y, np.float64))
    return cast(ctx, wide, dtype)


@OPS.imports("Pow", since=(7, 12, 13, 15))
def import_pow(ctx: Import, x: Expr, y: Expr) -> Expr:
    """The exponent may have a dtype of its own; an integer to a float's power is truncated."""
    dtype, exponent = ctx.type(x).dtype, ctx.type(y).dtype
    if dtype == exponent:
        return relay.power(x, y)
    if is_float(dtype) or not is_float(exponent):
        return relay.power(x, relay.cast(y, dtype))
    return relay.cast(relay.power(relay.cast(x, "float64"), relay.cast(y, "float64")), dtype)


def _export_extremum(ctx: Export, x: Value, y: Value, *, op: str, comparison: str) -> Value:
    """Before 12, Max and Min take floats only; truth values never."""
    dtype = ctx.type(x).dtype
    if dtype == "bool":
        return ctx.emit("Or" if op == "Max" else "And", x, y)
    if ctx.version >= 12 or is_float(dtype):
        return ctx.emit(op, x, y)
    return ctx.emit("Where", ctx.emit(comparison, x, y), x, y)


OPS.exports("maximum")(partial(_export_extremum, op="Max", comparison="Greater"))
OPS.exports("minimum")(partial(_export_extremum, op="Min", comparison="Less"))


@OPS.exports("not_equal")
def export_not_equal(ctx: Export, x: Value, y: Value) -> Value:
    return ctx.emit("Not", ctx.emit("Equal", x, y))


def _make_or_equal_exporters(op: str) -> tuple[Callable[..., Value], Callable[..., Value]]:
    """Return the exporters of a comparison or equality, from 12 on and before."""

    def export_or_equal(ctx: Export, x: Value, y: Value) -> Value:
        return ctx.emit(f"{op}OrEqual", _cast_bool(ctx, x), _cast_bool(ctx, y))

    def export_or_equal_v1(ctx: Export, x: Value, y: Value) -> Value:
        """Two comparisons, since the negation of the opposite one is true for NaN."""
        x, y = _cast_bool(ctx, x), _cast_bool(ctx, y)
        return ctx.emit("Or", ctx.emit(op, x, y), ctx.emit("Equal", x, y))

    return export_or_equal, export_or_equal_v1


for _name, _target in {"greater": "Greater", "less": "Less"}.items():
    OPS.exports(_name)(partial(_export_comparison, target=_target))
    _export, _export_v1 = _make_or_equal_exporters(_target)
    OPS.exports(f"{_name}_equal", since=12)(_export)
    OPS.exports(f"{_name}_equal")(_export_v1)


@OPS.imports("Mod", since=(10, 13, 28))
def import_mod(ctx: Import, x: Expr, y: Expr, *, fmod: bool = False) -> Expr:
    if fmod:
        return relay.mod(x, y)
    if is_float(ctx.type(x).dtype) and ctx.version < 28:
        raise Unsupported("fmod=0 is for integers only", hint="set fmod=1")
    return relay.floor_mod(x, y)


@OPS.exports("floor_mod")
def export_floor_mod(ctx: Export, x: Value, y: Value) -> Value:
    """``x - floor(x / y) * y``; of floats, the exact ``fmod`` moved to the divisor's sign.

    A rounded quotient could be a whole number that the exact one is below.
    """
    if not is_float(ctx.type(x).dtype):
        return ctx.emit("Mod", x, y, fmod=0)
    rest = ctx.emit("Mod", x, y, fmod=1)
    beside = ctx.emit("Less", ctx.emit("Mul", rest, y), ctx.scalar_like(x, 0))
    return ctx.emit("Where", beside, ctx.emit("Add", rest, y), rest)


def _export_wider(
    ctx: Export, export: Callable[[Export, Value, Value], Value], x: Value, y: Value
) -> Value:
    """Return what a converter makes of operands in a wider dtype, in their own."""
    dtype = ctx.type(x).dtype
    work = compute_dtype(dtype)
    wide = (retype(ctx, cast(ctx, each, work), each, work) for each in (x, y))
    return cast(ctx, export(ctx, *wide), dtype)


@OPS.exports("floor_divide")
def export_floor_divide(ctx: Export, x: Value, y: Value) -> Value:
    if not ctx.takes("Div", ctx.type(x).dtype):
        return _export_wider(ctx, export_floor_divide, x, y)
    if is_float(ctx.type(x).dtype):
        return ctx.emit("Floor", ctx.emit("Div", x, y))
    rest = ctx.emit("Mod", x, y, fmod=0)
    return ctx.emit("Div", ctx.emit("Sub", x, rest), y)


def align_axis(ctx: Import, x: Expr, y: Expr, axis: int | None, broadcast: bool) -> Expr:
    """Return `y` with axes of 1 behind, so that its first one stands at `axis` of `x`.

    Before version 7, ONNX broadcasts where asked only, and names the axis.
    """
    if not broadcast or axis is None:
        return y
    rank, own = ctx.type(x).rank, ctx.type(y).rank
    following = rank - axis % max(rank, 1) - own
    if following < 0:
        raise Unsupported(f"axis {axis} leaves no place for {own} axes in {rank}")
    return relay.expand_dims(y, axis=own, num_newaxis=following) if following else y


BINARY: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = {
    "Add": ("add", (7, 13, 14), (1, 6)),
    "And": ("logical_and", (7,), (1,)),
    "BitwiseAnd": ("bitwise_and", (18,), ()),
    "BitwiseOr": ("bitwise_or", (18,), ()),
    "BitwiseXor": ("bitwise_xor", (18,), ()),
    "Div": ("divide", (7, 13, 14), (1, 6)),
    "Equal": ("equal", (7, 11, 13, 19), (1,)),
    "Greater": ("greater", (7, 9, 13), (1,)),
    "GreaterOrEqual": ("greater_equal", (12, 16), ()),
    "Less": ("less", (7, 9, 13), (1,)),
    "LessOrEqual": ("less_equal", (12, 16), ()),
    "Mul": ("multiply", (7, 13, 14), (1, 6)),
    "Or": ("logical_or", (7,), (1,)),
    "Sub": ("subtract", (7, 13, 14), (1, 6)),
    "Xor": ("logical_xor", (7,), (1,)),
}
"""The operator of ONNX: Relay's, the versions that broadcast as NumPy does, and those before.

Before 7 they broadcast along an axis that is named.
"""


def _import_legacy(
    ctx: Import, x: Expr, y: Expr, *, target: str, axis: int | None = None, broadcast: bool = False
) -> Expr:
    return call(target, x, align_axis(ctx, x, y, axis, broadcast))


for _name, (_target, _versions, _legacy) in BINARY.items():
    OPS.pairs(reads(_name, _target, since=_versions))
    OPS.imports(_name, since=_legacy, ignored=("consumed_inputs",))(
        partial(_import_legacy, target=_target)
    )


OPS.imports("Pow", since=1, ignored=("consumed_inputs",))(partial(_import_legacy, target="power"))


def _import_variadic(ctx: Import, first: Expr, *others: Expr, target: str) -> Expr:
    return reduce(lambda x, y: call(target, x, y), others, first)


OPS.imports("Sum", since=(1, 6, 8, 13), ignored=("consumed_inputs",))(
    partial(_import_variadic, target="add")
)


OPS.imports("Max", since=(1, 6, 8, 12, 13), ignored=("consumed_inputs",))(
    partial(_import_variadic, target="maximum")
)


OPS.imports("Min", since=(1, 6, 8, 12, 13), ignored=("consumed_inputs",))(
    partial(_import_variadic, target="minimum")
)


@OPS.imports("Mean", since=(1, 6, 8, 13), ignored=("consumed_inputs",))
def import_mean(ctx: Import, first: Expr, *others: Expr) -> Expr:
    total = reduce(relay.add, others, first)
    return relay.divide(total, scalar_like(ctx, first, 1 + len(others)))


OPS.pairs(
    reads("Where", "where", since=(9, 16)),
    writes("Mod", ("mod", "trunc_mod"), constants={"fmod": 1}),
)
