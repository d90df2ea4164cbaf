"""Arguments of a function against its declared types: checks, and the lengths of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import RelayError
from serde.relay.ir import Dim, SymDim, Var, substitute
from serde.relay.ir.types import (
    FuncType,
    IncompleteType,
    RefType,
    SequenceType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from serde.relay.run.values import ConstructorValue, RefValue

__all__ = ["as_value", "bind_dims", "has_symbols", "resolve_dims"]


def as_value(value: AnyValue, type_: Type | None, where: str) -> AnyValue:
    """Return an argument as an array, a list of arrays for a sequence, or a nested tuple of both.

    Python numbers and lists take the declared dtype; arrays keep theirs.

    Raises:
        RelayError: It does not have the structure, rank, dtype or fixed lengths of `type_`.
    """
    if isinstance(type_, (FuncType, RefType)) or callable(value):
        return value
    if isinstance(type_, (TypeVar, IncompleteType)):
        type_ = None
    if isinstance(value, (ConstructorValue, RefValue)):
        return _as_data(value, type_, where)
    if isinstance(type_, TensorType) or (type_ is None and not isinstance(value, tuple)):
        return _as_array(value, type_, where)
    if isinstance(type_, SequenceType):
        return _as_list(value, type_, where)
    if type_ is not None and not isinstance(type_, TupleType):
        raise RelayError(f"{where}: expected {type_!r}, found {value!r}")
    fields = (None,) * len(value) if type_ is None else type_.fields
    if not isinstance(value, (tuple, list)) or len(value) != len(fields):
        raise RelayError(f"{where}: expected a tuple of {len(fields)} values, found {value!r}")
    pairs = zip(value, fields, strict=True)
    return tuple(as_value(item, each, f"{where}.{i}") for i, (item, each) in enumerate(pairs))


def _as_data(value: AnyValue, type_: Type | None, where: str) -> AnyValue:
    """Return a value of an algebraic data type, or a reference, that was made outside."""
    header = type_.func if isinstance(type_, TypeCall) else None
    known = value.constructor.belong_to if isinstance(value, ConstructorValue) else None
    if type_ is not None and (header is None or header != known):
        raise RelayError(f"{where}: expected {type_!r}, found {value!r}")
    return value


def _as_list(value: AnyValue, type_: SequenceType, where: str) -> list[AnyValue]:
    if not isinstance(value, (tuple, list)):
        raise RelayError(f"{where}: expected a list of arrays, found {value!r}")
    return [_as_array(item, type_.element, f"{where}[{i}]") for i, item in enumerate(value)]


def _as_array(value: AnyValue, type_: TensorType | None, where: str) -> AnyValue:
    typed = isinstance(value, (np.ndarray, np.generic))
    if type_ is None or typed:
        array = np.asarray(value)
    else:
        try:
            array = np.asarray(value, dtype=numpy_dtype(type_.dtype))
        except (TypeError, ValueError):
            raise RelayError(f"{where}: expected {type_!r}, found {value!r}") from None
    if type_ is None:
        return array
    found = dtype_name(array.dtype)
    fits = found == type_.dtype and array.ndim == type_.rank
    if fits:
        pairs = zip(type_.shape, array.shape, strict=True)
        fits = all(type(want) is not int or want == have for want, have in pairs)
    if not fits:
        raise RelayError(f"{where}: expected {type_!r}, found {found}{list(array.shape)}")
    return array


def has_symbols(types: Iterable[Type | None]) -> bool:
    """Whether a dimension in `types` is symbolic."""
    return any(
        isinstance(dim, SymDim)
        for type_ in types
        for tensor in _tensor_types(type_)
        for dim in tensor.shape
    )


def _tensor_types(type_: Type | None) -> Iterator[TensorType]:
    if isinstance(type_, TensorType):
        yield type_
    elif isinstance(type_, SequenceType):
        yield type_.element
    elif isinstance(type_, TupleType):
        for field in type_.fields:
            yield from _tensor_types(field)


def bind_dims(params: Sequence[Var], values: Sequence[AnyValue]) -> dict[str, int]:
    """Return the length of each symbol in the types of `params`, given their values.

    Raises:
        RelayError: One symbol would have two lengths, or a length that no integer gives.
    """
    lengths: dict[str, int] = {}
    compound: list[tuple[SymDim, int, str]] = []
    for param, value in zip(params, values, strict=True):
        where = f"argument {param.name_hint}"
        for type_, array in _tensors(param.type, value):
            for dim, length in zip(type_.shape, array.shape, strict=True):
                if isinstance(dim, SymDim):
                    if dim.name is None:
                        compound.append((dim, length, where))
                    else:
                        _note(lengths, dim.name, length, where)
    for dim, length, where in compound:
        _solve(lengths, dim, length, where)
    return lengths


def _tensors(type_: Type | None, value: AnyValue) -> Iterator[tuple[TensorType, AnyValue]]:
    if isinstance(type_, TensorType):
        yield type_, value
    elif isinstance(type_, SequenceType):
        yield from ((type_.element, item) for item in value)
    elif isinstance(type_, TupleType):
        for field, item in zip(type_.fields, value, strict=True):
            yield from _tensors(field, item)


def _note(lengths: dict[str, int], name: str, length: int, where: str) -> None:
    known = lengths.setdefault(name, length)
    if known != length:
        raise RelayError(f"{where}: expected {name} = {known} as before, found {length}")


def _solve(lengths: dict[str, int], dim: SymDim, length: int, where: str) -> None:
    """Check `dim` against `length`, or find the one symbol of a linear `dim` that is unknown."""
    known: Mapping[str, Dim] = dict(lengths)
    rest = substitute(dim, known)
    if not isinstance(rest, SymDim):
        if rest != length:
            raise RelayError(f"{where}: expected a length of {dim} = {rest}, found {length}")
        return
    constant = sum(c for monomial, c in rest.terms if not monomial)
    linear = [(monomial, c) for monomial, c in rest.terms if monomial]
    names = rest.symbols()
    if len(linear) != 1 or len(names) != 1 or linear[0][0] != ((next(iter(names)), 1),):
        return
    quotient, remainder = divmod(length - constant, linear[0][1])
    if remainder or quotient < 0:
        raise RelayError(f"{where}: no length makes {dim} equal to {length}")
    lengths[names.pop()] = quotient


def resolve_dims(value: AnyValue, lengths: Mapping[str, int]) -> AnyValue:
    """Replace symbols in an attribute, nested tuples included, by their lengths.

    Raises:
        RelayError: A symbol has no length.
    """
    if isinstance(value, tuple):
        return tuple(resolve_dims(item, lengths) for item in value)
    if not isinstance(value, SymDim):
        return value
    result = substitute(value, dict(lengths))
    if isinstance(result, SymDim):
        names = ", ".join(sorted(result.symbols()))
        raise RelayError(f"no argument tells the length of {names}")
    return result
