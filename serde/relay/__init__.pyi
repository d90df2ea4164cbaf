from typing import Any as _AnyValue

from serde.relay import op, transform
from serde.relay.ir import loops
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

def __getattr__(name: str) -> _AnyValue: ...
