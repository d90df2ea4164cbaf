"""What a converter from Relax may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.relax.lengths import Lengths, Scalar, Shape
from serde.relay.ir import Constant, Dim, Expr, Tuple
from serde.walk import import_context as walk

__all__ = ["ImportContext", "Scalar", "Shape", "plain_dims"]


class ImportContext(walk.ImportContext):
    """What a converter from Relax may reach.

    Tensors are positional, a tuple of them is one operand (:meth:`fields`). What else a call is
    given comes by keyword, as TVM calls the argument: a :class:`Shape`, a :class:`Scalar`, or a
    tuple of these.

    Attributes:
        lengths: What lengths are in the function.
        framework: TVM.
    """

    def __init__(
        self, node: str, outputs: int, lengths: Lengths, walk_: AnyValue, scope: AnyValue
    ) -> None:
        super().__init__(1, node, outputs, walk_, scope)
        self.lengths = lengths

    def dtype(self, x: Expr) -> str:
        """Return the dtype of a tensor."""
        return self.type(x).dtype

    def fields(self, x: Expr) -> list[Expr]:
        """Return the tensors of a tuple.

        Raises:
            Unsupported: It is none.
        """
        if not isinstance(x, Tuple):
            raise Unsupported("expected a tuple of tensors")
        return list(x.fields)

    def const(self, value: AnyValue, dtype: str) -> Constant:
        """Return a constant.

        Raises:
            Unsupported: A number is not one of the integers of its dtype.
        """
        if dtype.startswith(("int", "uint")):
            bounds = np.iinfo(numpy_dtype(dtype))
            given = np.asarray(value)
            if not np.all((given >= bounds.min) & (given <= bounds.max)):
                raise Unsupported(f"{value} as {dtype}")
        return Constant(np.asarray(value, numpy_dtype(dtype)))

    def like(self, x: Expr, value: AnyValue) -> Constant:
        """Return a constant of the dtype of a tensor."""
        return self.const(value, self.dtype(x))

    def number(self, given: Scalar | float | None) -> AnyValue:
        """Return a number as Python's.

        Raises:
            Unsupported: Only the running model knows it.
        """
        value = given.value if isinstance(given, Scalar) else given
        if isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Expr):
            raise Unsupported("needs a number, found one that is computed when the model runs")
        known = None if value is None else self.lengths.known(value)
        if isinstance(known, int):
            return known
        raise Unsupported(f"needs a number, found {value}")

    def tensor(self, given: Scalar | float, dtype: str | None = None) -> Expr:
        """Return a number as a scalar tensor, of its own dtype if no other is told."""
        value = given.value if isinstance(given, Scalar) else given
        own = dtype or (given.dtype if isinstance(given, Scalar) else None)
        if isinstance(value, (bool, int, float)):
            return Constant(np.asarray(value, None if own is None else numpy_dtype(own)))
        found = value if isinstance(value, Expr) else self.lengths.tensor(value)
        return found if own in (None, self.dtype(found)) else relay.cast(found, own)

    def dims_of(self, shape: Shape | Sequence[AnyValue]) -> tuple[Dim, ...] | None:
        """Return what is known of lengths, None where one is only known at run time."""
        return self.lengths.all_known(plain_dims(shape))

    def known_dims(self, shape: Shape | Sequence[AnyValue]) -> tuple[Dim, ...]:
        """Return the same.

        Raises:
            Unsupported: One is only known at run time.
        """
        found = self.dims_of(shape)
        if found is None:
            raise Unsupported("needs a shape that is known before the model runs")
        return found

    def shape_tensor(self, shape: Shape | Sequence[AnyValue]) -> Expr:
        """Return lengths as a vector of int64."""
        return self.lengths.vector(plain_dims(shape))

    def reshape(self, x: Expr, shape: Shape | Sequence[AnyValue]) -> Expr:
        """Return a tensor in another shape."""
        known = self.dims_of(shape)
        return relay.reshape(x, self.shape_tensor(shape) if known is None else known)

    def broadcast_to(self, x: Expr, shape: Shape | Sequence[AnyValue]) -> Expr:
        """Return a tensor repeated along axes."""
        known = self.dims_of(shape)
        return relay.broadcast_to(x, self.shape_tensor(shape) if known is None else known)


def plain_dims(shape: Shape | Sequence[AnyValue]) -> tuple[Dim, ...]:
    """Return lengths, which may be numbers of TIR."""
    if isinstance(shape, Shape):
        return shape.dims
    found = []
    for each in shape:
        value = each.value if isinstance(each, Scalar) else each
        if isinstance(value, (float, Expr)):
            raise Unsupported(f"expected a length, found {value}")
        found.append(int(value) if isinstance(value, bool) else value)
    return tuple(found)
