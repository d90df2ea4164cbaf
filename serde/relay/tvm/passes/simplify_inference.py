"""Norms spelled out as arithmetic, and no dropout, as at inference."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any as AnyValue, ClassVar

from serde.relay.ir import Call, Expr, Function, TensorType, TupleGetItem, call, normalize_axis
from serde.relay.ir.visit import rewrite_function
from serde.relay.tvm.passes.typed import TypedPass, is_call, operator_of, scalar

__all__ = ["SimplifyInference"]


class SimplifyInference(TypedPass):
    """Spell out norms and drop dropout.

    The first field of ``nn.batch_norm`` becomes ``data * scale + shift`` with ``scale = 1 /
    sqrt(variance + epsilon) * gamma``; ``nn.instance_norm``, ``nn.layer_norm``,
    ``nn.group_norm`` and ``nn.l2_normalize`` become means, variances and quotients; the first
    field of ``nn.dropout`` becomes its operand.
    """

    name: ClassVar[str] = "SimplifyInference"

    def transform(self, function: Function) -> Function:
        """Replace calls bottom-up."""
        return rewrite_function(function, lambda _node, new: _simplify(new))


def _simplify(node: Expr) -> Expr:
    if isinstance(node, TupleGetItem):
        value = node.tuple_value
        if node.index == 0 and isinstance(value, Call):
            if is_call(value, "nn.dropout"):
                return value.args[0]
            if is_call(value, "nn.batch_norm"):
                return _batch_norm(value)
        return node
    if not isinstance(node, Call):
        return node
    if is_call(node, "nn.l2_normalize"):
        return _l2_normalize(node)
    if is_call(node, "nn.group_norm"):
        return _group_norm(node)
    if is_call(node, "nn.layer_norm", "nn.instance_norm"):
        return _norm(node)
    return node


def _data_type(node: Call) -> TensorType | None:
    type_ = node.args[0].type
    return type_ if isinstance(type_, TensorType) else None


def _batch_norm(node: Call) -> Expr:
    data, gamma, beta, mean, variance = node.args
    type_ = _data_type(node)
    if type_ is None:
        return node
    dtype, attrs = type_.dtype, node.attrs
    deviation = call("sqrt", call("add", variance, scalar(attrs["epsilon"], dtype)))
    scale: Expr = call("divide", scalar(1, dtype), deviation)
    if attrs["scale"]:
        scale = call("multiply", scale, gamma)
    shift: Expr = call("multiply", call("negative", mean), scale)
    if attrs["center"]:
        shift = call("add", shift, beta)
    axes = [normalize_axis(attrs["axis"], type_.rank)]
    scale, shift = (_expand_to_axes(each, type_.rank, axes) for each in (scale, shift))
    return call("add", call("multiply", data, scale), shift, span=node.span)


def _norm(node: Call) -> Expr:
    type_ = _data_type(node)
    if type_ is None:
        return node
    axis = normalize_axis(node.attrs["axis"], type_.rank)
    reduced = [axis]
    if operator_of(node) == "nn.instance_norm":
        reduced = [each for each in range(1, type_.rank) if each != axis]
    elif node.attrs["axis"] < 0:
        reduced = [node.attrs["axis"]]
    return _affine(node, _standardize(node.args[0], type_, reduced, node), type_.rank, axis)


def _group_norm(node: Call) -> Expr:
    type_ = _data_type(node)
    shape = None if type_ is None else type_.concrete_shape
    if type_ is None or shape is None:
        return node
    axis = normalize_axis(node.attrs["axis"], type_.rank)
    groups = node.attrs["num_groups"]
    parts = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    if prod(parts) != prod(shape):
        return node
    grouped = call("reshape", node.args[0], newshape=parts)
    reduced = [each + 1 for each in range(axis, type_.rank)]
    normal = call("reshape", _standardize(grouped, type_, reduced, node), newshape=shape)
    return _affine(node, normal, type_.rank, axis)


def _standardize(data: Expr, type_: TensorType, axes: Sequence[int], node: Call) -> Expr:
    """Return data less its mean, over the root of its variance and epsilon."""
    attrs: dict[str, AnyValue] = {"axis": tuple(axes), "keepdims": True, "exclude": False}
    mean = call("mean", data, **attrs)
    variance = call("variance", data, mean, **attrs)
    epsilon = scalar(node.attrs["epsilon"], type_.dtype)
    deviation = call("sqrt", call("add", variance, epsilon))
    return call("divide", call("subtract", data, mean), deviation, span=node.span)


def _affine(node: Call, normal: Expr, rank: int, axis: int) -> Expr:
    _, gamma, beta = node.args
    if node.attrs["scale"]:
        normal = call("multiply", normal, _expand_to_axes(gamma, rank, [axis]), span=node.span)
    if node.attrs["center"]:
        normal = call("add", normal, _expand_to_axes(beta, rank, [axis]), span=node.span)
    return normal


def _l2_normalize(node: Call) -> Expr:
    data, type_ = node.args[0], _data_type(node)
    if type_ is None:
        return node
    square = call("multiply", data, data)
    total = call("sum", square, axis=node.attrs["axis"], keepdims=True, exclude=False)
    length = call("sqrt", call("maximum", total, scalar(node.attrs["eps"], type_.dtype)))
    return call("divide", data, length, span=node.span)


def _expand_to_axes(vector: Expr, rank: int, axes: Sequence[int]) -> Expr:
    """Return a tensor with the axes `axes` of a larger one, with axes of length 1 between.

    Axes in front are left to broadcasting.
    """
    after = rank
    for index in reversed(range(len(axes))):
        missing = after - axes[index] - 1
        if missing > 0:
            vector = call("expand_dims", vector, axis=index + 1, num_newaxis=missing)
        after = axes[index]
    return vector
