"""What brings values to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

from serde.relax.export_context import ExportContext, Value
from serde.relax.ops.conv.windows import cast

__all__ = ["centre", "vectors"]


def centre(ctx: ExportContext, x: Value, axes: Sequence[int]) -> Value:
    """Return a value less its mean.

    TVM's norms take the mean of squares less the square of the mean for the variance, which loses
    all digits where the mean is large; where it is 0 they lose none.
    """
    return ctx.emit("subtract", x, ctx.emit("mean", x, axis=list(axes), keepdims=True))


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
