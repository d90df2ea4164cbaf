"""Arithmetic, comparison and mathematical functions, element by element.

Comparisons and logic give 1 and 0 in the dtype of their operands, not bool.
On integers MXNet casts a scalar operand to the tensor's dtype if it is marked
as an integer, and both to float64 if not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.shapes import is_float
from serde.weights import numpy_dtype

UNARY = {
    "abs": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctanh": "atanh",
    "ceil": "ceil",
    "cos": "cos",
    "cosh": "cosh",
    "erf": "erf",
    "exp": "exp",
    "fix": "trunc",
    "floor": "floor",
    "log": "log",
    "log10": "log10",
    "log2": "log2",
    "negative": "negative",
    "round": "round",
    "rsqrt": "rsqrt",
    "sigmoid": "sigmoid",
    "sign": "sign",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
    "trunc": "trunc",
}
"""MXNet's function: Relay's operator."""

ON_INTEGERS = frozenset({"abs", "ceil", "floor", "negative", "round", "sign", "trunc"})

NUMPY_NAMES = {
    "abs": ["_npi_absolute"],
    "erf": [],
    "round": [],
    "rsqrt": [],
    "sigmoid": ["_npx_sigmoid"],
}
"""MXNet's function: its name in the NumPy interface, where that is not just prefixed."""

SLOW = frozenset({"acos", "acosh", "asin", "asinh", "atan", "atanh", "erf"})
"""Functions whose values of integers are so small that float32 holds them."""

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "maximum": "maximum",
    "minimum": "minimum",
    "power": "power",
    "mod": "floor_mod",
}

COMPARE = {
    "equal": "equal",
    "not_equal": "not_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
    "lesser": "less",
    "lesser_equal": "less_equal",
}

LOGICAL = {"logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor"}

DEGREE = float(np.float32(np.pi) / np.float32(180))
RADIAN = float(np.float32(180) / np.float32(np.pi))
"""MXNet's factors between degrees and radians: float32, whatever they multiply."""


def scalar_like(ctx: ImportContext, x: Expr, value: float) -> Expr:
    """Return `value` as a constant of the dtype of `x`; towards zero where that is an integer."""
    dtype = numpy_dtype(ctx.type(x).dtype)
    if not np.issubdtype(dtype, np.integer):
        with np.errstate(over="ignore"):
            return relay.Constant(np.array(value).astype(dtype))
    if not abs(value) < 2.0**63:
        raise Unsupported(f"{value} as {dtype} is beyond its range")
    return relay.Constant(np.array(int(value)).astype(dtype))


def with_scalar(ctx: ImportContext, data: Expr, scalar: float, is_int: bool) -> tuple[Expr, Expr]:
    """Return a tensor and a number as MXNet combines them, of one dtype.

    Truth values become int64 beside an integer; beside another number they and integers become
    float64.
    """
    dtype = ctx.type(data).dtype
    if dtype == "bool" or not (is_float(dtype) or is_int):
        data = relay.cast(data, "int64" if is_int else "float64")
    return data, scalar_like(ctx, data, scalar)


def in_floats(
    ctx: ImportContext, function: Callable[..., Expr], *operands: Expr, rounded: bool = False
) -> Expr:
    """Return what a function of floats gives; of integers, by way of float64.

    Args:
        ctx: The context.
        function: What is computed.
        operands: Tensors of one dtype.
        rounded: Whether the result for integers is rounded, instead of cut towards zero.
    """
    dtype = ctx.type(operands[0]).dtype
    if is_float(dtype):
        return function(*operands)
    result = function(*(relay.cast(x, "float64") for x in operands))
    return relay.cast(relay.round(result) if rounded else result, dtype)


def truth(ctx: ImportContext, x: Expr) -> Expr:
    """Return whether each element differs from zero."""
    return relay.not_equal(x, scalar_like(ctx, x, 0))


def _register_unary(name: str, target: str) -> None:
    @OPS.imports(name, *NUMPY_NAMES.get(name, [f"_npi_{name}"]))
    def import_unary(ctx: ImportContext, data: Expr) -> Expr:
        build = getattr(relay, target)
        dtype = ctx.type(data).dtype
        if is_float(dtype) or target in ON_INTEGERS:
            return build(data)
        if target in SLOW:
            return relay.cast(build(relay.cast(data, "float32")), dtype)
        return in_floats(ctx, OF_INTEGERS.get(target, build), data)


def _halved_exponentials(sign: float) -> Callable[[Expr], Expr]:
    def function(x: Expr) -> Expr:
        other = relay.multiply(relay.exp(relay.negative(x)), relay.const(sign, "float64"))
        return relay.multiply(relay.add(relay.exp(x), other), relay.const(0.5, "float64"))

    return function


OF_INTEGERS = {
    "cosh": _halved_exponentials(1.0),
    "sinh": _halved_exponentials(-1.0),
    "tan": lambda x: relay.divide(relay.sin(x), relay.cos(x)),
}
"""Functions that ONNX Runtime does not have in float64, made of such as it has."""


def _binary(target: str) -> Callable[..., AnyValue]:
    def import_binary(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
        return arithmetic(ctx, target, lhs, rhs)

    return import_binary


def _compare(target: str) -> Callable[..., AnyValue]:
    def import_compare(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
        return relay.cast(getattr(relay, target)(lhs, rhs), ctx.type(lhs).dtype)

    return import_compare


def _logical(target: str) -> Callable[..., AnyValue]:
    def import_logical(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
        result = getattr(relay, target)(truth(ctx, lhs), truth(ctx, rhs))
        return relay.cast(result, ctx.type(lhs).dtype)

    return import_logical


def arithmetic(ctx: ImportContext, target: str, lhs: Expr, rhs: Expr) -> Expr:
    """Return one arithmetic operation; a power of integers goes through float64."""
    if target == "power":
        return in_floats(ctx, relay.power, lhs, rhs)
    if target == "floor_mod":
        return remainder(ctx, lhs, rhs)
    return getattr(relay, target)(lhs, rhs)


def remainder(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """Return the remainder with the sign of the divisor, and 0 where that is 0."""
    if isinstance(rhs, Constant) and rhs.data.all():
        return relay.floor_mod(lhs, rhs)
    zero, one = scalar_like(ctx, rhs, 0), scalar_like(ctx, rhs, 1)
    by_zero = relay.equal(rhs, zero)
    divisor = rhs if is_float(ctx.type(rhs).dtype) else relay.where(by_zero, one, rhs)
    return relay.where(by_zero, zero, relay.floor_mod(lhs, divisor))


def _scalar(binary: Callable[..., AnyValue], *, swapped: bool) -> Callable[..., AnyValue]:
    def import_scalar(
        ctx: ImportContext, data: Expr, *, scalar: float = 1.0, is_int: bool = True
    ) -> Expr:
        tensor, other = with_scalar(ctx, data, scalar, is_int)
        return binary(ctx, other, tensor) if swapped else binary(ctx, tensor, other)

    return import_scalar


SCATTERED = {
    "elemwise_div": ["_scatter_elemwise_div"],
    "_plus_scalar": ["_scatter_plus_scalar"],
    "_minus_scalar": ["_scatter_minus_scalar"],
}
"""Operators with a second form that, of sparse tensors, computes the stored elements only."""

for _name, _target in UNARY.items():
    _register_unary(_name, _target)

for _name, _target in BINARY.items():
    _function = _binary(_target)
    _same_shape = f"elemwise_{_name}" if _name in ("add", "sub", "mul", "div") else f"_{_name}"
    OPS.imports(_same_shape, f"broadcast_{_name}", *SCATTERED.get(_same_shape, []))(_function)
    _stem = {"add": "plus", "sub": "minus"}.get(_name, _name)
    _with_scalar = [f"_{_stem}_scalar", *SCATTERED.get(f"_{_stem}_scalar", [])]
    OPS.imports(*_with_scalar)(_scalar(_function, swapped=False))
    if _name in ("sub", "div", "power", "mod"):
        OPS.imports(f"_r{_stem}_scalar")(_scalar(_function, swapped=True))

for _name, _target in COMPARE.items():
    _function = _compare(_target)
    OPS.imports(f"_{_name}", f"broadcast_{_name}")(_function)
    OPS.imports(f"_{_name}_scalar")(_scalar(_function, swapped=False))

for _name, _target in LOGICAL.items():
    _function = _logical(_target)
    OPS.imports(f"_{_name}", f"broadcast_{_name}")(_function)
    OPS.imports(f"_{_name}_scalar")(_scalar(_function, swapped=False))


@OPS.imports(
    "_copy",
    "_np_copy",
    "_CrossDeviceCopy",
    "BlockGrad",
    "make_loss",
    "_identity_with_attr_like_rhs",
    uses=1,
)
def import_identity(ctx: ImportContext, data: Expr) -> Expr:
    return data


@OPS.imports("_grad_add")
def import_grad_add(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    return relay.add(lhs, rhs)


@OPS.imports("add_n")
def import_add_n(ctx: ImportContext, *args: Expr, num_args: int = 0) -> Expr:
    if not args:
        raise Unsupported("expected at least 1 input, found 0")
    total = args[0]
    for term in args[1:]:
        total = relay.add(total, term)
    return total


@OPS.imports("square", "_npi_square")
def import_square(ctx: ImportContext, data: Expr) -> Expr:
    return relay.multiply(data, data)


@OPS.imports("reciprocal", "_npi_reciprocal")
def import_reciprocal(ctx: ImportContext, data: Expr) -> Expr:
    return relay.divide(scalar_like(ctx, data, 1), data)


@OPS.imports("cbrt", "_npi_cbrt")
def import_cbrt(ctx: ImportContext, data: Expr) -> Expr:
    def root(x: Expr) -> Expr:
        third = scalar_like(ctx, x, 1 / 3)
        return relay.multiply(relay.sign(x), relay.power(relay.abs(x), third))

    return in_floats(ctx, root, data)


@OPS.imports("rcbrt")
def import_rcbrt(ctx: ImportContext, data: Expr) -> Expr:
    return relay.divide(scalar_like(ctx, data, 1), import_cbrt(ctx, data))


@OPS.imports("rint", "_npi_rint")
def import_rint(ctx: ImportContext, data: Expr) -> Expr:
    """A half goes down, whatever its sign."""
    if not is_float(ctx.type(data).dtype):
        return data
    whole = relay.floor(data)
    below = relay.less_equal(relay.subtract(data, whole), scalar_like(ctx, data, 0.5))
    return relay.where(below, whole, relay.ceil(data))


@OPS.imports("degrees", "_npi_degrees")
def import_degrees(ctx: ImportContext, data: Expr) -> Expr:
    return in_floats(ctx, lambda x: relay.multiply(x, scalar_like(ctx, x, RADIAN)), data)


@OPS.imports("radians", "_npi_radians")
def import_radians(ctx: ImportContext, data: Expr) -> Expr:
    return in_floats(ctx, lambda x: relay.multiply(x, scalar_like(ctx, x, DEGREE)), data)


@OPS.imports("logical_not")
def import_logical_not(ctx: ImportContext, data: Expr) -> Expr:
    result = relay.equal(data, scalar_like(ctx, data, 0))
    return relay.cast(result, ctx.type(data).dtype)


@OPS.imports("_hypot", "broadcast_hypot", "_npi_hypot")
def import_hypot(ctx: ImportContext, lhs: Expr, rhs: Expr) -> Expr:
    """In float64, where squares of the others neither overflow nor vanish."""
    wide = [relay.cast(x, "float64") for x in (lhs, rhs)]
    squares = relay.add(*(relay.multiply(x, x) for x in wide))
    return relay.cast(relay.sqrt(squares), ctx.type(lhs).dtype)


OPS.imports("_hypot_scalar")(_scalar(import_hypot, swapped=False))


@OPS.imports("clip")
def import_clip(ctx: ImportContext, data: Expr, *, a_min: float, a_max: float) -> Expr:
    return relay.clip(data, a_min, a_max)


@OPS.imports("smooth_l1")
def import_smooth_l1(ctx: ImportContext, data: Expr, *, scalar: float = 1.0) -> Expr:
    squared = scalar * scalar
    inner = relay.multiply(relay.multiply(data, data), scalar_like(ctx, data, 0.5 * squared))
    size = relay.abs(data)
    outer = relay.subtract(size, scalar_like(ctx, data, 0.5 / squared))
    return relay.where(relay.less(size, scalar_like(ctx, data, 1 / squared)), inner, outer)


@OPS.imports("Cast")
def import_cast(ctx: ImportContext, data: Expr, *, dtype: np.dtype[AnyValue]) -> Expr:
    return relay.cast(data, dtype)


@OPS.imports("zeros_like", ignored=("dtype",))
def import_zeros_like(ctx: ImportContext, data: Expr) -> Expr:
    return relay.zeros_like(data)


@OPS.imports("ones_like", ignored=("dtype",))
def import_ones_like(ctx: ImportContext, data: Expr) -> Expr:
    return relay.ones_like(data)


@OPS.imports("where")
def import_where(ctx: ImportContext, condition: Expr, x: Expr, y: Expr) -> Expr:
    """A vector as condition chooses whole entries of axis 0."""
    chosen = truth(ctx, condition)
    rank = ctx.type(x).rank
    if ctx.type(condition).rank == 1 and rank > 1:
        chosen = relay.expand_dims(chosen, 1, rank - 1)
    return relay.where(chosen, x, y)


def _declare_unary_export(mxnet: str, name: str) -> None:
    @OPS.exports(name)
    def export_unary(ctx: ExportContext, x: Value) -> Value:
        return ctx.emit(mxnet, x)


for _relay, _mxnet in {relay_name: mxnet_name for mxnet_name, relay_name in UNARY.items()}.items():
    _declare_unary_export(_mxnet, _relay)

for _name in ("erf", "exp", "tanh"):
    _declare_unary_export(_name, f"fast_{_name}")

for _name in ("isnan", "isinf", "isfinite"):
    _declare_unary_export(f"_npi_{_name}", _name)


WRITTEN = {
    "add": ("broadcast_add", "_plus_scalar", "_plus_scalar"),
    "subtract": ("broadcast_sub", "_minus_scalar", "_rminus_scalar"),
    "multiply": ("broadcast_mul", "_mul_scalar", "_mul_scalar"),
    "divide": ("broadcast_div", "_div_scalar", "_rdiv_scalar"),
    "maximum": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar"),
    "minimum": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar"),
    "power": ("broadcast_power", "_power_scalar", "_rpower_scalar"),
    "equal": ("_npi_equal", "_npi_equal_scalar", "_npi_equal_scalar"),
    "not_equal": ("_npi_not_equal", "_npi_not_equal_scalar", "_npi_not_equal_scalar"),
    "greater": ("_npi_greater", "_npi_greater_scalar", "_npi_less_scalar"),
    "greater_equal": (
        "_npi_greater_equal", "_npi_greater_equal_scalar", "_npi_less_equal_scalar",
    ),
    "less": ("_npi_less", "_npi_less_scalar", "_npi_greater_scalar"),
    "less_equal": ("_npi_less_equal", "_npi_less_equal_scalar", "_npi_greater_equal_scalar"),
}  # fmt: skip
"""Relay's operator: MXNet's for two tensors, with a scalar behind, with a scalar in front."""


def _declare_binary_export(name: str, tensors: str, behind: str, before: str) -> None:
    @OPS.exports(name)
    def export_binary(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
        left, right = ctx.scalar(lhs), ctx.scalar(rhs)
        if right is not None:
            return ctx.emit(behind, lhs, scalar=right)
        if left is not None:
            return ctx.emit(before, rhs, scalar=left)
        return ctx.emit_bytes(tensors, lhs, rhs)


for _relay, _names in WRITTEN.items():
    _declare_binary_export(_relay, *_names)


BITWISE = {
    "bitwise_and": "_npi_bitwise_and",
    "bitwise_or": "_npi_bitwise_or",
    "bitwise_xor": "_npi_bitwise_xor",
    "bitwise_not": "_npi_bitwise_not",
}
"""Relay's operator: MXNet's of the same operands."""


def _declare_bitwise_export(name: str, mxnet: str) -> None:
    @OPS.exports(name)
    def export_bitwise(ctx: ExportContext, *operands: Value) -> Value:
        return ctx.emit_bytes(mxnet, *operands)


def _declare_logical_export(name: str, bitwise: str) -> None:
    @OPS.exports(name)
    def export_logical(ctx: ExportContext, lhs: Value, rhs: Value) -> Value:
        if ctx.result_type().dtype == "bool":
            return ctx.emit_bytes(bitwise, lhs, rhs)
        return ctx.emit(f"broadcast_{name}", lhs, rhs)


for _relay, _mxnet in BITWISE.items():
    _declare_bitwise_export(_relay, _mxnet)

for _name in ("and", "or", "xor"):
    _declare_logical_export(f"logical_{_name}", f"_npi_bitwise_{_name}")


@OPS.exports("logical_not")
def export_logical_not(ctx: ExportContext, data: Value) -> Value:
    is_bool = ctx.type(data).dtype == "bool"
    return ctx.emit("_npi_logical_not" if is_bool else "logical_not", data)


@OPS.exports("where")
def export_where(ctx: ExportContext, condition: Value, x: Value, y: Value) -> Value:
    return ctx.emit("_npi_where", ctx.cast(condition, "bool"), x, y)


@OPS.exports("clip")
def export_clip(ctx: ExportContext, a: Value, *, a_min: float, a_max: float) -> Value:
    return ctx.emit("clip", a, a_min=a_min, a_max=a_max)


@OPS.exports("cast_like")
def export_cast_like(ctx: ExportContext, data: Value, dtype_like: Value) -> Value:
    return ctx.emit("Cast", data, dtype=ctx.result_type().dtype)


@OPS.exports("cast")
def export_cast(ctx: ExportContext, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    return ctx.emit("Cast", data, dtype=dtype)


@OPS.exports("copy")
def export_copy(ctx: ExportContext, data: Value) -> Value:
    return ctx.emit("_copy", data)
