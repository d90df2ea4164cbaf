"""Norms spelled out as arithmetic, and no dropout, as at inference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar, Final

from serde.relay.ir import Call, Expr, Function, TensorType, TupleGetItem, call, normalize_axis
from serde.relay.ir.visit import rewrite_function
from serde.relay.op.norm.bodies import scale_and_shift
from serde.relay.tvm.passes.typed import TypedPass, operator_of, scalar

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
    table, found = _CALLS, node
    if isinstance(node, TupleGetItem) and node.index == 0:
        table, found = _FIELDS, node.tuple_value
    spell = table.get(operator_of(found))
    if spell is None or not isinstance(found, Call):
        return node
    type_ = found.args[0].type
    return (spell(found, type_) if isinstance(type_, TensorType) else None) or node


def _batch_norm(node: Call, type_: TensorType) -> Expr:
    data, gamma, beta, mean, variance = node.args
    deviation = call("sqrt", call("add", variance, scalar(node.attrs["epsilon"], type_.dtype)))
    scale: Expr = call("divide", scalar(1, type_.dtype), deviation)
    if node.attrs["scale"]:
        scale = call("multiply", scale, gamma)
    shift: Expr = call("multiply", call("negative", mean), scale)
    if node.attrs["center"]:
        shift = call("add", shift, beta)
    return scale_and_shift(data, scale, shift, node.attrs["axis"], span=node.span)


def _norm(node: Call, type_: TensorType) -> Expr:
    axis = normalize_axis(node.attrs["axis"], type_.rank)
    reduced = [axis]
    if operator_of(node) == "nn.instance_norm":
        reduced = [each for each in range(1, type_.rank) if each != axis]
    elif node.attrs["axis"] < 0:
        reduced = [node.attrs["axis"]]
    return _affine(node, _standardize(node.args[0], type_, reduced, node))


def _group_norm(node: Call, type_: TensorType) -> Expr | None:
    shape = type_.concrete_shape
    if shape is None:
        return None
    axis = normalize_axis(node.attrs["axis"], type_.rank)
    groups = node.attrs["num_groups"]
    parts = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    if prod(parts) != prod(shape):
        return None
    grouped = call("reshape", node.args[0], newshape=parts)
    reduced = [each + 1 for each in range(axis, type_.rank)]
    return _affine(
        node, call("reshape", _standardize(grouped, type_, reduced, node), newshape=shape)
    )


def _standardize(data: Expr, type_: TensorType, axes: Sequence[int], node: Call) -> Expr:
    """Return data less its mean, over the root of its variance and epsilon."""
    mean = call("mean", data, axis=tuple(axes), keepdims=True)
    variance = call("variance", data, mean, axis=tuple(axes), keepdims=True)
    deviation = call("sqrt", call("add", variance, scalar(node.attrs["epsilon"], type_.dtype)))
    return call("divide", call("subtract", data, mean), deviation, span=node.span)


def _affine(node: Call, normal: Expr) -> Expr:
    _, gamma, beta = node.args
    attrs = node.attrs
    factor, term = gamma if attrs["scale"] else None, beta if attrs["center"] else None
    return scale_and_shift(normal, factor, term, attrs["axis"], span=node.span)


def _l2_normalize(node: Call, type_: TensorType) -> Expr:
    data = node.args[0]
    total = call("sum", call("multiply", data, data), axis=node.attrs["axis"], keepdims=True)
    length = call("sqrt", call("maximum", total, scalar(node.attrs["eps"], type_.dtype)))
    return call("divide", data, length, span=node.span)


_CALLS: Final[dict[str, Callable[[Call, TensorType], Expr | None]]] = {
    "nn.group_norm": _group_norm,
    "nn.instance_norm": _norm,
    "nn.l2_normalize": _l2_normalize,
    "nn.layer_norm": _norm,
}
_FIELDS: Final[dict[str, Callable[[Call, TensorType], Expr | None]]] = {
    "nn.batch_norm": _batch_norm,
    "nn.dropout": lambda node, _type: node.args[0],
}
