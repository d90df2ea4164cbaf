"""Removal of what only training needs, and batch norm folded into the layer before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from serde.core import dataclass, numpy_dtype
from serde.relay.ir import Dim, Linear, OpDef, TensorType, call, has_trait, is_float, normalize_axis
from serde.relay.ir.expr import Call, Constant, Expr, Function, TupleGetItem, Var
from serde.relay.ir.visit import post_order, rewrite_function, use_counts
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.purity import closed_nodes

__all__ = [
    "FoldBatchNorm", "bias_vector", "channel_axis", "linear_chain", "scaled_weights", "spread",
    "weight_place",
]  # fmt: skip


@dataclass(frozen=True)
class FoldBatchNorm(FunctionPass):
    """Simplify layers that do less at inference than in training.

    ``nn.dropout`` becomes its operand. An ``nn.batch_norm`` of which only the first result is
    used is folded into the convolution, transposed convolution or dense layer that feeds it
    alone (a bias between both included), if weight, bias and statistics are expressions of
    weights: the layer gets ``weight * scale`` and a bias. One that feeds a convolution is never
    folded, since padding makes that inexact.

    Args:
        weights: Names of the parameters that are weights; None for all.
        fold_batch_norm: Whether batch norm is folded.
        expand: Whether a batch norm that cannot be folded becomes a multiply and an add.
    """

    name: ClassVar[str] = "FoldBatchNorm"
    changes: ClassVar[Sequence[str | type]] = ("nn.dropout", "nn.batch_norm")

    weights: frozenset[str] | None = None
    fold_batch_norm: bool = True
    expand: bool = False

    def transform(self, function: Function) -> Function:
        """Simplify bottom-up."""
        uses = use_counts(function)
        closed = closed_nodes(function, self._weights(function))
        alone = _only_first_used(function)

        def replace(node: Expr, new: Expr) -> Expr:
            if not isinstance(new, TupleGetItem) or new.index != 0:
                return new
            value = new.tuple_value
            if not isinstance(value, Call) or not isinstance(value.op, OpDef):
                return new
            if value.op.name == "nn.dropout":
                return value.args[0]
            if value.op.name != "nn.batch_norm" or not isinstance(node, TupleGetItem):
                return new
            if node.tuple_value not in alone or not isinstance(node.tuple_value, Call):
                return new
            if not all(argument in closed for argument in node.tuple_value.args[1:]):
                return new
            folded = self._fold(node.tuple_value, value, uses, closed)
            return new if folded is None else folded

        return rewrite_function(function, replace)

    def transform_body(self, body: Function) -> Function:
        """Simplify the body of a loop, none of whose parameters is a weight."""
        return dataclasses.replace(self, weights=frozenset()).transform(body)

    def _weights(self, function: Function) -> frozenset[str]:
        if self.weights is not None:
            return self.weights
        return frozenset(param.name_hint for param in function.params)

    def _fold(self, old: Call, new: Call, uses: dict[Expr, int], closed: set[Expr]) -> Expr | None:
        """Return what stands for a batch norm, or None.

        Args:
            old: The call as it was, which `uses` and `closed` know.
            new: The call with its operands rewritten.
            uses: Uses of each old node.
            closed: Old nodes that depend on weights alone.
        """
        chain = linear_chain(old, uses, closed) if self.fold_batch_norm else None
        if chain is not None:
            layer = _linear_layer(new, has_bias=len(chain) == 2)
            if layer is not None:
                return _fold_into_layer(new, layer, has_bias=len(chain) == 2)
        return _expand_norm(new) if self.expand else None


def scaled_weights(function: Function, weights: frozenset[str]) -> list[str]:
    """Return the parameters among `weights` that :class:`FoldBatchNorm` scales as they are."""
    uses, closed = use_counts(function), closed_nodes(function, weights)
    found = set()
    for norm in _only_first_used(function):
        if not isinstance(norm, Call) or not isinstance(norm.op, OpDef):
            continue
        if norm.op.name != "nn.batch_norm":
            continue
        chain = linear_chain(norm, uses, closed)
        weight = None if chain is None else chain[-1].args[1]
        if isinstance(weight, Var) and all(each in closed for each in norm.args[1:]):
            found.add(weight.name_hint)
    return sorted(found)


def _only_first_used(function: Function) -> set[Expr]:
    """Return the calls of which nothing but field 0 is used."""
    fields: dict[Expr, bool] = {}
    counts = use_counts(function)
    taken: dict[Expr, int] = {}
    for node in post_order(function):
        if isinstance(node, TupleGetItem):
            value = node.tuple_value
            taken[value] = taken.get(value, 0) + 1
            fields[value] = fields.get(value, True) and node.index == 0
    return {value for value, first in fields.items() if first and counts[value] == taken[value]}


def linear_chain(norm: Call, uses: dict[Expr, int], closed: set[Expr]) -> list[Call] | None:
    """Return the layer that feeds `norm`, after its bias if there is one; used nowhere else."""
    chain: list[Call] = []
    node = norm.args[0]
    while isinstance(node, Call) and isinstance(node.op, OpDef) and uses[node] == 1:
        chain.append(node)
        if node.op.has(Linear):
            return chain if node.args[1] in closed else None
        if node.op.name not in ("nn.bias_add", "add") or len(chain) > 1:
            return None
        if node.args[1] not in closed:
            return None
        node = node.args[0]
    return None


def _linear_layer(norm: Call, *, has_bias: bool) -> Call | None:
    """Return the rewritten layer below a rewritten batch norm, if it still is one."""
    node = norm.args[0]
    if has_bias:
        node = node.args[0] if isinstance(node, Call) else node
    return node if isinstance(node, Call) and has_trait(node, Linear) else None


def _fold_into_layer(norm: Call, layer: Call, *, has_bias: bool) -> Expr | None:
    """Return the layer with the norm in its weight and bias; None where it does not fit."""
    data, weight = norm.args[0], layer.args[1]
    if not isinstance(data.type, TensorType) or not isinstance(weight.type, TensorType):
        return None
    if weight.type.dtype != data.type.dtype or not is_float(data.type.dtype):
        return None
    rank = data.type.rank
    axis = normalize_axis(norm.attrs["axis"], rank)
    channel = channel_axis(layer, rank)
    channels = data.type.shape[axis]
    place = weight_place(layer, weight.type, channels)
    if channel != axis or place is None or not _same_dtype(norm, weight.type.dtype):
        return None
    scale, shift = _scale_and_shift(norm)
    factor = spread(scale, weight.type, channels, *place)
    if factor is None:
        return None
    if has_bias:
        bias = bias_vector(data, axis)
        if bias is None:
            return None
        shift = call("add", call("multiply", bias, scale), shift)
    scaled = call("multiply", weight, factor)
    name = layer.op.name if isinstance(layer.op, OpDef) else ""
    result = call(name, layer.args[0], scaled, span=layer.span, **layer.attrs)
    return call("nn.bias_add", result, shift, axis=axis, span=norm.span)


def channel_axis(layer: Call, rank: int) -> int | None:
    """Return the axis of a layer's result that its filters are on."""
    if "data_layout" not in layer.attrs:
        return rank - 1
    layout = layer.attrs["out_layout"] or layer.attrs["data_layout"]
    return layout.index("C") if len(layout) == rank and layout.isupper() else None


def weight_place(layer: Call, weight: TensorType, channels: Dim) -> tuple[int, int | None] | None:
    """Return the axis of a weight that counts filters, and the axis that counts groups of them.

    In groups, a transposed convolution's weight is (in, out / groups, ...): filter f is entry
    f % (out / groups) of its output axis, in the part of the input axis for its group. A
    depthwise weight of several filters a channel is (in, filters / in, ...).
    """
    if "kernel_layout" not in layer.attrs:
        return 0, None
    layout = layer.attrs["kernel_layout"]
    if len(layout) != weight.rank or not layout.isupper() or "G" in layout:
        return None
    out_axis, in_axis = layout.index("O"), layout.index("I")
    if weight.shape[out_axis] == channels:
        return out_axis, None
    usual = layer.op.attributes["kernel_layout"].default if isinstance(layer.op, OpDef) else "OI"
    transposed = usual.index("I") < usual.index("O")
    return (out_axis, in_axis) if transposed else (in_axis, out_axis)


def spread(
    scale: Expr, weight: TensorType, channels: Dim, axis: int, other: int | None
) -> Expr | None:
    """Return a vector of filters reshaped so that it broadcasts against the weight.

    With `other`, filters are counted by groups along `other`, and inside a group along `axis`.
    """
    lengths: list[Dim] = [1] * weight.rank
    if other is None:
        lengths[axis] = -1
        return call("reshape", scale, newshape=tuple(lengths))
    inner, outer = weight.shape[axis], weight.shape[other]
    if type(channels) is not int or type(inner) is not int or type(outer) is not int:
        return None
    groups = channels // inner
    table: Expr = call("reshape", scale, newshape=(groups, inner))
    if outer != groups:
        table = call("repeat", table, repeats=outer // groups, axis=0)
    if other > axis:
        table = call("transpose", table, axes=(1, 0))
    lengths[axis], lengths[other] = inner, outer
    return call("reshape", table, newshape=tuple(lengths))


def _same_dtype(norm: Call, dtype: str) -> bool:
    types = [argument.type for argument in norm.args[1:]]
    return all(isinstance(type_, TensorType) and type_.dtype == dtype for type_ in types)


def _scale_and_shift(norm: Call) -> tuple[Expr, Expr]:
    """Return the vectors that a batch norm multiplies by and then adds."""
    _, gamma, beta, mean, variance = norm.args
    dtype = mean.type.dtype if isinstance(mean.type, TensorType) else "float32"
    epsilon = Constant(np.array(norm.attrs["epsilon"], dtype=numpy_dtype(dtype)))
    deviation = call("sqrt", call("add", variance, epsilon))
    if norm.attrs["scale"]:
        scale = call("divide", gamma, deviation)
    else:
        one = Constant(np.array(1, dtype=numpy_dtype(dtype)))
        scale = call("divide", one, deviation)
    shift = call("negative", call("multiply", mean, scale))
    if norm.attrs["center"]:
        shift = call("add", beta, shift)
    return scale, shift


def bias_vector(data: Expr, axis: int) -> Expr | None:
    """Return the bias of a rewritten layer as a vector, or None where it is none."""
    if not isinstance(data, Call) or not isinstance(data.op, OpDef):
        return None
    if not isinstance(data.type, TensorType):
        return None
    bias = data.args[1]
    if not isinstance(bias.type, TensorType) or not isinstance(data.args[0].type, TensorType):
        return None
    rank = data.type.rank
    if data.op.name == "nn.bias_add":
        return bias if normalize_axis(data.attrs["axis"], rank) == axis else None
    lengths = (1,) * (rank - bias.type.rank) + bias.type.shape
    if data.args[0].type.rank != rank or len(lengths) != rank:
        return None
    if any(length != 1 for index, length in enumerate(lengths) if index != axis):
        return None
    channels = data.type.shape[axis]
    if lengths[axis] != channels:
        return None
    return bias if bias.type.rank == 1 else call("reshape", bias, newshape=(-1,))


def _expand_norm(norm: Call) -> Expr | None:
    data = norm.args[0]
    if not isinstance(data.type, TensorType) or not _same_dtype(norm, data.type.dtype):
        return None
    rank = data.type.rank
    axis = normalize_axis(norm.attrs["axis"], rank)
    lengths = [1] * rank
    lengths[axis] = -1
    scale, shift = (
        call("reshape", vector, newshape=tuple(lengths)) for vector in _scale_and_shift(norm)
    )
    scaled = call("multiply", data, scale, span=norm.span)
    return call("add", scaled, shift, span=norm.span)
