"""Products of matrices as they are written."""

from __future__ import annotations

import string

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.shapes import is_float
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast


def _widened(ctx: ExportContext, a: Value, b: Value) -> tuple[Value, Value, str]:
    """Return two operands in a dtype that holds their product's sums, which PyTorch multiplies."""
    wanted = ctx.result_type().dtype
    own = ctx.type(a).dtype
    if is_float(own) and is_float(wanted):
        work = wanted if np.dtype(wanted).itemsize > np.dtype(own).itemsize else own
    elif is_float(own) or is_float(wanted):
        raise Unsupported(f"a product of {own} as {wanted}")
    else:
        work = wanted if wanted in ("int32", "int64") else "int64"
    return cast(ctx, a, work), cast(ctx, b, work), work


def _transposed(ctx: ExportContext, x: Value, rank: int) -> Value:
    return ctx.method(x, "t") if rank == 2 else ctx.method(x, "transpose", -2, -1)


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(
    ctx: ExportContext, data: Value, weight: Value, bias: Value | None = None
) -> Value:
    """Integers have no layer: their product is one of matrices."""
    shape, dtype = ctx.type(weight).shape, ctx.type(data).dtype
    if not is_float(dtype):
        a, b, work = _widened(ctx, data, weight)
        result = ctx.infix("@", a, _transposed(ctx, b, 2))
        result = cast(ctx, result, ctx.result_type().dtype, work)
        return result if bias is None else ctx.infix("+", result, bias)
    x, w, work = _widened(ctx, data, weight)
    fixed = [each for each in shape if isinstance(each, int)]
    if w is weight and ctx.is_weight(weight, bias) and len(fixed) == 2:
        weights = {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
        options = {"bias": False} if bias is None else {}
        result = ctx.layer(
            "nn.Linear", (x,), weights, in_features=fixed[1], out_features=fixed[0], **options
        )
    else:
        result = ctx.call("F.linear", x, w, *([] if bias is None else [bias]))
    return cast(ctx, result, ctx.result_type().dtype, work)


@OPS.exports("nn.matmul", ignored=("units", "out_dtype"))
@OPS.exports("nn.batch_matmul", ignored=("out_dtype",))
def export_nn_matmul(
    ctx: ExportContext,
    tensor_a: Value,
    tensor_b: Value,
    bias: Value | None = None,
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    a, b, work = _widened(ctx, tensor_a, tensor_b)
    if transpose_a:
        a = _transposed(ctx, a, ctx.type(tensor_a).rank)
    if transpose_b:
        b = _transposed(ctx, b, ctx.type(tensor_b).rank)
    result = cast(ctx, ctx.infix("@", a, b), ctx.result_type().dtype, work)
    return result if bias is None else ctx.infix("+", result, bias)


@OPS.exports("serde.matmul")
def export_serde_matmul(ctx: ExportContext, a: Value, b: Value) -> Value:
    x, y, work = _widened(ctx, a, b)
    return cast(ctx, ctx.infix("@", x, y), ctx.result_type().dtype, work)


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: ExportContext, data: Value, bias: Value, *, axis: int) -> Value:
    behind = ctx.type(data).rank - axis % ctx.type(data).rank - 1
    if behind:
        bias = ctx.method(bias, "reshape", -1, *[1] * behind)
    return ctx.infix("+", data, bias)


@OPS.exports("einsum")
def export_einsum(ctx: ExportContext, data: tuple[Value, ...], *, equation: str) -> Value:
    """PyTorch adds no integers of its own accord in few bits, so they are made wider."""
    dtype = ctx.type(data[0]).dtype
    work = dtype if is_float(dtype) or dtype in ("int32", "int64") else "int64"
    equation = equation.replace(" ", "")
    if set(equation) - set(string.ascii_letters) - set(".,->"):
        raise Unsupported(f"the equation {equation!r}")
    given = [cast(ctx, each, work) for each in data]
    return cast(ctx, ctx.call("torch.einsum", equation, given), dtype, work)
