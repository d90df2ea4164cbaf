"""The precision in which kernels compute."""

from __future__ import annotations

import numpy as np

from serde.relay.schema import Array
from serde.relay.shapes import is_float

__all__ = ["widen"]


def widen(data: Array) -> Array:
    """Return floating-point `data` of less than 32 bits as float32, other data as it is.

    Sums and exponentials of narrow numbers are taken in float32 and rounded once.
    """
    if is_float(data.dtype.name) and data.dtype.itemsize < 4:
        return data.astype(np.float32)
    return data
