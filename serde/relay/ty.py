"""Types and what makes them, where ``tvm.relay.ty`` has them."""

from __future__ import annotations

from typing import Any as AnyValue

from serde.core.lazy import lazy_names
from serde.relay.ir.dims import Any as AnyDim
from serde.relay.ir.types import FuncType, TensorType, TupleType, Type

__getattr__, __dir__, _LATER = lazy_names(
    __name__,
    {
        "serde.relay.ir.dims": "Any",
        "serde.relay.ir.types": (
            "FuncType GlobalTypeVar IncompleteType Kind RefType TensorType TupleType Type TypeCall "
            "TypeConstraint TypeKind TypeRelation TypeVar"
        ),
    },
)
__all__ = ["is_dynamic", "scalar_type", "type_has_any", *_LATER]


def scalar_type(dtype: AnyValue) -> TensorType:
    """Return the type of a scalar."""
    return TensorType((), dtype)


def is_dynamic(tensor_type: Type) -> bool:
    """Whether a tensor in a type has an axis of which nothing is known."""
    pending = [tensor_type]
    while pending:
        type_ = pending.pop()
        if isinstance(type_, TensorType):
            if any(isinstance(dim, AnyDim) for dim in type_.shape):
                return True
        elif isinstance(type_, TupleType):
            pending.extend(type_.fields)
        elif isinstance(type_, FuncType):
            pending.extend((*type_.arg_types, type_.ret_type))
    return False


type_has_any = is_dynamic
