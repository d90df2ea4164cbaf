"""Random graphs whose choices Hypothesis makes, so that what fails shrinks by itself.

Values of tensors come of one seed that is drawn like the rest; all that shapes a graph (operators,
samples, attributes, lengths, which nodes are read) is drawn choice by choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from support.typed_graphs import TypedGraph, TypedMaker, operators

__all__ = ["drawn_graphs"]

_STEPS = 2**16
"""Parts of the unit interval that are told apart."""


class DrawnChoices:
    """Draws what a `numpy.random.Generator` would give a maker of graphs.

    Args:
        data: Where choices come from; the least is the simplest one.
    """

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self._values = np.random.default_rng(data.draw(st.integers(0, 9), label="values"))

    def random(self) -> float:
        """Draw a number below 1; the simplest is the largest, by which nothing happens."""
        return 1 - self._data.draw(st.integers(1, _STEPS)) / _STEPS

    def integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        """Draw an integer, or fill a tensor with integers."""
        if high is None:
            low, high = 0, low
        if size is not None:
            return self._values.integers(low, high, size)
        return self._data.draw(st.integers(low, max(low, high - 1)))

    def uniform(self, low: float, high: float, size: Any) -> Any:
        """Fill a tensor."""
        return self._values.uniform(low, high, size)

    def permutation(self, count: int) -> Any:
        """Draw an order."""
        return self._data.draw(st.permutations(range(count)))

    def choice(
        self, given: Any, size: Any = None, replace: bool = True, p: Sequence[float] | None = None
    ) -> Any:
        """Draw one of some things, or fill a tensor with them, or draw several indices."""
        if isinstance(size, int) and not replace:
            return self._data.draw(st.permutations(range(given)))[:size]
        if size is not None:
            return self._values.choice(given, size)
        count = given if isinstance(given, (int, np.integer)) else len(given)
        index = self._data.draw(st.integers(0, int(count) - 1))
        return index if isinstance(given, (int, np.integer)) else given[index]


@st.composite
def drawn_graphs(draw: Any, names: Sequence[str] | None = None) -> TypedGraph:
    """Draw a graph.

    Args:
        draw: Hypothesis.
        names: Operators whose samples are drawn; all if left out.
    """
    maker = TypedMaker(0, names or operators(), rng=DrawnChoices(draw(st.data())))
    return maker.graph()
