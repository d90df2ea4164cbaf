"""Nodes of expressions and what makes them, where ``tvm.relay.expr`` has them."""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.ir.expr": (
            "Attrs Call Constant Expr GlobalVar If Let RelayExpr Tuple TupleGetItem TupleWrapper "
            "Var const var"
        ),
        "serde.relay.ir.copies": (
            "CallWithFields ConstantWithFields IfWithFields LetWithFields RefCreateWithFields "
            "RefReadWithFields RefWriteWithFields TupleGetItemWithFields TupleWithFields "
            "VarWithFields bind"
        ),
        "serde.relay.ir.refs": "RefCreate RefRead RefWrite",
    },
)
