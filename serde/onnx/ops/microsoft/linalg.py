"""Matrix products with factors, transpositions and packed weights."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.core.allocation import full
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.linalg.product import GemmAttributes, build_matmul, import_gemm
from serde.onnx.ops.microsoft.activation import apply_activation
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, as_dtype, call


def _transpose_side(ctx: Import, x: Expr, whole: bool, batch: bool) -> Expr:
    """Return a side of a product; `batch` brings its first axis in front of its last one."""
    rank = ctx.type(x).rank
    order = list(range(rank))
    if batch and rank > 2:
        order = [*order[1:-1], 0, order[-1]]
    if whole and rank > 1:
        order[-2:] = order[:-3:-1]
    return x if order == list(range(rank)) else relay.transpose(x, axes=order)


@MICROSOFT.imports("FusedMatMul", "TransposeMatMul")
def import_fused_matmul(
    ctx: Import,
    a: Expr,
    b: Expr,
    *,
    alpha: float = 1.0,
    transA: bool = False,  # noqa: N803
    transB: bool = False,  # noqa: N803
    transBatchA: bool = False,  # noqa: N803
    transBatchB: bool = False,  # noqa: N803
) -> Expr:
    left, right = (
        _transpose_side(ctx, a, transA, transBatchA),
        _transpose_side(ctx, b, transB, transBatchB),
    )
    found = build_matmul(ctx, left, right)
    return found if alpha == 1.0 else relay.multiply(found, scalar_like(ctx, found, alpha))


@MICROSOFT.imports("FusedGemm")
def import_fused_gemm(
    ctx: Import, a: Expr, b: Expr, c: Expr | None = None,
    *, activation: str = "", activation_alpha: float | None = None,
    activation_beta: float | None = None, activation_gamma: float | None = None,
    gemm: GemmAttributes,
) -> Expr:  # fmt: skip
    if activation_gamma is not None:
        raise Unsupported(f"activation {activation!r} with a third parameter")
    given = (activation_alpha, activation_beta)
    found = import_gemm(ctx, a, b, c, gemm=gemm)
    return apply_activation(
        ctx, found, activation, tuple(each for each in given if each is not None)
    )


@MICROSOFT.imports("MatMulNBits", ignored=("accuracy_level",))
def import_matmul_nbits(
    ctx: Import,
    a: Expr,
    b: Expr,
    scales: Expr,
    zero_points: Expr | None = None,
    g_idx: Expr | None = None,
    bias: Expr | None = None,
    *,
    K: int,  # noqa: N803
    N: int,  # noqa: N803
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Expr:
    """Levels of 2, 4 or 8 bits, the first in the lowest bits of a byte, in blocks of a row.

    The accuracy asked for is the least, and products of floats are more than that.
    """
    if g_idx is not None:
        raise Unsupported("g_idx")
    if bits not in (2, 4, 8) or weight_prepacked:
        raise Unsupported(f"bits={bits}, weight_prepacked={weight_prepacked}")
    if min(K, N, block_size) < 1:
        raise Unsupported(f"{N} rows of {K} in blocks of {block_size}")
    blocks = -(-K // block_size)
    if zero_points is not None and ctx.type(zero_points).dtype != "uint8":
        raise Unsupported(f"zero points of {ctx.type(zero_points).dtype}")

    def unpack(packed: Expr, count: int, length: int) -> Expr:
        """Return `count` levels of each row, which has as many as fill bytes, or blocks."""
        rows = ctx.nibbles(packed, (N, length)) if bits == 4 else None
        if rows is None:
            rows = unpack_bits(ctx, relay.reshape(packed, (N, -1)), bits)
        if ctx.type(rows).shape[1] == count:
            return rows
        return relay.strided_slice(rows, begin=[0], end=[count], strides=[1], axes=[1])

    levels = unpack(b, K, blocks * block_size)
    dtype = ctx.type(levels).dtype
    if zero_points is None:
        points = ctx.spread(1 << bits - 1, dtype, (N, blocks))
    else:
        points = as_dtype(unpack(zero_points, blocks, -(-blocks // 2) * 2), dtype)
    factors = relay.reshape(scales, (N, blocks))
    weight = dequantize_rows(ctx, levels, factors, points, bits, block_size)
    weight = relay.cast(weight, ctx.type(a).dtype)
    found = relay.nn.dense(a, weight, units=None)
    return found if bias is None else relay.add(found, bias)


def dequantize_rows(
    ctx: Import, levels: Expr, scales: Expr, points: Expr | None, bits: int, block_size: int
) -> Expr:
    """Return rows of levels, scaled block by block; without zero points the middle is zero."""
    if points is None:
        points = relay.Constant(full(ctx.static_shape(scales), 1 << bits - 1, np.uint8))
    return call("serde.dequantize_linear", levels, scales, points, axis=1, block_size=block_size)


def unpack_bits(ctx: Import, packed: Expr, bits: int) -> Expr:
    """Return the levels in each byte of the last axis, those in the lowest bits first."""
    if bits == 8:
        return packed
    mask = relay.const(np.uint8((1 << bits) - 1))
    parts = [
        relay.bitwise_and(relay.right_shift(packed, relay.const(np.uint8(shift))), mask)
        for shift in range(0, 8, bits)
    ]
    rank = ctx.type(packed).rank
    return relay.reshape(relay.stack(parts, axis=rank), (*[0] * (rank - 1), -3))
