"""Nodes, types and what compares them, where ``tvm.ir`` has them; its modules are this one, too."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.compat.tvm.absent import NotReachedError
from serde.core.lazy import lazy_names
from serde.relay.ir import Attrs

__path__: list[str] = []  # Such as `tvm.ir.module`, which is found as this module.


def make_node(type_key: str, **fields: AnyValue) -> Attrs:
    """Return attributes by name, the one kind of node that has no builder.

    Raises:
        NotReachedError: Another kind is asked for.
    """
    if type_key != "DictAttrs":
        raise NotReachedError(f"make_node makes DictAttrs only, no {type_key}; see its builder")
    return Attrs(fields)


__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay": (
            "Constructor FuncType GlobalTypeVar GlobalVar IRModule IncompleteType Op RelayExpr "
            "RelayRefType SequentialSpan SourceName Span TensorAffineType TensorType "
            "TupleAffineType TupleType Type TypeCall TypeConstraint TypeData TypeKind "
            "TypeRelation TypeVar assert_structural_equal load_json structural_equal "
            "structural_hash"
        ),
        "serde.relay.ir.attrs": "register_op_attr",
        "serde.relay.ir.expr": "Attrs",
        "serde.relay.transform": "instrument transform",
        __name__: "make_node",
    },
)
