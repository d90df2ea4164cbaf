"""Types and dimensions as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from serde.errors import RelayError
from serde.relay.ir.dims import Any, Dim, SymDim, substitute, symbol
from serde.relay.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    SequenceType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    walk_type,
)
from serde.relay.text.literals import escape
from serde.relay.text.names import is_identifier, is_symbol

__all__ = ["dim_text", "has_sequence", "has_symbols", "named_type_text", "type_text"]

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


def type_text(
    type_: Type, *, strict: bool = False, names: Mapping[TypeVar, str] | None = None
) -> str:
    """Return a type as text.

    Args:
        type_: The type.
        strict: Whether the text is legal for TVM.
        names: How type variables are printed; others are by their own names.

    Raises:
        RelayError: It is strict text, which has no sequences, or a name has no form in text.
    """
    if isinstance(type_, TensorType):
        if not type_.shape and type_.dtype.startswith(_BARE):
            return type_.dtype
        dims = ", ".join([dim_text(dim, strict=strict) for dim in type_.shape])
        return f"Tensor[({dims}), {type_.dtype}]"
    if isinstance(type_, TupleType):
        inner = _list_text(type_.fields, strict, names)
        return f"({inner},)" if len(type_.fields) == 1 else f"({inner})"
    if isinstance(type_, SequenceType):
        if strict:
            raise RelayError(f"TVM's text cannot hold a {type_!r}")
        return f"Sequence[{type_text(type_.element)}]"
    if isinstance(type_, FuncType):
        params = [(names or {}).get(each, each.name_hint) for each in type_.type_params]
        arguments = _list_text(type_.arg_types, strict, names)
        result = type_text(type_.ret_type, strict=strict, names=names)
        generic = f"[{', '.join(params)}]" if params else ""
        return f"fn {generic}({arguments}) -> {result}"
    return _name_text(type_, strict, names)


def _name_text(
    type_: TypeCall | TypeVar | GlobalTypeVar | RefType | IncompleteType,
    strict: bool,
    names: Mapping[TypeVar, str] | None,
) -> str:
    if isinstance(type_, TypeCall):
        func = type_text(type_.func, strict=strict, names=names)
        return f"{func}[{_list_text(type_.args, strict, names)}]"
    if isinstance(type_, RefType):
        return f"ref({type_text(type_.value, strict=strict, names=names)})"
    if isinstance(type_, IncompleteType):
        return "_"
    if isinstance(type_, TypeVar) and names and type_ in names:
        return names[type_]
    return named_type_text(type_.name_hint)


def named_type_text(name: str) -> str:
    """Return the name of a type as text.

    Raises:
        RelayError: It would not read back as one.
    """
    if not is_identifier(name) or name in ("Tensor", "Sequence"):
        raise RelayError(f"the type {name!r} has no form in text")
    return name


def _list_text(types: Iterable[Type], strict: bool, names: Mapping[TypeVar, str] | None) -> str:
    return ", ".join([type_text(each, strict=strict, names=names) for each in types])


def has_symbols(type_: Type | None) -> bool:
    """Whether a dimension in `type_` has a name."""
    if isinstance(type_, TensorType):
        return any(isinstance(dim, SymDim) for dim in type_.shape)
    tensors = (each for each in walk_type(type_) if isinstance(each, TensorType))
    return any(isinstance(dim, SymDim) for each in tensors for dim in each.shape)


def has_sequence(type_: Type | None) -> bool:
    """Whether a sequence is or lies in `type_`."""
    return any(isinstance(each, SequenceType) for each in walk_type(type_))
