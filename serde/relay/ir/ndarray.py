"""Arrays as TVM hands them out."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

__all__ = ["NDArray"]


class NDArray(np.ndarray[AnyValue, np.dtype[AnyValue]]):
    """A NumPy array that also has TVM's way of asking for one: a result, or a constant."""

    def numpy(self) -> np.ndarray[AnyValue, np.dtype[AnyValue]]:
        """Return the values as a plain array."""
        return np.array(self, subok=False)

    asnumpy = numpy
