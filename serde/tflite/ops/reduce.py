"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

from serde.relay.ir import Expr, call
from serde.relay.op.reduce.plain import ReducedAxes
from serde.tflite.ops.table import OPS, Export, Import, Value

_REDUCTIONS = {
    "MEAN": "mean",
    "REDUCE_ALL": "all",
    "REDUCE_ANY": "any",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "min",
    "REDUCE_PROD": "prod",
    "SUM": "sum",
}


def _reader(operator: str) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, axes: Expr, *, keep_dims: bool = False) -> Expr:
        """Without axes nothing is reduced."""
        found = ctx.ints(axes)
        return call(operator, x, axis=found, keepdims=keep_dims) if found else x

    return read


for _name, _operator in _REDUCTIONS.items():
    OPS.imports(_name)(_reader(_operator))


def _writer(op: str) -> Callable[..., Value]:
    def write(ctx: Export, data: Value, *, reduced: ReducedAxes) -> Value:
        axes = reduced.axes(ctx.type(data).rank)
        return ctx.emit(op, data, ctx.ints(axes), keep_dims=reduced.keepdims)

    return write


for _name, _operator in _REDUCTIONS.items():
    OPS.exports(_operator)(_writer(_name))
