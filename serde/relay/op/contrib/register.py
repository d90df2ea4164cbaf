"""What targets that run parts of a program say of themselves: patterns, and optimisers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.relay.ir.module import IRModule

__all__ = [
    "get_pattern_table", "get_region_optimizer", "register_pattern_table",
    "register_region_optimizer",
]  # fmt: skip

PatternTable = Sequence[tuple[AnyValue, ...]]
"""Names, patterns of :mod:`serde.relay.dataflow_pattern` and, where there are, checks."""
_Table = Callable[[], PatternTable]
_Optimizer = Callable[[IRModule], IRModule]

_PATTERN_TABLES: Final[dict[str, PatternTable]] = {}
_OPTIMIZERS: Final[dict[str, _Optimizer]] = {}


def register_pattern_table(compiler: str, table: _Table | None = None) -> AnyValue:
    """Register the patterns that a target runs whole; decorates the function that returns them.

    Args:
        compiler: The name of the target.
        table: Returns pairs of the name of a composite function and its pattern, or triples with
            a function that gets a match and says whether it is taken; a decorator without it.
    """

    def register(given: _Table) -> _Table:
        _PATTERN_TABLES[compiler] = given()
        return given

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> PatternTable | None:
    """Return the patterns of a target, or None where it has registered none."""
    return _PATTERN_TABLES.get(compiler)


def register_region_optimizer(compiler: str, optimizer: _Optimizer | None = None) -> AnyValue:
    """Register what ``PartitionGraph`` does to each region of a target; decorates a function.

    Under TVM that is a global function called ``relay.ext.<compiler>.optimize``.

    Args:
        compiler: The name of the target.
        optimizer: Gets a module whose ``main`` is a region, and returns one with another.
    """

    def register(given: _Optimizer) -> _Optimizer:
        _OPTIMIZERS[compiler] = given
        return given

    return register if optimizer is None else register(optimizer)


def get_region_optimizer(compiler: str) -> _Optimizer | None:
    """Return what a target does to each of its regions, or None."""
    return _OPTIMIZERS.get(compiler)
