"""Maximum and mean over all positions, or over parts of each axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import serde.relay as relay
from serde.onnx.ops.conv.windows import SPATIAL
from serde.onnx.ops.reduce import emit_reduce
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, is_float, tensor_type
from serde.relay.lowering.pool import decompose_adaptive_pool


def _is_pooling(node: Call) -> bool:
    """Whether all parts of an axis have one length, or nothing changes."""
    lengths, wanted = (tensor_type(each).shape[2:] for each in (node.args[0], node))
    pairs = zip(lengths, wanted, strict=True)
    even = all(isinstance(n, int) and isinstance(out, int) and n % out == 0 for n, out in pairs)
    whole = even or all(each == 1 for each in wanted)
    return lengths == wanted or (whole and is_float(tensor_type(node).dtype))


def _export_adaptive_pool(ctx: Export, x: Value, *, kind: str) -> Value:
    lengths, wanted = ctx.type(x).shape[2:], ctx.result_type().shape[2:]
    if lengths == wanted:
        return x
    if all(each == 1 for each in wanted):
        return ctx.emit(f"Global{kind}Pool", x)
    window = [n // out for n, out in zip(lengths, wanted, strict=True)]
    return ctx.emit(f"{kind}Pool", x, kernel_shape=window, strides=window)


for _ndim in SPATIAL:
    for _name, _kind in {"max": "Max", "avg": "Average"}.items():
        OPS.exports(
            f"nn.adaptive_{_name}_pool{_ndim}d", when=_is_pooling, ignored=("output_size",)
        )(partial(_export_adaptive_pool, kind=_kind))


OPS.expands("nn.adaptive_max_pool3d")(decompose_adaptive_pool("max", 3, windows=True))


def _make_exporter(op: str, reduction: str) -> Callable[..., Value]:
    def export_global(ctx: Export, x: Value) -> Value:
        """Of integers ONNX has the reduction only."""
        if ctx.takes(op, ctx.type(x).dtype):
            return ctx.emit(op, x)
        return emit_reduce(ctx, reduction, x, [2, 3], keepdims=True)

    return export_global


OPS.exports("nn.global_max_pool2d")(_make_exporter("GlobalMaxPool", "ReduceMax"))

OPS.exports("nn.global_avg_pool2d")(_make_exporter("GlobalAveragePool", "ReduceMean"))


def _make_importer(name: str, fold: Callable[..., Expr]) -> Callable[..., Expr]:
    def import_global(ctx: Import, x: Expr) -> Expr:
        """Over other than two axes it is a reduction."""
        rank = ctx.type(x).rank
        if rank == 4:
            return getattr(relay.nn, name)(x)
        return fold(x, axis=tuple(range(2, rank)), keepdims=True)

    return import_global


OPS.imports("GlobalMaxPool", since=(1, 22))(_make_importer("global_max_pool2d", relay.max))

OPS.imports("GlobalAveragePool", since=(1, 22))(_make_importer("global_avg_pool2d", relay.mean))
