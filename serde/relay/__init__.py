"""Relay, the functional graph IR of TVM up to 0.19, in Python and NumPy.

The pivot between formats. Operators are attributes of this package, as
``relay.add`` or ``relay.nn.conv2d``, called as TVM's builders are.
"""

from __future__ import annotations

import importlib as _importlib

from serde.relay import op, transform
from serde.relay.ir import loops
from serde.relay.ir import registry as _registry
from serde.relay.ir.compare import assert_structural_equal, structural_equal
from serde.relay.ir.dims import Any, symbol
from serde.relay.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Span,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    const,
    var,
)
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import FuncType, SequenceType, TensorType, TupleType
from serde.relay.ir.verify import verify
from serde.relay.run.executor import create_executor
from serde.relay.text import fromtext

__all__ = [
    "Any", "Call", "Constant", "Expr", "FuncType", "Function", "GlobalVar", "IRModule", "If", "Let",
    "ModelMeta", "RelayModel", "SequenceType", "Span", "TensorType", "Tuple", "TupleGetItem",
    "TupleType", "TupleWrapper", "Var", "assert_structural_equal", "const", "create_executor",
    "fromtext", "loops", "op", "structural_equal", "symbol", "transform", "var", "verify",
]  # fmt: skip

_BACKEND = ("load_param_dict", "save_param_dict", "to_onnx")
LATER = {"frontend": "serde.compat.frontend", **dict.fromkeys(_BACKEND, "serde.compat.backend")}


def __getattr__(name: str) -> object:
    if name in LATER:
        module = _importlib.import_module(LATER[name])
        return getattr(module, name, module)
    if name.startswith("_") or not (found := _registry.lookup_builder(name)):
        raise AttributeError(f"module 'serde.relay' has no attribute {name!r}")
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *LATER, *_registry.builder_names()})
