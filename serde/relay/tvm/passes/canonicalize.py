"""Biases as additions."""

from __future__ import annotations

from typing import ClassVar

from serde.relay.ir import Call, Expr, Function, OpDef, TensorType, call, normalize_axis
from serde.relay.ir.visit import rewrite_function
from serde.relay.tvm.passes.typed import TypedPass

__all__ = ["CanonicalizeOps"]


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
