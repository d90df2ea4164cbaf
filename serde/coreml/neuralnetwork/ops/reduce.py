"""Reductions."""

from __future__ import annotations

from functools import partial
from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.ops.reduce import EXTREMES, REDUCTIONS
from serde.coreml.neuralnetwork.import_context import number
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, call

Mode = Literal[
    "SUM", "AVG", "PROD", "LOGSUM", "SUMSQUARE", "L1", "L2", "MAX", "MIN", "ARGMAX"
]  # fmt: skip
Axis = Literal["CHW", "HW", "C", "H", "W"]

AXES = {"CHW": (-3, -2, -1), "HW": (-2, -1), "C": (-3,), "H": (-2,), "W": (-1,)}
MODES = {
    "SUM": "sum",
    "AVG": "mean",
    "PROD": "prod",
    "SUMSQUARE": "serde.reduce_sum_square",
    "L1": "serde.reduce_l1",
    "L2": "serde.reduce_l2",
    "MAX": "max",
    "MIN": "min",
}

SUMMARIES = {
    "reduce_l1_norm": "reduceL1",
    "reduce_l2_norm": "reduceL2",
    "reduce_log_sum": "reduceLogSum",
    "reduce_log_sum_exp": "reduceLogSumExp",
    "reduce_max": "reduceMax",
    "reduce_mean": "reduceMean",
    "reduce_min": "reduceMin",
    "reduce_prod": "reduceProd",
    "reduce_sum": "reduceSum",
    "reduce_sum_square": "reduceSumSquare",
}
"""Operators of MIL, and their layers."""

EXTREME_LAYERS = {"reduce_argmax": "argMax", "reduce_argmin": "argMin"}


@LAYERS.imports("reduce")
def import_reduce(
    ctx: Import, x: Expr, *, mode: Mode = "SUM", epsilon: float = 1e-6, axis: Axis = "CHW"
) -> Expr:
    """The axes stay; LOGSUM adds the logarithms up, it takes none of a sum."""
    axes = AXES[axis]
    rank = len(ctx.at_least(x, -axes[0]))
    axes = tuple(each + rank for each in axes)
    if mode == "ARGMAX":
        if len(axes) != 1:
            raise Unsupported(f"the place of the greatest of {axis}")
        return relay.cast(relay.argmax(x, axis=axes, keepdims=True), "float32")
    if mode == "LOGSUM":
        return relay.sum(relay.log(relay.add(x, number(epsilon))), axis=axes, keepdims=True)
    return call(MODES[mode], x, axis=axes, keepdims=True)


@dataclass(frozen=True, kw_only=True)
class ReduceAttributes:
    """Attributes of the layers that reduce axes."""

    axes: tuple[int, ...] = ()
    keep_dims: bool = False
    reduce_all: bool = False

    def build(self, ctx: Import, target: str, x: Expr) -> Expr:
        """Return a reduction; what has no axis left is a vector, for all tensors have one."""
        rank = ctx.type(x).rank
        axes = tuple(sorted({ctx.axis(x, axis) for axis in self.axes}))
        if self.reduce_all or not axes:
            axes = tuple(range(rank))
        result = call(target, x, axis=axes, keepdims=self.keep_dims)
        single = len(axes) == rank and not self.keep_dims
        return relay.reshape(result, (1,)) if single else result


def _import_reduction(ctx: Import, x: Expr, *, target: str, reduce: ReduceAttributes) -> Expr:
    return reduce.build(ctx, target, x)


for _op, _layer in SUMMARIES.items():
    LAYERS.imports(_layer)(partial(_import_reduction, target=REDUCTIONS[_op]))


def _import_extreme(
    ctx: Import, x: Expr, *, target: str, axis: int = 0, remove_dim: bool = False
) -> Expr:
    keeps = not remove_dim or ctx.type(x).rank == 1
    return relay.cast(call(target, x, axis=(ctx.axis(x, axis),), keepdims=keeps), "float32")


for _op, _layer in EXTREME_LAYERS.items():
    LAYERS.imports(_layer)(partial(_import_extreme, target=EXTREMES[_op]))


def _export_summary(
    ctx: Export, x: Value, *, layer: str, axes: tuple[int, ...], keep_dims: bool = False
) -> Value:
    if not x.type.rank:
        return ctx.layer(layer, x, axes=[0], keep_dims=True)
    whole = len(axes) == x.type.rank and not keep_dims
    return ctx.layer(layer, x, axes=list(axes), keep_dims=keep_dims, reduce_all=whole)


def _export_extreme(
    ctx: Export, x: Value, *, layer: str, axis: int = -1, keep_dims: bool = False
) -> Value:
    """The only axis stays, for every tensor has one."""
    drops = not keep_dims and x.type.rank > 1
    return ctx.layer(layer, x, axis=axis, remove_dim=drops)


for _name, _target in SUMMARIES.items():
    LAYERS.exports(_name)(partial(_export_summary, layer=_target))
for _name, _target in EXTREME_LAYERS.items():
    LAYERS.exports(_name)(partial(_export_extreme, layer=_target))
