"""What the convolutions share: types of their operands, and sums over windows in NumPy.

Inside, tensors are channel-first: data ``N C`` and the spatial axes, weights
``O I`` and the spatial axes. Other layouts are views on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any as AnyValue

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Arguments, Array, Dim, TensorType
from serde.relay.ir.layout import LayoutPlan, change_layout, is_blocked
from serde.relay.ir.shapes import at, join_dim, layout_axes
from serde.relay.op.linalg.product import exact_operand

__all__ = [
    "SPATIAL", "Convolution", "TransposedConvolution", "column_blocks", "convolve",
    "data_array", "data_shape", "expand", "kernel_size_of", "pad_sides", "padding_sides",
    "per_axis", "result_array", "result_shape", "taps", "to_layout", "transpose_convolve",
    "weight_array", "weight_in_layout", "weight_shape", "window_arguments",
]  # fmt: skip

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}
"""Letters of the spatial axes for each number of them."""


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """Attributes of convolutions; `padding` is of all sides, before the axes and then behind."""

    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    channels: Dim | None = None
    kernel_size: tuple[int, ...] | None = None
    data_layout: str
    kernel_layout: str
    out_layout: str = ""
    out_dtype: np.dtype[AnyValue] | None = None

    @classmethod
    def usual(cls, rank: int) -> Convolution:
        """Return the defaults over `rank` spatial axes."""
        return cls(
            strides=(1,) * rank, padding=(0,) * max(rank, 2), dilation=(1,) * rank,
            data_layout="NC" + SPATIAL[rank], kernel_layout="OI" + SPATIAL[rank],
        )  # fmt: skip

    @property
    def result_layout(self) -> str:
        """Order of the axes of the result."""
        return self.out_layout or self.data_layout


@dataclass(frozen=True, kw_only=True)
class TransposedConvolution:
    """Attributes of transposed convolutions."""

    channels: Dim | None = None
    kernel_size: tuple[int, ...] | None = None
    strides: tuple[int, ...]
    output_padding: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    data_layout: str
    kernel_layout: str
    out_layout: str = ""
    out_dtype: np.dtype[AnyValue] | None = None

    @classmethod
    def usual(cls, rank: int) -> TransposedConvolution:
        """Return the defaults over `rank` spatial axes."""
        ones, zeros = (1,) * rank, (0,) * rank
        return cls(
            strides=ones, output_padding=zeros, padding=zeros, dilation=ones,
            data_layout="NC" + SPATIAL[rank], kernel_layout="IO" + SPATIAL[rank],
        )  # fmt: skip

    @property
    def result_layout(self) -> str:
        """Order of the axes of the result."""
        return self.out_layout or self.data_layout


_COLUMN_BYTES = 64 << 20
"""Bound on the copy of the windows that one matrix product reads."""


def data_shape(data: TensorType, layout: str, rank: int) -> tuple[Dim, ...]:
    """Return the shape of `data`, channel-first."""
    if is_blocked(layout):
        return tuple(LayoutPlan(data.shape, layout, "NC" + SPATIAL[rank]).shape)
    axes = layout_axes(layout, "NC" + SPATIAL[rank])
    if data.rank != len(axes):
        raise TypeInferenceError(f"expected data of layout {layout}, found {data!r}")
    return at(data.shape, axes)


def data_array(data: Array, layout: str, rank: int) -> Array:
    """Return `data` channel-first; a view where its layout has no blocks."""
    plain = "NC" + SPATIAL[rank]
    if is_blocked(layout):
        return change_layout(data, layout, plain)
    return data.transpose(layout_axes(layout, plain))


def result_shape(shape: Sequence[Dim], layout: str, rank: int) -> Sequence[Dim]:
    """Return a channel-first shape in a layout."""
    if is_blocked(layout):
        return LayoutPlan(shape, "NC" + SPATIAL[rank], layout, filled=True).shape
    return at(shape, to_layout(layout, rank))


def result_array(result: Array, layout: str, rank: int) -> Array:
    """Return a channel-first array in a layout."""
    if is_blocked(layout):
        return change_layout(result, "NC" + SPATIAL[rank], layout)
    return np.ascontiguousarray(result.transpose(to_layout(layout, rank)))


def weight_shape(weight: TensorType, layout: str, rank: int, first: str = "O") -> tuple[Dim, ...]:
    """Return the shape of `weight` with the axes `first`, the other channel axis, then space.

    A layout with a G has the groups as an axis of their own; they are merged into the first.
    """
    wanted = first + ("I" if first == "O" else "O") + SPATIAL[rank]
    if is_blocked(layout):
        return tuple(LayoutPlan(weight.shape, layout, wanted).shape)
    grouped = "G" in layout
    axes = layout_axes(layout, "G" + wanted if grouped else wanted)
    if weight.rank != len(axes):
        raise TypeInferenceError(f"expected a weight of layout {layout}, found {weight!r}")
    shape = at(weight.shape, axes)
    return (shape[0] * shape[1], *shape[2:]) if grouped else shape


def weight_array(weight: Array, layout: str, rank: int, first: str = "O") -> Array:
    """Return `weight` with its axes as :func:`weight_shape` has them."""
    wanted = first + ("I" if first == "O" else "O") + SPATIAL[rank]
    if is_blocked(layout):
        return change_layout(weight, layout, wanted)
    if "G" not in layout:
        return weight.transpose(layout_axes(layout, wanted))
    grouped = weight.transpose(layout_axes(layout, "G" + wanted))
    return grouped.reshape(-1, *grouped.shape[2:])


def weight_in_layout(shape: Sequence[Dim], layout: str, plain: str) -> Sequence[Dim]:
    """Return the shape of a weight, whose axes are `plain`, in a layout."""
    return LayoutPlan(shape, plain, layout, filled=True).shape


def to_layout(layout: str, rank: int) -> tuple[int, ...]:
    """Return the permutation from channel-first to `layout`."""
    source = "NC" + SPATIAL[rank]
    layout_axes(layout, source)
    return tuple(source.index(letter) for letter in layout)


def kernel_size_of(shape: Sequence[Dim], declared: Sequence[int] | None) -> tuple[Dim, ...]:
    """Return the spatial lengths of a weight, which must be those declared."""
    found = tuple(shape[2:])
    if 0 in found:
        raise TypeInferenceError(f"a kernel has the lengths {list(map(str, found))}")
    if declared is None:
        return found
    try:
        return tuple(join_dim(a, b) for a, b in zip(found, declared, strict=True))
    except (TypeInferenceError, ValueError):
        raise TypeInferenceError(
            f"kernel_size {list(declared)} is not that of a weight of {list(map(str, found))}"
        ) from None


def per_axis(value: AnyValue, rank: int) -> AnyValue:
    """Return one number as that many; what a builder does with an integer."""
    return (value,) * rank if isinstance(value, (int, np.integer)) else value


def padding_sides(padding: AnyValue, rank: int) -> AnyValue:
    """Return padding as all of before, then all of after; what TVM's builders make of it."""
    given = (padding,) if isinstance(padding, (int, np.integer)) else tuple(padding)
    if len(given) == 1:
        return given * (2 * rank)
    return given * 2 if len(given) == rank else given


def window_arguments(
    rank: int, *per_axis_names: str, padding: bool = True, **others: AnyValue
) -> Arguments:
    """Return how builders of windows take attributes: one number holds for all axes and sides.

    Args:
        rank: Number of spatial axes.
        per_axis_names: Attributes with a number for each axis.
        padding: Whether padding becomes that of all sides; else it stays as it is given.
        others: Whatever else :class:`Arguments` say.
    """
    convert: dict[str, Callable[[AnyValue], AnyValue]] = dict.fromkeys(
        per_axis_names, partial(per_axis, rank=rank)
    )
    if padding:
        convert["padding"] = partial(padding_sides, rank=rank)
    return Arguments(convert=convert, **others)


def pad_sides(data: Array, before: Sequence[int], after: Sequence[int], value: float = 0) -> Array:
    """Return `data` with its trailing axes padded; itself where there is nothing to pad."""
    if not any(before) and not any(after):
        return data
    lead = data.ndim - len(before)
    spatial = zip(data.shape[lead:], before, after, strict=True)
    padded = np.full((*data.shape[:lead], *(n + b + a for n, b, a in spatial)), value, data.dtype)
    inner = tuple(slice(b, b + n) for n, b in zip(data.shape[lead:], before, strict=True))
    padded[(..., *inner)] = data
    return padded


def expand(length: int, dilation: int) -> int:
    """Return how many elements a window of `length` taps spans."""
    return (length - 1) * dilation + 1


def taps(
    kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """Yield each place of a window, and where in the data it lies for all windows at once."""
    for place in product(*map(range, kernel)):
        spans = zip(place, strides, dilation, counts, strict=True)
        yield (place, tuple(slice(p * d, p * d + (n - 1) * s + 1, s) for p, s, d, n in spans))


def convolve(
    data: Array, weight: Array, strides: Sequence[int], dilation: Sequence[int], groups: int
) -> Array:
    """Cross-correlate padded channel-first `data` with `weight`.

    Args:
        data: ``(N, C, *space)``, already padded.
        weight: ``(O, C / groups, *kernel)``.
        strides: Step of the window along each spatial axis.
        dilation: Distance of its taps.
        groups: Number of independent parts of the channels.

    Returns:
        ``(N, O, *space)`` in the dtype that :func:`exact_operand` computes in.
    """
    kernel = weight.shape[2:]
    depth = int(np.prod(weight.shape[1:]))
    counts = tuple(
        (n - expand(k, d)) // s + 1
        for n, k, s, d in zip(data.shape[2:], kernel, strides, dilation, strict=True)
    )
    if any(count < 1 for count in counts):
        raise TypeInferenceError(f"a window of {kernel} does not fit lengths of {data.shape[2:]}")
    x = exact_operand(data, depth)
    w = exact_operand(weight, depth)
    out = np.zeros((data.shape[0], weight.shape[0], *counts), np.result_type(x, w))
    if out.size == 0 or depth == 0:
        return out
    if weight.shape[1] == 1 and groups > 1:
        _convolve_depthwise(x, w, strides, dilation, out)
        return out
    rank = len(kernel)
    space = x.strides[2:]
    windows = np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *kernel, *counts),
        (
            *x.strides[:2],
            *(step * d for step, d in zip(space, dilation, strict=True)),
            *(step * s for step, s in zip(space, strides, strict=True)),
        ),
        writeable=False,
    )
    matrix = w.reshape(groups, weight.shape[0] // groups, depth)
    for sample_windows, sample_out in zip(windows, out, strict=True):
        for columns, result in column_blocks(sample_windows, sample_out, rank):
            _multiply_into(matrix, columns.reshape(groups, depth, -1), result)
    return out


def column_blocks(windows: Array, out: Array, rank: int) -> Iterator[tuple[Array, Array]]:
    """Split the windows of one sample along the first output axis so that a copy stays small.

    Args:
        windows: ``(C, *kernel, *space)``.
        out: ``(O, *space)``.
        rank: Number of spatial axes.
    """
    rows = out.shape[1]
    row_bytes = max(1, windows.nbytes // rows)
    step = max(1, min(rows, _COLUMN_BYTES // row_bytes))
    for start in range(0, rows, step):
        block = slice(start, min(rows, start + step))
        place: tuple[slice, ...] = (*[slice(None)] * (1 + rank), block)
        yield windows[place], out[:, block]


def _multiply_into(matrix: Array, columns: Array, out: Array) -> None:
    """Write the product of grouped matrices where `out` is, without a copy if it is contiguous."""
    groups, rows, _ = matrix.shape
    if out.flags.c_contiguous:
        np.matmul(matrix, columns, out=out.reshape(groups, rows, -1))
        return
    out[...] = np.matmul(matrix, columns).reshape(out.shape)


def _convolve_depthwise(
    x: Array, w: Array, strides: Sequence[int], dilation: Sequence[int], out: Array
) -> None:
    """Add up the taps of a convolution in which every input channel stands alone."""
    channels = x.shape[1]
    kernel = w.shape[2:]
    counts = out.shape[2:]
    per_channel = w.shape[0] // channels
    ones = (1,) * len(kernel)
    total = out.reshape(out.shape[0], channels, per_channel, *counts)
    term = np.empty_like(total[0])
    for place, where in taps(kernel, strides, dilation, counts):
        tap: tuple[AnyValue, ...] = (slice(None), 0, *place)
        factor = w[tap].reshape(channels, per_channel, *ones)
        for x_sample, sum_sample in zip(x, total, strict=True):
            np.multiply(x_sample[(slice(None), *where)][:, None], factor, out=term)
            sum_sample += term


def transpose_convolve(
    data: Array,
    weight: Array,
    strides: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    extra: Sequence[int],
) -> Array:
    """Spread channel-first `data` over a larger tensor: the adjoint of :func:`convolve`.

    Args:
        data: ``(N, C, *space)``.
        weight: ``(C, O / groups, *kernel)``.
        strides: Step of the window along each spatial axis.
        dilation: Distance of its taps.
        groups: Number of independent parts of the channels.
        extra: Zeros to append along each spatial axis.

    Returns:
        ``(N, O, *space)``, before any padding is cut off.
    """
    kernel = weight.shape[2:]
    inputs = weight.shape[0] // groups
    outputs = weight.shape[1]
    spans = zip(data.shape[2:], kernel, strides, dilation, extra, strict=True)
    lengths = tuple((n - 1) * s + expand(k, d) + e for n, k, s, d, e in spans)
    x = exact_operand(data, inputs * int(np.prod(kernel)))
    w = exact_operand(weight, inputs * int(np.prod(kernel)))
    out = np.zeros((data.shape[0], groups * outputs, *lengths), np.result_type(x, w))
    counts = data.shape[2:]
    matrix = w.reshape(groups, inputs, -1).swapaxes(1, 2)
    for x_sample, out_sample in zip(x, out, strict=True):
        columns = np.matmul(matrix, x_sample.reshape(groups, inputs, -1))
        columns = columns.reshape(groups * outputs, *kernel, *counts)
        for place, where in taps(kernel, strides, dilation, counts):
            out_sample[(slice(None), *where)] += columns[(slice(None), *place)]
    return out
