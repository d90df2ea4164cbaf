"""What brings values to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import cast
from serde.relay.ir.dims import Dim

__all__ = ["affine", "centre", "unit_variance", "vectors"]


def centre(ctx: ExportContext, x: Value, axes: Sequence[int]) -> Value:
    """Return a value less its mean.

    TVM's norms take the mean of squares less the square of the mean for the variance, which loses
    all digits where the mean is large; where it is 0 they lose none.
    """
    return ctx.emit("subtract", x, ctx.emit("mean", x, axis=list(axes), keepdims=True))


def unit_variance(
    ctx: ExportContext, centred: Value, axes: Sequence[int], epsilon: float, dtype: str
) -> Value:
    """Return a value of mean 0 with variance 1, in single steps; TVM has no norms of float64."""
    squares = ctx.emit("multiply", centred, centred)
    power = ctx.emit("mean", squares, axis=list(axes), keepdims=True)
    root = ctx.emit("sqrt", ctx.emit("add", power, ctx.const(epsilon, dtype)))
    return ctx.emit("divide", centred, root)


def vectors(
    ctx: ExportContext, gamma: Value, beta: Value, dtype: str, *, center: bool, scale: bool
) -> list[Value]:
    """Return what scales and what shifts; TVM's norms do both always."""
    found = []
    for x, used, fill in ((gamma, scale, "ones"), (beta, center, "zeros")):
        type_ = ctx.type(x)
        if used:
            found.append(cast(ctx, x, type_.dtype, dtype))
        else:
            found.append(ctx.emit(fill, ctx.shape_expr(type_.shape), dtype))
    return found


def affine(
    ctx: ExportContext,
    x: Value,
    pair: Sequence[Value],
    rank: int,
    axis: int,
    dtype: str,
    *,
    center: bool,
    scale: bool,
) -> Value:
    """Return a value of a dtype, scaled and shifted by two vectors along an axis."""
    for operator, vector, used in zip(("multiply", "add"), pair, (scale, center), strict=True):
        if used:
            shape: list[Dim] = [1] * rank
            (shape[axis],) = ctx.type(vector).shape
            wide = cast(ctx, vector, ctx.type(vector).dtype, dtype)
            x = ctx.emit(operator, x, ctx.emit("reshape", wide, ctx.shape_expr(shape)))
    return x
