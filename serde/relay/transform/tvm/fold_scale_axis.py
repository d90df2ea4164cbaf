"""Scales of channels folded into the weights of the layer before or after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeGuard

from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Call, Expr, Function
from serde.relay.ir.registry import OpDef, call, has_trait
from serde.relay.ir.traits import Linear
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import rewrite, use_counts
from serde.relay.transform.base import FunctionPass
from serde.relay.transform.closed import closed_nodes
from serde.relay.transform.fold_batch_norm import (
    bias_vector,
    channel_axis,
    linear_chain,
    spread,
    weight_place,
)

__all__ = ["BackwardFoldScaleAxis", "FoldScaleAxis", "ForwardFoldScaleAxis"]


def _find_closed(function: Function, weights: frozenset[str] | None) -> set[Expr]:
    names = {param.name_hint for param in function.params} if weights is None else weights
    return closed_nodes(function, names)


@dataclass(frozen=True)
class BackwardFoldScaleAxis(FunctionPass):
    """Fold ``multiply`` by a scale of channels into the layer that feeds it alone.

    The layer is a convolution, transposed convolution or dense layer, with or without a bias;
    scale, weight and bias are expressions of weights. Products are rounded in another place.

    Args:
        weights: Names of the parameters that are weights; None for all.
    """

    name: ClassVar[str] = "BackwardFoldScaleAxis"

    weights: frozenset[str] | None = None

    def transform(self, function: Function) -> Function:
        """Fold bottom-up, so that scales in a row are all folded."""
        closed = _find_closed(function, self.weights)
        uses = use_counts(function)
        layers: dict[Expr, Expr] = {}

        def fold(node: Expr, new: Expr) -> Expr:
            if not _is_multiply(node) or not _is_multiply(new):
                return new
            place = next((i for i in (1, 0) if node.args[i] in closed), None)
            if place is None or node.args[1 - place] in closed:
                return new
            source = node.args[1 - place]
            layer = layers.get(source, source) if uses[source] == 1 else source
            chain = linear_chain(Call(node.op, [layer, node.args[place]]), uses, closed)
            if chain is None:
                return new
            folded = _scale_layer(new.args[1 - place], new.args[place], has_bias=len(chain) == 2)
            if folded is None:
                return new
            layers[node] = layer
            return folded

        result = rewrite(function, fold)
        return result if isinstance(result, Function) else function

    def transform_body(self, body: Function) -> Function:
        """Fold in the body of a loop, none of whose parameters is a weight."""
        return replace(self, weights=frozenset()).transform(body)


@dataclass(frozen=True)
class ForwardFoldScaleAxis(FunctionPass):
    """Fold ``multiply`` by a scale of channels into the layer that alone it feeds.

    The layer is a convolution or transposed convolution in one group, or a dense layer; scale
    and weight are expressions of weights. Products are rounded in another place.

    Args:
        weights: Names of the parameters that are weights; None for all.
    """

    name: ClassVar[str] = "ForwardFoldScaleAxis"

    weights: frozenset[str] | None = None

    def transform(self, function: Function) -> Function:
        """Fold bottom-up."""
        closed = _find_closed(function, self.weights)
        uses = use_counts(function)

        def fold(node: Expr, new: Expr) -> Expr:
            if not isinstance(node, Call) or not isinstance(new, Call):
                return new
            if not has_trait(node, Linear):
                return new
            product = node.args[0]
            if node.args[1] not in closed or uses[product] != 1 or not _is_multiply(product):
                return new
            place = next((i for i in (1, 0) if product.args[i] in closed), None)
            if place is None or product.args[1 - place] in closed or not _is_multiply(new.args[0]):
                return new
            folded = _absorb_scale(new, new.args[0].args[1 - place], new.args[0].args[place])
            return new if folded is None else folded

        result = rewrite(function, fold)
        return result if isinstance(result, Function) else function

    def transform_body(self, body: Function) -> Function:
        """Fold in the body of a loop, none of whose parameters is a weight."""
        return replace(self, weights=frozenset()).transform(body)


@dataclass(frozen=True)
class FoldScaleAxis(FunctionPass):
    """Fold scales backward into the layers before them, then forward into those after them.

    Args:
        weights: Names of the parameters that are weights; None for all.
    """

    name: ClassVar[str] = "FoldScaleAxis"

    weights: frozenset[str] | None = None

    def transform(self, function: Function) -> Function:
        """Run both passes."""
        backward = BackwardFoldScaleAxis(self.weights).transform(function)
        return ForwardFoldScaleAxis(self.weights).transform(backward)

    def transform_body(self, body: Function) -> Function:
        """Fold in the body of a loop, none of whose parameters is a weight."""
        return replace(self, weights=frozenset()).transform(body)


def _name(node: Expr) -> str:
    return node.op.name if isinstance(node, Call) and isinstance(node.op, OpDef) else ""


def _is_multiply(node: Expr) -> TypeGuard[Call]:
    return _name(node) == "multiply"


def _scale_layer(data: Expr, scale: Expr, *, has_bias: bool) -> Expr | None:
    """Return a rewritten layer, or a layer and its bias, times a scale of its channels."""
    layer = data.args[0] if has_bias and isinstance(data, Call) else data
    if not isinstance(layer, Call) or not has_trait(layer, Linear):
        return None
    weight = layer.args[1]
    if not isinstance(layer.type, TensorType) or not isinstance(weight.type, TensorType):
        return None
    if not isinstance(data.type, TensorType) or weight.type.dtype != data.type.dtype:
        return None
    axis = channel_axis(layer, layer.type.rank)
    if axis is None:
        return None
    channels = layer.type.shape[axis]
    place = weight_place(layer, weight.type, channels)
    vector = _vector(scale, data.type, axis)
    if place is None or vector is None:
        return None
    factor = spread(vector, weight.type, channels, *place)
    if factor is None:
        return None
    weight = call("multiply", weight, factor)
    result = call(_name(layer), layer.args[0], weight, span=layer.span, **layer.attrs)
    if not has_bias:
        return result
    bias = bias_vector(data, axis)
    if bias is None:
        return None
    return call("nn.bias_add", result, call("multiply", bias, vector), axis=axis, span=data.span)


def _absorb_scale(layer: Call, data: Expr, scale: Expr) -> Expr | None:
    """Return a layer on `data` whose weight has taken in the scale of its input channels."""
    weight = layer.args[1]
    product = layer.args[0].type
    if not isinstance(weight.type, TensorType) or not isinstance(product, TensorType):
        return None
    if data.type != product or weight.type.dtype != product.dtype:
        return None
    if _name(layer) == "nn.dense":
        axis, inputs = product.rank - 1, 1
    else:
        data_layout, kernel_layout = layer.attrs["data_layout"], layer.attrs["kernel_layout"]
        if layer.attrs["groups"] != 1 or len(kernel_layout) != weight.type.rank:
            return None
        axis, inputs = data_layout.index("C"), kernel_layout.index("I")
    vector = _vector(scale, product, axis)
    if vector is None or weight.type.shape[inputs] != product.shape[axis]:
        return None
    lengths: list[Dim] = [1] * weight.type.rank
    lengths[inputs] = -1
    factor = call("reshape", vector, newshape=tuple(lengths))
    scaled = call("multiply", weight, factor)
    return call(_name(layer), data, scaled, span=layer.span, **layer.attrs)


def _vector(scale: Expr, data: TensorType, axis: int) -> Expr | None:
    """Return a scale as a vector of channels, or None where it scales something else."""
    channels = data.shape[axis]
    if not isinstance(scale.type, TensorType) or type(channels) is not int:
        return None
    shape = (1,) * (data.rank - scale.type.rank) + scale.type.shape
    if scale.type.rank > data.rank or scale.type.dtype != data.dtype:
        return None
    if any(length != 1 for place, length in enumerate(shape) if place != axis):
        return None
    if shape[axis] not in (1, channels):
        return None
    vector = scale if scale.type.rank == 1 else call("reshape", scale, newshape=(-1,))
    if shape[axis] == channels:
        return vector
    return call("broadcast_to", vector, shape=(channels,))
