"""Interpolation along one axis: where a result is read, and from which elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

import serde.core.allocation as allocation
from serde.core import budget, dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Dim, TensorType
from serde.relay.ir.layout import layout_rank, spatial_axes

__all__ = [
    "SPATIAL", "Interpolation", "cubic_weights", "require_lengths", "widen_for_method",
    "with_lengths",
]  # fmt: skip

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""Letters of the spatial axes for each number of them."""

_GUARD = 1e-5
"""Distance from a whole number below which floor and ceil take it for that number, as in TVM."""

_NEIGHBOUR_BYTES: Final = 16
"""An index and a weight of 64 bits, as :meth:`Interpolation.taps` gives them."""


@dataclass(frozen=True)
class Interpolation:
    """How one axis is read."""

    method: str
    mode: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False

    def positions(self, length: int, size: int, start: float, end: float) -> Array:
        """Return where in the source each result lies; one division, so that halves are exact."""
        return allocation.at_positions(size, lambda x: self._positions(x, length, size, start, end))

    def _positions(self, x: Array, length: int, size: int, start: float, end: float) -> Array:
        if self.mode == "align_corners":
            return x * (length - 1) / max(size - 1, 1)
        if self.mode == "asymmetric":
            return x * length / size
        if self.mode == "tf_half_pixel_for_nn":
            return (2 * x + 1) * length / (2 * size)
        if self.mode == "tf_crop_and_resize":
            if size == 1:
                return np.full(len(x), 0.5 * (start + end) * (length - 1))
            return start * (length - 1) + x * ((end - start) * (length - 1)) / (size - 1)
        if self.mode == "pytorch_half_pixel" and size == 1:
            return np.zeros(len(x))
        return ((2 * x + 1) * length - size) / (2 * size)

    def draw(self, size: int) -> None:
        """Take the constants that the neighbours of so many places are, once they are written out.

        Raises:
            LimitError: They would take more bytes than are left.
        """
        neighbours = {"nearest_neighbor": 1, "linear": 2}.get(self.method, 4)
        nbytes = _NEIGHBOUR_BYTES * neighbours * size
        budget().draw("constants", nbytes, f"the neighbours of {size:,} places")

    def taps(self, places: Array, length: int) -> list[tuple[Array, Array | None]]:
        """Return source indices and weights; no weights where there is one index."""
        if self.method == "nearest_neighbor":
            return [(np.clip(self._nearest(places), 0, length - 1).astype(np.int64), None)]
        whole = np.floor(places)
        part = places - whole
        if self.method == "linear":
            offsets, weights = [0, 1], [1 - part, part]
        else:
            offsets, weights = [-1, 0, 1, 2], cubic_weights(part, self.alpha)
        indices = [(whole + offset).astype(np.int64) for offset in offsets]
        if self.method == "cubic" and self.exclude:
            inside = [(index >= 0) & (index < length) for index in indices]
            weights = [w * ok for w, ok in zip(weights, inside, strict=True)]
            total = np.sum(weights, 0)
            weights = [w / total for w in weights]
        clipped = [np.clip(index, 0, length - 1) for index in indices]
        return list(zip(clipped, weights, strict=True))

    def _nearest(self, positions: Array) -> Array:
        rounding = self.rounding or ("round" if self.mode == "align_corners" else "floor")
        if rounding == "floor":
            return np.floor(positions + _GUARD)
        if rounding == "ceil":
            return np.ceil(positions - _GUARD)
        if rounding == "round_prefer_floor":
            return np.ceil(positions - 0.5)
        if rounding == "round_prefer_ceil":
            return np.floor(positions + 0.5)
        return np.copysign(np.floor(np.abs(positions) + 0.5), positions)

    def apply(self, data: Array, axis: int, places: Array) -> Array:
        """Return `data` read at `places` along `axis`."""
        shape = [1] * data.ndim
        shape[axis] = -1
        result: Array | None = None
        for index, weight in self.taps(places, data.shape[axis]):
            part = np.take(data, index, axis)
            if weight is not None:
                part *= weight.reshape(shape).astype(part.dtype)
            result = part if result is None else np.add(result, part, out=result)
        return data if result is None else result


def cubic_weights(part: Array, alpha: float) -> list[Array]:
    """Return the weights of four neighbours in Keys' cubic convolution (1981)."""

    def near(t: Array) -> Array:
        return ((alpha + 2) * t - (alpha + 3)) * t * t + 1

    def far(t: Array) -> Array:
        return ((alpha * t - 5 * alpha) * t + 8 * alpha) * t - 4 * alpha

    return [far(1 + part), near(part), near(1 - part), far(2 - part)]


def widen_for_method(data: Array, method: str) -> Array:
    """Return `data` in the dtype in which it is interpolated."""
    if method == "nearest_neighbor" or data.dtype == np.float64:
        return data
    return data.astype(np.float32)


def require_lengths(name: str, lengths: Sequence[Dim] | None, rank: int) -> tuple[Dim, ...]:
    """Return the lengths that an attribute gives for `rank` axes."""
    given = tuple(lengths or ())
    if len(given) != rank or any(type(length) is int and length < 1 for length in given):
        raise TypeInferenceError(f"{name}: expected {rank} positive numbers, found {lengths}")
    return given


def with_lengths(data: TensorType, layout: str, lengths: Sequence[Dim]) -> list[Dim]:
    """Return the shape of `data` with other spatial lengths."""
    axes = spatial_axes(layout, "NC" + SPATIAL[len(lengths)])
    if data.rank != layout_rank(layout):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    shape = list(data.shape)
    for axis, length in zip(axes, lengths, strict=True):
        if shape[axis] == 0:
            raise TypeInferenceError(f"{data!r} has nothing to resize")
        shape[axis] = length
    return shape
