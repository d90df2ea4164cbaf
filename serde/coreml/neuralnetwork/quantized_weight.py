"""Weights that layers of NeuralNetworks hold quantised."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.core.weights import Array, Weight, numpy_dtype
from serde.relay.ir.expr import Var
from serde.relay.ir.types import TensorType
from serde.relay.run.computed import ComputedWeight

__all__ = ["QuantizedWeight"]


class QuantizedWeight(Weight):
    """Floats that are integers of 8 bits less a zero point, times a scale.

    Args:
        codes: The integers, of dtype ``int8`` or ``uint8``.
        scale: One scale, or one for each entry of `axis`.
        zero: One zero point, or one for each entry of `axis`.
        axis: The axis that scales go along.
        dtype: Name of the type of the floats.
    """

    def __init__(self, codes: Weight, scale: Array, zero: Array, axis: int, dtype: str) -> None:
        self.shape = codes.shape
        self.dtype = dtype
        self.codes = codes
        self.scale = scale
        self.zero = zero
        self.axis = axis

    def rows(self, start: int, stop: int) -> Array:
        """Return entries `start` to `stop` of axis 0 as floats."""
        codes = self.codes.rows(start, stop).astype(np.float32)
        scale, zero = (self._along(each, start, stop) for each in (self.scale, self.zero))
        return ((codes - zero) * scale).astype(numpy_dtype(self.dtype))

    def _along(self, values: Array, start: int, stop: int) -> Array:
        values = values.astype(np.float32)
        if values.size == 1:
            return values.reshape(())
        if self.axis == 0:
            values = values[start:stop]
        return values.reshape([-1 if axis == self.axis else 1 for axis in range(len(self.shape))])

    def linear(self, axis: int) -> tuple[Array, Array] | None:
        """Return the scales and offsets of the codes as bytes without a sign.

        Args:
            axis: The axis that several scales may go along.

        Returns:
            Scales and offsets of float32, or None where several go along another axis.
        """
        if self.scale.size != 1 and self.axis != axis:
            return None
        scale = self.scale.astype(np.float32).reshape(-1)
        lift = 128 if self.codes.dtype == "int8" else 0
        zero = self.zero.astype(np.float32).reshape(-1) + np.float32(lift)
        return scale, (-zero * scale).astype(np.float32)

    def bytes_without_sign(self) -> Weight:
        """Return the codes as bytes; those with a sign lifted by 128."""
        if self.codes.dtype == "uint8":
            return self.codes
        codes = Var("codes", TensorType(self.codes.shape, "int8"))
        lifted = relay.add(relay.cast(codes, "int16"), relay.const(np.int16(128)))
        return ComputedWeight(relay.cast(lifted, "uint8"), {codes: self.codes})
