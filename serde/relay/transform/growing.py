"""Folding of a graph while it is built."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

from serde.core.weights import Array, numpy_dtype
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.types import TensorType
from serde.relay.ir.visit import rewrite
from serde.relay.transform.evaluate_constants import EvaluateConstants
from serde.relay.transform.fold_shape import MAX_VALUES, ShapeFolder

__all__ = ["Folder"]


class Folder:
    """Evaluates shape arithmetic and small constants of a graph as it grows.

    Each node is looked at once, however often :meth:`fold` is called on what contains it.
    """

    def __init__(self) -> None:
        self._shapes = ShapeFolder()
        self._constants = EvaluateConstants(max_bytes=8 * MAX_VALUES)
        self._done: dict[Expr, Expr] = {}

    def fold(self, expr: Expr) -> Expr:
        """Return what stands for `expr`: a constant, a static form, or itself."""
        return rewrite(expr, self._replace, self._done)

    def _replace(self, _node: Expr, new: Expr) -> Expr:
        found = self._constants.fold(self._shapes.fold(new))
        self._done[new] = self._done[found] = found
        return found

    def note(self, expr: Expr, data: Array) -> None:
        """Let a small integer tensor, such as a weight, be known to hold `data`."""
        self._shapes.note(expr, data)

    def dims(self, expr: Expr) -> tuple[Dim, ...] | None:
        """Return the elements of a folded integer tensor; None where they are not known."""
        found = self._shapes.value(expr)
        return None if found is None else tuple(found.reshape(-1))

    def value(self, expr: Expr) -> Array | None:
        """Return the value of a folded expression; None where it is not known by numbers."""
        if isinstance(expr, Constant):
            return expr.data
        found: AnyValue = self._shapes.value(expr)
        if found is None or not isinstance(expr.type, TensorType):
            return None
        if not all(type(item) is int for item in found.flat):
            return None
        return np.array(found.tolist(), numpy_dtype(expr.type.dtype)).reshape(found.shape)
