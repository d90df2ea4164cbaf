"""Casts where they are used, and biases as additions."""

from __future__ import annotations

from typing import ClassVar

from serde.core.weights import numpy_dtype
from serde.relay.ir import Call, Expr, Function, OpDef, TensorType, call, normalize_axis, pattern_of
from serde.relay.ir.traits import FusionPattern
from serde.relay.ir.visit import children, post_order, rewrite_function
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["CanonicalizeCast", "CanonicalizeOps"]


class CanonicalizeCast(TypedPass):
    """Give each elementwise user of a widening cast a cast of its own.

    A cast to more bytes that several operators share keeps them apart in :class:`FuseOps`;
    with its own copy each takes the narrow value. What is not elementwise or broadcasting
    keeps the shared cast.
    """

    name: ClassVar[str] = "CanonicalizeCast"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Copy casts below their users."""
        shared = _shared_casts(function)

        def replace(node: Expr, new: Expr) -> Expr:
            if not isinstance(node, Call) or not isinstance(new, Call) or not _spreads(node):
                return new
            copies: dict[Expr, Expr] = {}
            for old, argument in zip(node.args, new.args, strict=True):
                if old in shared and isinstance(argument, Call):
                    copies.setdefault(argument, _copy(argument))
            if not copies:
                return new
            args = [copies.get(argument, argument) for argument in new.args]
            result = Call(new.op, args, new.attrs, span=new.span)
            result.type = new.type
            return result

        return rewrite_function(function, replace)


def _copy(node: Call) -> Call:
    new = Call(node.op, node.args, node.attrs, span=node.span)
    new.type = node.type
    return new


def _spreads(node: Call) -> bool:
    return isinstance(node.op, OpDef) and pattern_of(node.op) <= FusionPattern.BROADCAST


def _shared_casts(function: Function) -> set[Expr]:
    users: dict[Expr, int] = {}
    for node in post_order(function):
        for child in set(children(node)):
            if _is_widening(child):
                users[child] = users.get(child, 0) + 1
    return {node for node, count in users.items() if count > 1}


def _is_widening(node: Expr) -> bool:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef) or node.op.name != "cast":
        return False
    source = node.args[0].type
    if not isinstance(source, TensorType) or not isinstance(node.type, TensorType):
        return False
    return numpy_dtype(source.dtype).itemsize < numpy_dtype(node.type.dtype).itemsize


class CanonicalizeOps(TypedPass):
    """Write ``nn.bias_add`` as ``add`` of the bias with axes of length 1 after its own."""

    name: ClassVar[str] = "CanonicalizeOps"
    opt_level: ClassVar[int] = 3

    def transform(self, function: Function) -> Function:
        """Replace calls bottom-up."""
        return rewrite_function(function, lambda _node, new: _without_bias(new))


def _without_bias(node: Expr) -> Expr:
    if not isinstance(node, Call) or not isinstance(node.op, OpDef):
        return node
    if node.op.name != "nn.bias_add" or not isinstance(node.type, TensorType):
        return node
    data, bias = node.args
    after = node.type.rank - 1 - normalize_axis(node.attrs["axis"], node.type.rank)
    if after:
        bias = call("expand_dims", bias, axis=1, num_newaxis=after, span=node.span)
    return call("add", data, bias, span=node.span)
