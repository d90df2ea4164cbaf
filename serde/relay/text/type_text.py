"""Types and dimensions as text."""

from __future__ import annotations

from serde.errors import RelayError
from serde.relay.ir.dims import Any, Dim, SymDim, substitute, symbol
from serde.relay.ir.types import FuncType, SequenceType, TensorType, TupleType, Type
from serde.relay.text.literals import escape
from serde.relay.text.names import is_symbol

__all__ = ["dim_text", "has_sequence", "has_symbols", "type_text"]

_BARE = ("int", "uint", "float", "bool")


def dim_text(dim: Dim, *, strict: bool = False) -> str:
    """Return a dimension as text; strict text has no names and shows ``?``."""
    if type(dim) is int:
        return str(dim)
    if strict or isinstance(dim, Any):
        return "?"
    if not isinstance(dim, SymDim):
        return str(int(dim))
    odd = {name: symbol(escape(name)) for name in dim.symbols() if not is_symbol(name)}
    return str(substitute(dim, odd) if odd else dim)


def type_text(type_: Type, *, strict: bool = False) -> str:
    """Return a type as text.

    Raises:
        RelayError: It is strict text, which has no sequences.
    """
    if isinstance(type_, TensorType):
        if not type_.shape and type_.dtype.startswith(_BARE):
            return type_.dtype
        dims = ", ".join([dim_text(dim, strict=strict) for dim in type_.shape])
        return f"Tensor[({dims}), {type_.dtype}]"
    if isinstance(type_, TupleType):
        inner = ", ".join([type_text(field, strict=strict) for field in type_.fields])
        return f"({inner},)" if len(type_.fields) == 1 else f"({inner})"
    if isinstance(type_, SequenceType):
        if strict:
            raise RelayError(f"TVM's text cannot hold a {type_!r}")
        return f"Sequence[{type_text(type_.element)}]"
    arguments = ", ".join([type_text(arg, strict=strict) for arg in type_.arg_types])
    return f"fn ({arguments}) -> {type_text(type_.ret_type, strict=strict)}"


def has_symbols(type_: Type | None) -> bool:
    """Whether a dimension in `type_` has a name."""
    if isinstance(type_, TensorType):
        return any(isinstance(dim, SymDim) for dim in type_.shape)
    if isinstance(type_, TupleType):
        return any(has_symbols(field) for field in type_.fields)
    if isinstance(type_, SequenceType):
        return has_symbols(type_.element)
    if isinstance(type_, FuncType):
        return has_symbols(type_.ret_type) or any(has_symbols(arg) for arg in type_.arg_types)
    return False


def has_sequence(type_: Type | None) -> bool:
    """Whether a sequence is or lies in `type_`."""
    if isinstance(type_, TupleType):
        return any(has_sequence(field) for field in type_.fields)
    if isinstance(type_, FuncType):
        return has_sequence(type_.ret_type) or any(has_sequence(arg) for arg in type_.arg_types)
    return isinstance(type_, SequenceType)
