"""PyTorch's type promotion.

Source: https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serde.errors import Unsupported

__all__ = ["category", "promote", "promote_types", "wider"]

_BOOL, _INTEGER, _FLOAT, _COMPLEX = range(4)

_SIGNED: Final = ("int8", "int16", "int32", "int64")
_WIDTHS: Final = {"float16": 1, "bfloat16": 1, "float32": 2, "float64": 3}


def category(dtype: str) -> int:
    """Return the rank of a dtype among booleans, integers, floats and complex numbers."""
    if dtype == "bool":
        return _BOOL
    if dtype.startswith(("int", "uint")):
        return _INTEGER
    return _COMPLEX if dtype.startswith("complex") else _FLOAT


def promote_types(one: str, other: str) -> str:
    """Return the dtype of an operation of tensors of two dtypes.

    Raises:
        Unsupported: PyTorch promotes them to a dtype that Relay does not have, or not at all.
    """
    if one == other:
        return one
    ranks = category(one), category(other)
    if ranks[0] != ranks[1]:
        return one if ranks[0] > ranks[1] else other
    if ranks[0] == _FLOAT and not {one, other} <= _WIDTHS.keys():
        raise Unsupported(f"PyTorch does not promote {one} and {other} to one dtype")
    if ranks[0] == _FLOAT:
        if _WIDTHS[one] == _WIDTHS[other]:
            return "float32"  # float16 and bfloat16
        return max(one, other, key=_WIDTHS.__getitem__)
    if ranks[0] == _COMPLEX:
        return max(one, other, key=lambda dtype: int(dtype.removeprefix("complex")))
    if one in _SIGNED and other in _SIGNED:
        return max(one, other, key=_SIGNED.index)
    if "uint8" in (one, other):
        signed = other if one == "uint8" else one
        if signed in _SIGNED:
            return "int16" if signed == "int8" else signed
    raise Unsupported(f"PyTorch does not promote {one} and {other} to one dtype")


def wider(dtype: str | None, other: str) -> str:
    """Return the promotion of a dtype, if there is one yet, and another."""
    return other if dtype is None else promote_types(dtype, other)


def promote(
    tensors: Sequence[str], scalars: Sequence[str], numbers: Sequence[str], default: str
) -> str:
    """Return the dtype of an operation.

    Args:
        tensors: Dtypes of operands with axes.
        scalars: Dtypes of tensors without axes.
        numbers: Dtypes of Python's numbers: ``"bool"``, ``"int64"``, ``"float64"``.
        default: The dtype of numbers with a fraction.

    Raises:
        Unsupported: PyTorch does not promote them.
    """
    found: str | None = None
    plain = [default if each == "float64" else each for each in numbers]
    for group in (tensors, scalars, plain):
        inner: str | None = None
        for dtype in group:
            inner = wider(inner, dtype)
        if inner is not None and (found is None or category(inner) > category(found)):
            found = inner
    if found is None:
        raise Unsupported("an operation without operands")
    return found
