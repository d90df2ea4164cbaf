"""What the graphs inside a node read of its inputs, and what they give."""

from __future__ import annotations

from collections.abc import Sequence

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr

__all__ = ["arrange", "choose"]


def arrange(count: int, groups: Sequence[tuple[Sequence[Expr], Sequence[int]]]) -> list[Expr]:
    """Return the values of a graph's variables: each group's at the indices given for it.

    Raises:
        Unsupported: The indices are not those of `count` variables.
    """
    values: dict[int, Expr] = {}
    for group, indices in groups:
        if len(group) != len(indices):
            raise Unsupported(f"{len(group)} inputs for the variables {list(indices)}")
        values.update(zip(indices, group, strict=True))
    if sorted(values) != list(range(count)):
        raise Unsupported(f"expected values for {count} variables, found {sorted(values)}")
    return [values[index] for index in range(count)]


def choose(inputs: Sequence[Expr], places: Sequence[int]) -> list[Expr]:
    """Return what a graph inside reads of what a node reads.

    Raises:
        Unsupported: The node does not read so much.
    """
    if any(not 0 <= place < len(inputs) for place in places):
        raise Unsupported(f"expected places among {len(inputs)} inputs, found {list(places)}")
    return [inputs[place] for place in places]
