"""Nodes, types and what compares them, where ``tvm.ir`` has them; its modules are this one, too."""

from __future__ import annotations

import sys

from serde.core.lazy import lazy_names

__path__: list[str] = []  # Such as `tvm.ir.module`, which is this module.

Array, Map = tuple, dict
container = sys.modules[__name__]

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay": (
            "Constructor FuncType GlobalTypeVar GlobalVar IRModule IncompleteType Op RelayExpr "
            "RelayRefType SequentialSpan SourceName Span TensorAffineType TensorType "
            "TupleAffineType TupleType Type TypeCall TypeConstraint TypeData TypeKind "
            "TypeRelation TypeVar assert_structural_equal load_json save_json "
            "structural_equal structural_hash"
        ),
        "serde.relay.ir.attrs": "Attrs register_op_attr",
        "serde.relay.transform": "instrument transform",
    },
)
