"""What a converter from TFLite may reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Protocol

import numpy as np

import serde.relay as relay
from serde.core import numpy_dtype
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, Tuple, Var, called_name
from serde.tflite.model import Operator, Tensor
from serde.tflite.quantization import activation_limits
from serde.walk import import_context as walk

__all__ = ["ImportContext", "only_result"]


class States(Protocol):
    """The walk, as far as it keeps what a model keeps from one run to the next."""

    def update(self, scope: AnyValue, index: int, value: Expr) -> None:
        """Give a variable tensor another value."""

    def resource(self, handle: Expr) -> Expr:
        """Return the value of a resource."""

    def assign(self, handle: Expr, value: Expr) -> None:
        """Give a resource another value."""


class ImportContext(walk.ImportContext):
    """What a converter from TFLite may reach.

    Attributes:
        given: The tensors that the operator reads, as the file declares them.
        made: Those that it gives.
        operator: The operator.
    """

    def __init__(
        self,
        node: str,
        operator: Operator,
        given: Sequence[Tensor | None],
        made: Sequence[Tensor | None],
        walk_: AnyValue = None,
        scope: AnyValue = None,
    ) -> None:
        super().__init__(1, node, len(made), walk_, scope)
        self.given = given
        self.made = made
        self.operator = operator
        self._states: States = walk_

    def tensor(self, index: int) -> Tensor:
        """Return a tensor that the operator reads, as the file declares it.

        Raises:
            Unsupported: It is left out.
        """
        found = self.given[index] if index < len(self.given) else None
        if found is None:
            raise Unsupported(f"operand {index} is left out")
        return found

    def told(self, index: int = 0) -> Tensor | None:
        """Return what the file tells of a tensor that the operator gives; None if nothing."""
        return self.made[index] if index < len(self.made) else None

    def result(self) -> Tensor:
        """Return the first tensor that the operator gives.

        Raises:
            Unsupported: It gives none.
        """
        found = self.told()
        if found is None:
            raise Unsupported("an operator without a result")
        return found

    def numbers(self, given: AnyValue, count: int | None = None, default: int = 1) -> list[int]:
        """Return an option that is a row of integers; of one that is left out the default.

        Raises:
            Unsupported: There are not so many.
        """
        found = [] if given is None else [int(each) for each in given]
        found = found or [default] * (count or 0)
        if count is not None and len(found) != count:
            raise Unsupported(f"expected {count} numbers, found {found[:40]}")
        return found

    def axes(self, given: AnyValue, rank: int, *, all_: bool = False) -> list[int]:
        """Return an option that is a row of axes, or an order of all.

        Raises:
            Unsupported: Some are none, or named twice.
        """
        found = self.numbers(given)
        known = set(found) <= set(range(rank)) and len(set(found)) == len(found)
        if not known or (all_ and len(found) != rank):
            raise Unsupported(f"expected axes of {rank}, found {found[:40]}")
        return found

    def combination(self, graph: int, dtype: str) -> str:
        """Return the operator that a graph of two scalars is, empty if it gives the second."""
        pair = [Var(name, TensorType((), dtype)) for name in "xy"]
        found, captures = self.closure(graph, pair)
        body = only_result(found)
        if body is found.params[1]:
            return ""
        is_plain = isinstance(body, Call) and not captures and set(body.args) == set(found.params)
        return called_name(body) if is_plain else "another"

    def const(self, value: AnyValue, dtype: str) -> Expr:
        """Return numbers as a constant."""
        return Constant(np.asarray(value, numpy_dtype(dtype)))

    def activated(self, x: Expr, function: int) -> Expr:
        """Return what the activation fused into an operator makes of its result.

        Raises:
            Unsupported: It is one that engines leave out without a word, or none.
        """
        if function == 0:
            return x
        low, high = activation_limits(function)
        return relay.nn.relu(x) if high == np.inf else relay.clip(x, low, high)

    def update(self, operand: int, value: Expr) -> None:
        """Give a variable tensor that the operator reads another value."""
        self._states.update(self._scope, self.operator.inputs[operand], value)

    def resource(self, handle: Expr) -> Expr:
        """Return the value of a resource."""
        return self._states.resource(handle)

    def assign(self, handle: Expr, value: Expr) -> None:
        """Give a resource another value."""
        self._states.assign(handle, value)


def only_result(function: Function) -> Expr:
    """Return what a graph gives, which is one scalar.

    Raises:
        Unsupported: It gives nothing, or more.
    """
    fields = function.body.fields if isinstance(function.body, Tuple) else [function.body]
    if len(fields) != 1:
        raise Unsupported(f"a graph of scalars that gives {len(fields)} of them")
    return fields[0]
