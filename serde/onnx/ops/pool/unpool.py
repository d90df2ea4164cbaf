"""The partial inverse of max pooling."""

from __future__ import annotations

from serde.onnx.graph import ExportContext as Ctx
from serde.onnx.graph import Value
from serde.onnx.ops.elementwise import cast
from serde.onnx.ops.table import OPS
from serde.relay.dims import Dim
from serde.relay.expr import Call
from serde.relay.shapes import split_padding


def _has_least_shape(node: Call) -> bool:
    """Given another shape, ONNX numbers elements as in the least one, ONNX Runtime as in that."""
    return node.attrs["output_shape"] is None


@OPS.exports("serde.max_unpool", when=_has_least_shape)
def export_max_unpool(
    ctx: Ctx,
    data: Value,
    indices: Value,
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...] | None,
    padding: tuple[int, ...],
    output_shape: tuple[Dim, ...] | None,
) -> Value:
    if ctx.type(indices).dtype != "int64":
        indices = cast(ctx, indices, "int64")
    before, after = split_padding(padding, len(pool_size))
    return ctx.emit(
        "MaxUnpool",
        data,
        indices,
        kernel_shape=list(pool_size),
        strides=list(strides or (1,) * len(pool_size)),
        pads=[*before, *after],
    )
