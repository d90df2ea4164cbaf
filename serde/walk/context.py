"""What converters of both directions may ask of a tensor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from serde.errors import Unsupported
from serde.relay.ir import Dim, TensorType, normalize_axis

__all__ = ["TypedContext"]

ValueT = TypeVar("ValueT")


class TypedContext(ABC, Generic[ValueT]):
    """What converters of both directions may ask of a tensor."""

    @abstractmethod
    def type(self, x: ValueT) -> TensorType:
        """Return the type of a tensor."""

    def static_shape(
        self, x: ValueT, rank: int | None = None, *, at_least: int = 0
    ) -> tuple[int, ...]:
        """Return the shape of a tensor whose dimensions are all integers.

        Args:
            x: The tensor.
            rank: How many axes it must have.
            at_least: How many it must have at least.

        Raises:
            Unsupported: A dimension is symbolic, or there are too few or too many.
        """
        type_ = self.type(x)
        shape = type_.concrete_shape
        if shape is None:
            raise Unsupported(f"needs a fixed shape, found {type_!r}")
        if rank is not None:
            self.ranked(x, rank)
        if len(shape) < at_least:
            raise Unsupported(f"expected a tensor of {at_least} axes or more, found {type_!r}")
        return shape

    def ranked(self, x: ValueT, *ranks: int) -> TensorType:
        """Return the type of a tensor that has one of some numbers of axes.

        Raises:
            Unsupported: It has another.
        """
        type_ = self.type(x)
        if type_.rank not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise Unsupported(f"expected a tensor of {wanted} axes, found {type_!r}")
        return type_

    def first(self, values: Sequence[ValueT]) -> ValueT:
        """Return the first of the tensors that an operator takes any number of.

        Raises:
            Unsupported: There is none.
        """
        if not values:
            raise Unsupported("expected at least one tensor, found none")
        return values[0]

    def axis(self, x: ValueT, axis: int) -> int:
        """Return an axis of a tensor counted from the front.

        Raises:
            TypeInferenceError: The tensor has no such axis.
        """
        return normalize_axis(axis, self.type(x).rank)

    def dim_at(self, x: ValueT, axis: int) -> Dim:
        """Return the length of an axis of a tensor.

        Raises:
            TypeInferenceError: The tensor has no such axis.
        """
        type_ = self.type(x)
        return type_.shape[normalize_axis(axis, type_.rank)]

    def static_lengths(self, x: ValueT, axes: Iterable[int]) -> tuple[int, ...]:
        """Return the lengths of some axes of a tensor, the others being as they may.

        Raises:
            TypeInferenceError: The tensor has not so many axes.
            Unsupported: One is symbolic.
        """
        lengths = [self.dim_at(x, axis) for axis in axes]
        fixed = tuple(length for length in lengths if isinstance(length, int))
        if len(fixed) < len(lengths):
            raise Unsupported(f"needs fixed lengths of axes, found {self.type(x)!r}")
        return fixed
