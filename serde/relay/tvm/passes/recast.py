"""Calls of some operators computed in another dtype, with casts around each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import Expr, IRModule, TensorType, Tuple, TupleWrapper, astuple, call
from serde.relay.ir.registry import called_name
from serde.relay.ir.visit import children, rewrite
from serde.relay.tvm.analysis.counting import count_layers
from serde.relay.tvm.programs import InferTypeLocal

__all__ = ["recast"]


def recast(
    expr: Expr | TupleWrapper | IRModule,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] | None = None,
    skip_layers: Sequence[int] | None = None,
) -> AnyValue:
    """Return a program in which calls of some operators take and give other dtypes.

    Operands are cast to `dtype`, and results back to what they were. Nothing is scaled: what
    `dtype` does not hold is lost. Source: ``recast`` of TVM 0.18.

    Args:
        expr: An expression, or a module, of which ``main`` is meant.
        dtype: dtype of the operands.
        out_dtype: The attribute ``out_dtype`` of those operators that have one.
        ops: Names of the operators, ``nn.conv2d`` by default.
        skip_layers: Calls that stay, by the number of such calls before them in the longest chain;
            -1 is the last. Calls behind one are counted where it is their first operand.

    Raises:
        RelayError: An operator yields no single tensor.
    """
    ops = ("nn.conv2d",) if ops is None else ops
    root = expr["main"] if isinstance(expr, IRModule) else astuple(expr)
    count = count_layers(root, ops)
    skipped = {layer + count if layer < 0 else layer for layer in skip_layers or ()}
    behind = _count_behind(root, ops)

    def replace(old: Expr, new: Expr) -> Expr:
        stays = called_name(old) not in ops or count - behind[old] - 1 in skipped
        return new if stays else _recast_call(old, new, dtype, out_dtype)

    found: AnyValue = rewrite(root, replace)
    return expr.with_main(found, checked=False) if isinstance(expr, IRModule) else found


def _count_behind(root: Expr, ops: Collection[str]) -> dict[Expr, int]:
    found: dict[Expr, int] = {}
    pending = [(root, 0)]
    while pending:
        node, count = pending.pop()
        if node not in found:
            found[node] = count
            below = [(each, count) for each in children(node)]
            if below and called_name(node) in ops:
                below[0] = (below[0][0], count + 1)
            pending += reversed(below)
    return found


def _recast_call(old: AnyValue, new: AnyValue, dtype: str, out_dtype: str) -> Expr:
    operands = new.args[0].fields if isinstance(new.args[0], Tuple) else new.args
    if called_name(new) == "concatenate" and operands is new.args:
        return new
    args = [call("cast", each, dtype=dtype) for each in operands]
    attrs = {**new.attrs, **({"out_dtype": out_dtype} if "out_dtype" in new.attrs else {})}
    type_ = old.type or InferTypeLocal(old)
    if not isinstance(type_, TensorType):
        raise RelayError(f"{called_name(old)} yields {type_!r}, which no cast takes")
    made = call(called_name(new), *(args if operands is new.args else [Tuple(args)]), **attrs)
    return call("cast", made, dtype=type_.dtype)
