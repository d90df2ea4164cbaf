"""Relay, the functional graph IR of TVM up to 0.19, in Python and NumPy.

The pivot between formats. Operators are attributes of this package, as ``relay.add`` or
``relay.nn.conv2d``, called as TVM's builders are. What is asked for is loaded then.
"""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _AnyValue

from serde._lazy import lazy_names

_BACKEND = ("load_param_dict", "save_param_dict", "to_onnx")
LATER = {"frontend": "serde.compat.frontend", **dict.fromkeys(_BACKEND, "serde.compat.backend")}


def _registry() -> _AnyValue:
    """Return the registry; a package that loads parts of itself can deadlock between threads."""
    return _importlib.import_module("serde.relay.ir.registry")


def _find(name: str) -> _AnyValue:
    if name in LATER:
        module = _importlib.import_module(LATER[name])
        return getattr(module, name, module)
    return _registry().lookup_builder(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *LATER, *_registry().builder_names()})


_HOMES = {
    "serde.relay.dataflow_pattern": "dataflow_pattern",
    "serde.relay.op": "op",
    "serde.relay.transform": "transform",
    "serde.relay.ir.adt": "Clause Constructor Match Pattern PatternConstructor PatternTuple "
    "PatternVar PatternWildcard TypeData",
    "serde.relay.ir.bind": "bind",
    "serde.relay.ir.compare": "assert_structural_equal structural_equal",
    "serde.relay.ir.dims": "Any symbol",
    "serde.relay.ir.expr": "Call Constant Expr Function GlobalVar If Let Span Tuple TupleGetItem "
    "TupleWrapper Var const var",
    "serde.relay.ir.functor": "ExprFunctor ExprMutator ExprVisitor MixedModeMutator",
    "serde.relay.ir.hashing": "structural_hash",
    "serde.relay.ir.loops": "loops",
    "serde.relay.ir.model": "ModelMeta RelayModel",
    "serde.relay.ir.module": "IRModule",
    "serde.relay.ir.refs": "RefCreate RefRead RefWrite",
    "serde.relay.ir.types": "FuncType GlobalTypeVar IncompleteType RefType RelayRefType "
    "SequenceType TensorType TupleType Type TypeCall TypeConstraint TypeKind TypeRelation TypeVar",
    "serde.relay.ir.verify": "verify",
    "serde.relay.run.executor": "create_executor",
    "serde.relay.text.parser": "fromtext",
}
__getattr__, __all__ = lazy_names(__name__, _HOMES, _find)
