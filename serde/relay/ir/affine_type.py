"""What the numbers of a quantised expression stand for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any as AnyValue

from serde.core.weights import dtype_name
from serde.relay.ir.compare import structural_equal
from serde.relay.ir.expr import Expr

__all__ = ["AffineType", "TensorAffineType", "TupleAffineType"]


class AffineType:
    """What a quantised expression stands for; equal where scales and zero points are."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


class TensorAffineType(AffineType):
    """A tensor q that stands for ``(q - zero_point) * scale``.

    Args:
        scale: Scalar or vector of float32.
        zero_point: Scalar or vector of int32.
        dtype: Type of the elements of q.
        axis: The axis of q along which scale and zero point lie, where they are vectors.
    """

    __slots__ = ("axis", "dtype", "scale", "zero_point")

    def __init__(self, scale: Expr, zero_point: Expr, dtype: AnyValue, axis: int = -1) -> None:
        self.scale = scale
        self.zero_point = zero_point
        self.dtype = dtype_name(dtype)
        self.axis = int(axis)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorAffineType):
            return NotImplemented
        return (
            self.dtype == other.dtype
            and self.axis == other.axis
            and structural_equal(self.scale, other.scale)
            and structural_equal(self.zero_point, other.zero_point)
        )

    def __repr__(self) -> str:
        return (
            f"TensorAffineType({self.scale!r}, {self.zero_point!r}, {self.dtype}, axis={self.axis})"
        )


class TupleAffineType(AffineType):
    """Several quantised tensors as one.

    Args:
        types: What each of them stands for.
    """

    __slots__ = ("types",)

    def __init__(self, types: Iterable[TensorAffineType]) -> None:
        self.types = tuple(types)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TupleAffineType):
            return NotImplemented
        return self.types == other.types

    def __repr__(self) -> str:
        return f"TupleAffineType({list(self.types)!r})"
