"""Samples of operators: operands and attributes of calls that show what an operator does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.core.weights import Array, numpy_dtype

__all__ = ["Sample", "SequenceSpec", "TensorSpec", "sample", "sequence", "tensor"]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A random tensor of a sample: uniform values between `low` and `high`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def array(self, generator: np.random.Generator) -> Array:
        """Return values drawn from `generator`."""
        if self.dtype == "bool":
            return generator.integers(0, 2, self.shape).astype(bool)
        if np.issubdtype(numpy_dtype(self.dtype), np.integer):
            return generator.integers(int(self.low), int(self.high) + 1, self.shape).astype(
                self.dtype
            )
        return generator.uniform(self.low, self.high, self.shape).astype(numpy_dtype(self.dtype))


@dataclass(frozen=True, slots=True)
class SequenceSpec:
    """A sequence of random tensors of a sample, alike in dtype and rank."""

    items: tuple[TensorSpec, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """Operands and attributes of one call that shows a branch of an operator.

    An operand is a :class:`TensorSpec` (a variable of the graph), a :class:`SequenceSpec`
    (likewise), an array (a constant of the graph), a list of these (a tuple) or None (absent).
    """

    operands: tuple[AnyValue, ...]
    attrs: Mapping[str, AnyValue]


def tensor(
    shape: Iterable[int], dtype: str = "float32", *, low: float = -2.0, high: float = 2.0
) -> TensorSpec:
    """Return an operand of a :func:`sample`."""
    return TensorSpec(tuple(shape), dtype, low, high)


def sequence(*items: TensorSpec | tuple[int, ...]) -> SequenceSpec:
    """Return an operand of a :func:`sample` that is a sequence of at least one tensor."""
    specs = [item if isinstance(item, TensorSpec) else TensorSpec(item) for item in items]
    return SequenceSpec(tuple(specs))


def sample(*operands: AnyValue, **attrs: AnyValue) -> Sample:
    """Return a sample; an operand that is a tuple of integers is a float32 tensor of that shape."""

    def spec(operand: AnyValue) -> AnyValue:
        if isinstance(operand, tuple):
            return TensorSpec(operand)
        if isinstance(operand, list):
            return [spec(item) for item in operand]
        return operand

    return Sample(tuple(spec(operand) for operand in operands), attrs)
