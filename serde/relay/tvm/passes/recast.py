"""Calls of some operators computed in another dtype, with casts around each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any as AnyValue

from serde.errors import RelayError
from serde.relay.ir import Call, Expr, IRModule, TensorType, Tuple, TupleWrapper, astuple, call
from serde.relay.ir.registry import called_name, get
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
    """Return a program in which some operators take and give other dtypes.

    Each operand is cast to `dtype`, and the result back to what it was. Nothing is scaled: what
    `dtype` does not hold is lost. Source: ``recast`` of TVM 0.18.

    Args:
        expr: An expression, or a module, of which ``main`` is meant.
        dtype: dtype of the operands.
        out_dtype: The attribute ``out_dtype`` of those operators that have one.
        ops: Names of the operators, ``nn.conv2d`` alone by default.
        skip_layers: Which of them stay: a call is numbered from 0 on, from the first of the
            longest chain, by how many follow it on the way to the result through first operands;
            -1 is the last.

    Raises:
        RelayError: There is no such operator, or one yields no single tensor.
    """
    names = {get(name).name for name in ops or ("nn.conv2d",)}
    root = expr["main"] if isinstance(expr, IRModule) else astuple(expr)
    count = count_layers(root, tuple(names))
    skipped = {layer % count if -count <= layer < 0 else layer for layer in skip_layers or ()}
    after = _count_following(root, names)

    def replace(old: Expr, new: Expr) -> Expr:
        if called_name(old) not in names or count - after[old] - 1 in skipped:
            return new
        return _recast_call(old, new, dtype, out_dtype)

    found = rewrite(root, replace)
    return expr.with_main(found, checked=False) if isinstance(expr, IRModule) else found


def _count_following(root: Expr, names: Collection[str]) -> dict[Expr, int]:
    """Return of each node how many of the operators come after it."""
    found: dict[Expr, int] = {}
    pending = [(root, 0)]
    while pending:
        node, after = pending.pop()
        if node in found:
            continue
        found[node] = after
        first, *others = *children(node), None
        own = after + (called_name(node) in names)
        pending += [(each, after) for each in reversed(others) if each is not None]
        pending += [(first, own)] if first is not None else []
    return found


def _recast_call(old: AnyValue, new: AnyValue, dtype: str, out_dtype: str) -> Expr:
    args = list(new.args)
    if called_name(new) == "concatenate":
        if not isinstance(args[0], Tuple):
            return new  # type: ignore[no-any-return]
        args = [Tuple([call("cast", each, dtype=dtype) for each in args[0].fields])]
    else:
        args = [call("cast", each, dtype=dtype) for each in args]
    attrs = dict(new.attrs)
    if "out_dtype" in attrs:
        attrs["out_dtype"] = out_dtype
    type_ = old.type or InferTypeLocal(old)
    if not isinstance(type_, TensorType):
        raise RelayError(f"{called_name(old)} yields {type_!r}, which no cast takes")
    made: Call = call(called_name(new), *args, **attrs)
    return call("cast", made, dtype=type_.dtype)
