"""What a converter from NNEF may reach."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import dtype_name, numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir.expr import Constant, Expr
from serde.walk import import_context as walk

__all__ = ["ImportContext", "literal"]


def literal(value: AnyValue, dtype: str) -> Constant:
    """Return numbers as a constant.

    Args:
        value: The numbers.
        dtype: dtype of the constant.

    Raises:
        Unsupported: The dtype has no such numbers.
    """
    with np.errstate(over="ignore"):
        data = np.asarray(value, numpy_dtype(dtype))
    if np.any(np.isinf(data) & np.isfinite(value)):
        raise Unsupported(f"{dtype} has no {value!r:.40}")
    return Constant(data)


class ImportContext(walk.ImportContext):
    """What a converter from NNEF may reach.

    Attributes:
        scalar: The dtype of scalars.
        literals: Which operands are literals.
    """

    def __init__(
        self,
        node: str,
        outputs: int,
        scalar: str,
        literals: Collection[Expr] = (),
        walk_: AnyValue = None,
        scope: AnyValue = None,
    ) -> None:
        super().__init__(1, node, outputs, walk_, scope)
        self.scalar = scalar
        self.literals = literals

    def const(self, value: AnyValue, dtype: str | None = None) -> Expr:
        """Return a constant, of the dtype of scalars where no other is given.

        Raises:
            Unsupported: The dtype has no such numbers.
        """
        return literal(value, dtype or self.scalar)

    def is_literal(self, x: Expr, value: float | None = None) -> bool:
        """Whether an operand is a literal, or that literal."""
        if x not in self.literals or not isinstance(x, Constant):
            return False
        return value is None or x.data.item() == value

    def align(self, *operands: Expr) -> list[Expr]:
        """Return tensors of one number of axes: NNEF broadcasts from the first axis on."""
        rank = max(map(self.rank, operands))
        return [self.pad_rank(x, rank) for x in operands]

    def pad_rank(self, x: Expr, rank: int) -> Expr:
        """Return a tensor with axes of length 1 behind its own; a scalar stays one."""
        missing = rank - self.rank(x)
        if missing <= 0 or not self.rank(x):
            return x
        return self.fold(relay.expand_dims(x, self.rank(x), missing))

    def join_types(self, operands: Sequence[Expr]) -> list[Expr]:
        """Return tensors of one dtype: integers are stored in several widths.

        Raises:
            Unsupported: There are none.
        """
        dtypes = {self.type(x).dtype for x in operands}
        if not dtypes:
            raise Unsupported("a list of no tensors")
        if len(dtypes) == 1:
            return list(operands)
        wide = dtype_name(np.result_type(*map(numpy_dtype, sorted(dtypes))))
        return [x if self.type(x).dtype == wide else relay.cast(x, wide) for x in operands]

    def per_axis(
        self, x: Expr, given: Sequence[int], default: int, rank: int | None = None
    ) -> tuple[int, ...]:
        """Return one integer an axis, the default where a list is empty."""
        return tuple(given) or (default,) * (self.rank(x) if rank is None else rank)
