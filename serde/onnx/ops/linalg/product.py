"""Dense layers, matrix products, and determinants."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import cast, scalar_like
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, call, is_float
from serde.relay.op.linalg.product import parse_equation
from serde.walk import Takes, dtypes, pair


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(ctx: Export, x: Value, weight: Value, bias: Value | None = None) -> Value:
    if not is_float(ctx.type(x).dtype):
        result = emit_integer_matmul(ctx, x, weight, transpose_y=True)
        return result if bias is None else ctx.emit("Add", result, bias)
    _require_own_dtype(ctx, x)
    if ctx.type(x).rank != 2:
        transposed = ctx.emit("Transpose", weight, perm=[1, 0])
        return ctx.emit("MatMul", x, transposed)
    return ctx.emit("Gemm", x, weight, bias, transB=1)


@dataclass(frozen=True, kw_only=True)
class GemmAttributes:
    """Attributes of ``y = alpha * a @ b + beta * c``."""

    alpha: float = 1.0
    beta: float = 1.0
    transA: bool = False  # noqa: N815
    transB: bool = False  # noqa: N815


@OPS.imports("Gemm", since=(7, 9, 11, 13))
def import_gemm(
    ctx: Import, a: Expr, b: Expr, c: Expr | None = None, *, gemm: GemmAttributes
) -> Expr:
    left = relay.transpose(a, axes=[1, 0]) if gemm.transA else a
    found: Expr
    if gemm.transB:
        found = call("nn.dense", left, b, units=ctx.dim_at(b, 0))
    else:
        found = call("nn.matmul", left, b, units=None, transpose_b=False)
    if gemm.alpha != 1.0:
        found = relay.multiply(found, scalar_like(ctx, found, gemm.alpha))
    if c is None:
        return found
    if gemm.beta != 1.0:
        c = relay.multiply(c, scalar_like(ctx, c, gemm.beta))
    type_ = ctx.type(c)
    if (
        type_.rank == 1
        and type_.shape[0] == ctx.dim_at(found, -1) != 1
        and ctx.type(found).rank == 2
    ):
        return relay.nn.bias_add(found, c, axis=1)
    return relay.add(found, c)


@OPS.imports("Gemm", since=(1, 6))
def import_gemm_v1(
    ctx: Import, a: Expr, b: Expr, c: Expr, *, broadcast: bool = False, gemm: GemmAttributes
) -> Expr:
    return import_gemm(ctx, a, b, c, gemm=gemm)


def _require_own_dtype(ctx: Export, x: Value) -> None:
    dtype = ctx.type(x).dtype
    if ctx.result_type().dtype != dtype:
        raise Unsupported(f"a product of {dtype} summed in {ctx.result_type().dtype}")


BYTE_DTYPES = ("int8", "uint8")
"""What the integer products of ONNX take; they sum in int32."""


def emit_integer_matmul(
    ctx: Export, x: Value, y: Value, *, transpose_x: bool = False, transpose_y: bool = False
) -> Value:
    """Return the matrix product of integers in the result's dtype.

    MatMulInteger takes bytes and gives int32; everything else is a MatMul of wider integers.

    Args:
        ctx: The context.
        x: Left side.
        y: Right side.
        transpose_x: Whether the last two axes of `x` are exchanged.
        transpose_y: Whether those of `y` are.
    """
    dtype = ctx.result_type().dtype
    left, right = _transpose(ctx, x, transpose_x), _transpose(ctx, y, transpose_y)
    sides = [ctx.type(x).dtype, ctx.type(y).dtype]
    if all(side in BYTE_DTYPES for side in sides) and dtype == "int32":
        return ctx.emit("MatMulInteger", left, right)
    wide = "int64" if dtype == "int64" else "int32"
    total = ctx.emit("MatMul", cast(ctx, left, wide), cast(ctx, right, wide))
    return total if dtype == wide else cast(ctx, total, dtype)


@OPS.exports("nn.matmul", ignored=("units", "out_dtype"))
@OPS.exports("nn.batch_matmul", ignored=("out_dtype",))
def export_matmul(
    ctx: Export, x: Value, y: Value, *, transpose_a: bool, transpose_b: bool
) -> Value:
    if not is_float(ctx.type(x).dtype):
        return emit_integer_matmul(ctx, x, y, transpose_x=transpose_a, transpose_y=transpose_b)
    _require_own_dtype(ctx, x)
    left, right = _transpose(ctx, x, transpose_a), _transpose(ctx, y, transpose_b)
    return ctx.emit("MatMul", left, right)


def _transpose(ctx: Export, x: Value, transpose: bool) -> Value:
    """Return `x` with its last two axes exchanged, if asked."""
    if not transpose:
        return x
    rank = ctx.type(x).rank
    return ctx.emit("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: Export, x: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(x).rank
    following = rank - 1 - axis % rank
    return ctx.emit("Add", x, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * following)))


@OPS.exports("einsum", since=12)
def export_einsum(ctx: Export, data: tuple[Value, ...], *, equation: str) -> Value:
    """Before 28 there is none of bfloat16; a product in float32, rounded once, is the same."""
    dtype = ctx.type(data[0]).dtype
    data, equation = _unify_lengths(ctx, data, equation)
    if dtype == "bfloat16" and ctx.version < 28:
        wide = [cast(ctx, each, np.float32) for each in data]
        return cast(ctx, ctx.emit("Einsum", *wide, equation=equation), dtype)
    return ctx.emit("Einsum", *data, equation=equation)


@OPS.imports("Einsum", since=(12, 28))
def import_einsum(ctx: Import, *inputs: Expr, equation: str) -> Expr:
    """Spaces in the equation mean nothing."""
    return relay.einsum(list(inputs), equation.replace(" ", ""))


def _unify_lengths(
    ctx: Export, data: tuple[Value, ...], equation: str
) -> tuple[tuple[Value, ...], str]:
    """Return tensors and an equation in which an index has one length.

    What is spread in Relay, ONNX refuses: an axis of length 1 beside a longer one of the same
    name, which goes, and dots that stand for fewer axes than others, which get more.
    """
    terms, result = parse_equation(equation)
    parts = [term.partition("...") for term in terms]
    types = [ctx.type(each) for each in data]
    free = [
        type_.rank - len(before) - len(after)
        for type_, (before, _, after) in zip(types, parts, strict=True)
    ]
    long = set()
    for type_, (before, _, after) in zip(types, parts, strict=True):
        ends = (*type_.shape[: len(before)], *type_.shape[type_.rank - len(after) :])
        long |= {name for name, dim in zip(before + after, ends, strict=True) if dim != 1}
    found = []
    for position, (value, type_) in enumerate(zip(data, types, strict=True)):
        before, dots, after = parts[position]
        axes = [*range(len(before)), *range(type_.rank - len(after), type_.rank)]
        spread = [
            axis
            for axis, name in zip(axes, before + after, strict=True)
            if type_.shape[axis] == 1 and name in long
        ]
        kept = "".join(name for axis, name in zip(axes, before, strict=False) if axis not in spread)
        tail = axes[len(before) :]
        rest = "".join(name for axis, name in zip(tail, after, strict=True) if axis not in spread)
        value = squeeze(ctx, value, spread) if spread else value
        missing = max(free) - free[position] if dots else 0
        if missing:
            value = unsqueeze(ctx, value, [len(kept) + i for i in range(missing)])
        terms[position] = f"{kept}{dots}{rest}"
        found.append(value)
    if tuple(found) == data:
        return data, equation
    return tuple(found), f"{','.join(terms)}->{result}"


def build_matmul(ctx: Import, a: Expr, b: Expr) -> Expr:
    """Return ``a @ b`` as NumPy has it: a vector on the left is a row, on the right a column."""
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if right == 2 and left > 1:
        return call("nn.matmul", a, b, units=None, transpose_b=False)
    if left == right == 3:
        return relay.nn.batch_matmul(a, b, transpose_b=False)
    return call("serde.matmul", a, b)


@OPS.exports("serde.matmul")
def export_serde_matmul(ctx: Export, x: Value, y: Value) -> Value:
    dtypes = (ctx.type(x).dtype, ctx.type(y).dtype)
    wide = ("int32", "int64", "uint32", "uint64")
    if is_float(dtypes[0]) or (dtypes[0] == dtypes[1] and dtypes[0] in wide):
        return ctx.emit("MatMul", x, y)
    return emit_integer_matmul(ctx, x, y)


@OPS.imports("MatMul", since=(1, 9, 13))
def import_matmul(ctx: Import, a: Expr, b: Expr) -> Expr:
    return build_matmul(ctx, a, b)


# ONNX Runtime has determinants of float32 alone; others are computed row by row.
OPS.pairs(pair("Det", "serde.det", since=(11, 22), target=1, takes=Takes(data=dtypes("float32"))))
