"""The registry of operators that are evaluated while the program is walked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue, Final, TypeVar

from serde.torch.ops.table import OPS

__all__ = ["EVALUATORS", "MOVES", "SOURCE", "evaluates", "find_evaluator"]

F = TypeVar("F", bound=Callable[..., AnyValue])

EVALUATORS: Final[dict[str, Callable[..., AnyValue]]] = {}
"""What evaluates an operator, by its name with or without overload.

A function of the context and of the arguments, by position in the order of the schema.
"""


SOURCE: Final = "source::"
"""Namespace of what reading written source makes of its own; no program calls operators of it."""

MOVES: Final[set[str]] = set()
"""Operators that only hand values on, and look at no tensor."""


def evaluates(*names: str, moves: bool = False) -> Callable[[F], F]:
    """Register what evaluates operators.

    Args:
        names: Their names. One without an overload holds for those that have no entry here or
            among the converters of tensors.
        moves: Whether it only hands values on, and looks at no tensor.
    """

    def register(function: F) -> F:
        EVALUATORS.update(dict.fromkeys(names, function))
        MOVES.update(names if moves else ())
        return function

    return register


def find_evaluator(op: str) -> Callable[..., AnyValue] | None:
    """Return what evaluates an operator; None if it is one on tensors, or not known."""
    found = EVALUATORS.get(op)
    if found is not None:
        return found
    base = op.partition(".")[0]
    known = OPS.importer(op, 1) is not None or OPS.importer(base, 1) is not None
    return None if known else EVALUATORS.get(base)
