"""Windows that slide over a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir.registry import Array, relay_op, sample
from serde.relay.ir.shapes import normalize_axis, pool_dim
from serde.relay.ir.traits import Fusion, FusionPattern, Moves
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_sliding_window

__all__: list[str] = []


def _window_type(
    data: TensorType, *, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> TensorType:
    first = normalize_axis(axis, data.rank)
    axes = data.shape[first:]
    if not len(axes) == len(window_shape) == len(strides):
        raise TypeInferenceError(f"expected a window over {len(axes)} axes, found {window_shape}")
    if min(window_shape) < 1:
        raise TypeInferenceError(f"a window of {window_shape} is empty")
    sizes = zip(axes, window_shape, strides, strict=True)
    counts = [pool_dim(dim, width, by, 0, 1, ceil_mode=False) for dim, width, by in sizes]
    return TensorType((*data.shape[:first], *counts, *window_shape), data.dtype)


@relay_op(
    "sliding_window",
    traits=(Moves(), Fusion(FusionPattern.OPAQUE)),
    infer=_window_type,
    decompose=decompose_sliding_window,
    samples=[
        sample((2, 3, 7, 8), axis=1, window_shape=[3, 3, 4], strides=[1, 2, 2]),
        sample((9,), axis=-1, window_shape=[4], strides=[3]),
    ],
)
def sliding_window(
    data: Array, *, axis: int, window_shape: tuple[int, ...], strides: tuple[int, ...]
) -> Array:
    """All windows over the axes from `axis` on; their own axes come last."""
    first = axis % data.ndim
    axes = tuple(range(first, data.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(data, window_shape, axis=axes)  # type: ignore[call-overload]
    steps = (slice(None),) * first + tuple(slice(None, None, by) for by in strides)
    return windows[steps].copy()
