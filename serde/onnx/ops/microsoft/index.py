"""Elements by index, those of quantised tables too, and unique values."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.microsoft.linalg import unpack_bits
from serde.onnx.ops.table import MICROSOFT, Import
from serde.relay.ir import Expr, call
from serde.walk.pairs import reads


@MICROSOFT.imports("Unique")
def import_unique(ctx: Import, x: Expr) -> list[Expr]:
    """Values in the order of their first appearance, the index of each element's, and counts."""
    values, _, inverse, number, counts = relay.unique(x, is_sorted=False, return_counts=True)
    end = relay.cast(number, "int64")
    begin, step = (relay.Constant(np.array([each], np.int64)) for each in (0, 1))
    found, times = (
        call("dyn.strided_slice", each, begin, end, step, axes=(0,)) for each in (values, counts)
    )
    return [found, relay.cast(inverse, "int64"), relay.cast(times, "int64")]


@MICROSOFT.imports("GatherBlockQuantized")
def import_gather_block_quantized(
    ctx: Import, data: Expr, indices: Expr, scales: Expr, zero_points: Expr | None = None,
    *, bits: int = 4, block_size: int = 128, gather_axis: int = 0, quantize_axis: int = 1,
) -> Expr:  # fmt: skip
    """Rows are picked before their levels are scaled; an index outside the table gives zeros.

    In a table of bytes, levels of fewer bits share one, along the last axis; here each has its own.
    """
    kind, rank = ctx.type(data), ctx.type(data).rank
    if not all(-rank <= axis < rank for axis in (gather_axis, quantize_axis)):
        raise Unsupported(f"gather_axis={gather_axis}, quantize_axis={quantize_axis} of {kind!r}")
    gathered, quantized = gather_axis % rank, quantize_axis % rank
    if kind.dtype not in ("uint8", "int4", "uint4") or gathered == quantized:
        raise Unsupported(f"a table of {kind.dtype}, picked from and quantised along one axis")
    if kind.dtype == "uint8" and (bits not in (2, 4, 8) or gathered):
        raise Unsupported(f"bits={bits}, gather_axis={gather_axis}")
    (length,) = ctx.static_lengths(data, [gathered])
    first, last = (scalar_like(ctx, indices, end) for end in (-length, length - 1))
    inside = relay.minimum(relay.maximum(indices, first), last)

    def spread(x: Expr) -> Expr:
        if kind.dtype == "uint8":
            return unpack_bits(ctx, x, bits)
        return relay.cast(x, "int8" if kind.dtype == "int4" else "uint8")

    def pick(x: Expr) -> Expr:
        return call("serde.take", x, inside, axis=gathered)

    rows, factors, points = pick(spread(data)), pick(scales), None
    if zero_points is not None:
        points = pick(relay.slice_like(spread(zero_points), scales, axes=[-1]))
    elif kind.dtype == "uint8":
        rows = relay.subtract(relay.cast(rows, "int32"), relay.const(np.int32(1 << bits - 1)))
    axis = quantized + ctx.type(indices).rank - 1 if quantized > gathered else quantized
    found = call("serde.dequantize_linear", rows, factors, points, axis=axis, block_size=block_size)
    tail = rank - 1 - gathered
    known = relay.equal(indices, inside)
    if tail:
        known = relay.expand_dims(known, axis=ctx.type(indices).rank, num_newaxis=tail)
    return relay.where(known, found, scalar_like(ctx, found, 0))


MICROSOFT.pairs(reads("GatherND", "serde.gather_nd"))
