"""Layers and images of MIL in NumPy, of which coremltools infers no value.

Like the kernels of ``mil_kernels``, they follow MIL's documentation and share nothing with the
bridge. The tests of the importers compare each with the values that they expect themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.mil_kernels import KERNELS, kernel

__all__ = ["FUNCTIONS", "KERNELS", "linear"]

Array = np.ndarray


def _pads(
    kind: str, lengths: Sequence[int], size: Array, strides: Array, gaps: Array, pad: Any
) -> list[tuple[int, int]]:
    """Padding before and after each spatial axis."""
    if kind == "custom":
        return [(int(pad[2 * i]), int(pad[2 * i + 1])) for i in range(len(size))]
    found = []
    for n, k, s, d in zip(lengths, size, strides, gaps, strict=True):
        total = 0 if kind == "valid" else max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        less, more = total // 2, total - total // 2
        found.append((less, more) if kind == "same" else (more, less))
    return found


def _each(value: Any, rank: int) -> Array:
    return np.ones(rank, int) if value is None else np.asarray(value).reshape(-1)


def _windows(x: Array, size: Array, strides: Array, gaps: Array) -> Array:
    """All windows over the axes after the second, theirs last."""
    reach = [(k - 1) * d + 1 for k, d in zip(size, gaps, strict=True)]
    axes = tuple(range(2, x.ndim))
    found = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    steps = tuple(slice(None, None, int(s)) for s in strides)
    taps = tuple(slice(None, None, int(d)) for d in gaps)
    return found[(slice(None), slice(None), *steps, *taps)]


def _padded(x: Array, pads: list[tuple[int, int]], value: float) -> Array:
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=value)


@kernel
def conv(
    x: Array, weight: Array, bias: Array | None = None, strides: Any = None,
    pad_type: str = "valid", pad: Any = None, dilations: Any = None, groups: int = 1,
) -> Array:  # fmt: skip
    """One product of matrices for each group: its filters by the columns of its windows."""
    rank = x.ndim - 2
    size, strides, gaps = weight.shape[2:], _each(strides, rank), _each(dilations, rank)
    pads = _pads(pad_type, x.shape[2:], size, strides, gaps, pad)
    windows = _windows(_padded(x, pads, 0), np.asarray(size), strides, gaps)
    places = windows.shape[2 : 2 + rank]
    columns = np.moveaxis(windows, range(2 + rank, 2 + 2 * rank), range(2, 2 + rank))
    columns = columns.reshape(x.shape[0], groups, -1, math.prod(places))
    filters = weight.reshape(groups, weight.shape[0] // groups, -1)
    result = np.matmul(filters, columns).reshape(x.shape[0], weight.shape[0], *places)
    return (result if bias is None else result + bias.reshape(-1, *[1] * rank)).astype(x.dtype)


@kernel
def conv_transpose(
    x: Array, weight: Array, bias: Array | None = None, pad: Any = None,
    output_shape: Any = None, pad_type: str = "valid", strides: Any = None,
    dilations: Any = None, groups: int = 1,
) -> Array:  # fmt: skip
    """Every element adds its filters where they reach; what is too long is cut off."""
    rank = x.ndim - 2
    strides, gaps = _each(strides, rank), _each(dilations, rank)
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], gaps, strict=True)]
    whole = [(n - 1) * s + r for n, s, r in zip(x.shape[2:], strides, reach, strict=True)]
    total = np.zeros((x.shape[0], weight.shape[1] * groups, *whole), np.float64)
    width = weight.shape[1]
    for group, part in enumerate(np.split(x, groups, 1)):
        filters = np.split(weight, groups)[group]
        for tap in itertools.product(*map(range, weight.shape[2:])):
            found = np.moveaxis(np.tensordot(part, filters[(..., *tap)], ([1], [0])), -1, 1)
            where = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, gaps, x.shape[2:], strides, strict=True)
            )
            total[(slice(None), slice(group * width, (group + 1) * width), *where)] += found
    wanted = list(output_shape[2:]) if output_shape is not None else None
    for axis in range(rank):
        length = whole[axis]
        first = int(pad[2 * axis]) if pad_type == "custom" else 0
        last = int(pad[2 * axis + 1]) if pad_type == "custom" else 0
        end = length - first - last
        if pad_type == "same":
            end = x.shape[2 + axis] * int(strides[axis])
        end = end if wanted is None else int(wanted[axis])
        if pad_type == "same":
            first = max(length - end, 0) // 2
        total = np.moveaxis(total, 2 + axis, 0)[first : first + end]
        lack = end - total.shape[0]
        total = np.concatenate([total, np.zeros((lack, *total.shape[1:]))]) if lack else total
        total = np.moveaxis(total, 0, 2 + axis)
    return (total if bias is None else total + bias.reshape(-1, *[1] * rank)).astype(x.dtype)


def _reach(
    x: Array, kernel_sizes: Any, strides: Any, pad_type: str, pad: Any, ceil: bool
) -> tuple[Array, Array, list[tuple[int, int]], list[int]]:
    """Sizes and steps of windows, the padding, and how far windows reach beyond that."""
    rank = x.ndim - 2
    size, steps, gaps = np.asarray(kernel_sizes), _each(strides, rank), np.ones(rank, int)
    pads = _pads(pad_type, x.shape[2:], size, steps, gaps, pad)
    more = [0] * rank
    for axis, (before, after) in enumerate(pads if ceil else []):
        n, k, s = x.shape[2 + axis], int(size[axis]), int(steps[axis])
        count = -(-(n + before + after - k) // s) + 1
        count -= (count - 1) * s >= n + before and before + after > 0
        more[axis] = max(0, (count - 1) * s + k - n - before - after)
    return size, steps, pads, more


def _pooled(
    x: Array, fill: float, size: Array, steps: Array, join: Callable[[Array, Array], Array]
) -> Array:
    """The elements of each window joined, one place in the window after the other."""
    counts = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], size, steps, strict=True)]
    found = np.full((*x.shape[:2], *counts), fill, x.dtype)
    for tap in itertools.product(*map(range, size)):
        spans = zip(tap, counts, steps, strict=True)
        where = tuple(slice(t, t + (n - 1) * s + 1, s) for t, n, s in spans)
        found = join(found, x[(slice(None), slice(None), *where)])
    return found


def _around(pads: list[tuple[int, int]], more: list[int]) -> list[tuple[int, int]]:
    return [(before, after + rest) for (before, after), rest in zip(pads, more, strict=True)]


@kernel
def max_pool(
    x: Array, kernel_sizes: Any, pad_type: str, strides: Any = None, pad: Any = None,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    size, steps, pads, more = _reach(x, kernel_sizes, strides, pad_type, pad, ceil_mode)
    data = _padded(x, _around(pads, more), -np.inf)
    return _pooled(data, -np.inf, size, steps, np.maximum)


@kernel
def avg_pool(
    x: Array, kernel_sizes: Any, pad_type: str, strides: Any = None, pad: Any = None,
    ceil_mode: bool = False, exclude_padding_from_average: bool = False,
) -> Array:  # fmt: skip
    """What lies behind the end of the padding is never counted."""
    size, steps, pads, more = _reach(x, kernel_sizes, strides, pad_type, pad, ceil_mode)
    ones = np.ones((1, 1, *x.shape[2:]), x.dtype)
    counted = _padded(ones, pads, 0 if exclude_padding_from_average else 1)
    counted = _padded(counted, [(0, rest) for rest in more], 0)
    data = _padded(x, _around(pads, more), 0)
    found, count = (_pooled(each, 0, size, steps, np.add) for each in (data, counted))
    return (found / count).astype(x.dtype)


@kernel
def l2_pool(
    x: Array, kernel_sizes: Any, pad_type: str, strides: Any = None, pad: Any = None,
    ceil_mode: bool = False,
) -> Array:  # fmt: skip
    size, steps, pads, more = _reach(x, kernel_sizes, strides, pad_type, pad, ceil_mode)
    data = _padded(x * x, _around(pads, more), 0)
    return np.sqrt(_pooled(data, 0, size, steps, np.add))


def _along(vector: Any, x: Array) -> Array:
    return np.asarray(vector).reshape(-1, *[1] * (x.ndim - 2))


@kernel
def batch_norm(
    x: Array, mean: Array, variance: Array, gamma: Any = 1.0, beta: Any = 0.0, epsilon: Any = 1e-5
) -> Array:
    scaled = (x - _along(mean, x)) / np.sqrt(_along(variance, x) + epsilon)
    return (scaled * _along(gamma, x) + _along(beta, x)).astype(x.dtype)


@kernel
def instance_norm(x: Array, gamma: Any = 1.0, beta: Any = 0.0, epsilon: Any = 1e-5) -> Array:
    axes = tuple(range(2, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    scaled = (x - mean) / np.sqrt(variance + epsilon)
    return (scaled * _along(gamma, x) + _along(beta, x)).astype(x.dtype)


@kernel
def local_response_norm(
    x: Array, size: int, alpha: Any = 1e-4, beta: Any = 0.75, k: Any = 1.0
) -> Array:
    total = np.zeros_like(x)
    for channel in range(x.shape[1]):
        near = slice(max(0, channel - size // 2), channel + size // 2 + 1)
        total[:, channel] = (x[:, near] ** 2).sum(1)
    return (x / (k + alpha / size * total) ** beta).astype(x.dtype)


FUNCTIONS = {
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "scaled_tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sigmoid_hard": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "tanh": np.tanh,
}
"""The functions of recurrent layers, with their usual parameters."""


def _walked(every: list[Array], output_sequence: bool, *last: Array) -> tuple[Array, ...]:
    steps = np.stack(every)
    return (steps if output_sequence else steps[-1:], *last)


def _lstm(
    x: Array, h: Array, c: Array, w: Array, r: Array, b: Any, p: Any, attrs: dict[str, Any]
) -> tuple[list[Array], Array, Array]:
    inner, cell, outer = (FUNCTIONS[attrs[name]] for name in ("inner", "cell", "outer"))
    holes = np.split(np.zeros(3 * h.shape[1], x.dtype) if p is None else p, 3)
    steps = []
    for row in x:
        i, f, o, z = np.split(row @ w.T + h @ r.T + (0 if b is None else b), 4, axis=1)
        i, f = inner(i + c * holes[0]), inner(f + c * holes[1])
        c = f * c + i * cell(z)
        c = c if attrs["clip"] is None else np.clip(c, -attrs["clip"], attrs["clip"])
        h = inner(o + c * holes[2]) * outer(c)
        steps.append(h)
    return steps, h, c


@kernel
def lstm(
    x: Array, initial_h: Array, initial_c: Array, weight_ih: Array, weight_hh: Array,
    bias: Any = None, peephole: Any = None, weight_ih_back: Any = None,
    weight_hh_back: Any = None, bias_back: Any = None, peephole_back: Any = None,
    direction: str = "forward", output_sequence: bool = False,
    recurrent_activation: str = "sigmoid", cell_activation: str = "tanh",
    activation: str = "tanh", clip: Any = None,
) -> tuple[Array, ...]:  # fmt: skip
    """A layer that walks backwards gives its steps in the order in which it walks."""
    attrs = {"inner": recurrent_activation, "cell": cell_activation, "outer": activation}
    attrs["clip"] = clip
    first = (weight_ih, weight_hh, bias, peephole)
    if direction != "bidirectional":
        rows = x if direction == "forward" else x[::-1]
        every, h, c = _lstm(rows, initial_h, initial_c, *first, attrs)
        return tuple(each.astype(x.dtype) for each in _walked(every, output_sequence, h, c))
    hs, cs = np.split(initial_h, 2, 1), np.split(initial_c, 2, 1)
    second = (weight_ih_back, weight_hh_back, bias_back, peephole_back)
    one = _lstm(x, hs[0], cs[0], *first, attrs)
    two = _lstm(x[::-1], hs[1], cs[1], *second, attrs)
    last = [np.concatenate([a, b], 1) for a, b in zip(one[1:], two[1:], strict=True)]
    every = [np.concatenate([a, b], 1) for a, b in zip(one[0], two[0][::-1], strict=True)]
    steps = np.stack(every) if output_sequence else last[0][None]
    return tuple(each.astype(x.dtype) for each in (steps, *last))


@kernel
def gru(
    x: Array, initial_h: Array, weight_ih: Array, weight_hh: Array, bias: Any = None,
    direction: str = "forward", output_sequence: bool = False,
    recurrent_activation: str = "sigmoid", activation: str = "tanh",
    reset_after: bool = False, input_bias: Any = None,
) -> tuple[Array, ...]:  # fmt: skip
    inner, outer, h = FUNCTIONS[recurrent_activation], FUNCTIONS[activation], initial_h
    none = np.zeros(weight_ih.shape[0], x.dtype)
    (wr, wo, wz), (rr, ro, rz) = np.split(weight_ih, 3), np.split(weight_hh, 3)
    br, bo, bz = np.split(none if bias is None else bias, 3)
    er, eo, ez = np.split(none if input_bias is None else input_bias, 3)
    steps = []
    for row in x if direction == "forward" else x[::-1]:
        reset = inner(row @ wr.T + er + h @ rr.T + br)
        update = inner(row @ wz.T + ez + h @ rz.T + bz)
        if reset_after:
            new = outer(row @ wo.T + eo + reset * (h @ ro.T + bo))
        else:
            new = outer(row @ wo.T + eo + (reset * h) @ ro.T + bo)
        h = (1 - update) * new + update * h
        steps.append(h)
    return tuple(each.astype(x.dtype) for each in _walked(steps, output_sequence, h))


@kernel
def rnn(
    x: Array, initial_h: Array, weight_ih: Array, weight_hh: Array, bias: Any = None,
    direction: str = "forward", output_sequence: bool = False, activation: str = "tanh",
) -> tuple[Array, ...]:  # fmt: skip
    h, steps = initial_h, []
    for row in x if direction == "forward" else x[::-1]:
        linear = row @ weight_ih.T + h @ weight_hh.T + (0 if bias is None else bias)
        h = FUNCTIONS[activation](linear)
        steps.append(h)
    return tuple(each.astype(x.dtype) for each in _walked(steps, output_sequence, h))


def spaced(mode: str, before: int, after: int) -> Array:
    """The places of a mode of sampling, as ``resize_bilinear`` is documented."""
    i = np.arange(after)
    if mode == "ALIGN_CORNERS" and after == 1:
        return np.array([(before - 1) / 2])
    if mode in ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS"):
        places = i * (before - 1) / max(after - 1, 1)
    elif mode == "DEFAULT":
        places = i * before / after
    elif mode == "OFFSET_CORNERS":
        places = (i + 0.5) * max(1, before - 1) / after
    else:
        places = (i + 0.5) * before / after - 0.5
    return np.clip(places, 0, before - 1)


def read(x: Array, axis: int, places: Array) -> Array:
    """A tensor read linearly at places along an axis."""
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    part = (places - low).reshape([-1 if n == axis % x.ndim else 1 for n in range(x.ndim)])
    return x.take(low, axis) * (1 - part) + x.take(high, axis) * part


def linear(x: Array, size: Sequence[int], mode: str) -> Array:
    """A tensor with its last axes resized linearly."""
    found = x
    for axis, length in zip(range(-len(size), 0), size, strict=True):
        found = read(found, axis, spaced(mode, found.shape[axis], int(length)))
    return found.astype(x.dtype)


@kernel
def resize_bilinear(
    x: Array, target_size_height: int = 1, target_size_width: int = 1,
    sampling_mode: str = "DEFAULT",
) -> Array:  # fmt: skip
    return linear(x, (target_size_height, target_size_width), sampling_mode)


def _centred(x: Array, size: Sequence[int]) -> Array:
    for axis, length in zip(range(-len(size), 0), size, strict=True):
        x = x.take((2 * np.arange(length) + 1) * x.shape[axis] // (2 * length), axis)
    return x


@kernel
def resize_nearest_neighbor(x: Array, target_size_height: int, target_size_width: int) -> Array:
    return _centred(x, (int(target_size_height), int(target_size_width)))


@kernel
def resize(
    x: Array, shape: Array, resized_dims: int, interpolation_mode: str = "LINEAR",
    sampling_mode: str = "DEFAULT",
) -> Array:  # fmt: skip
    count = int(resized_dims)
    pairs = zip(np.asarray(shape)[-count:], x.shape[-count:], strict=True)
    size = [int(n) or own for n, own in pairs]
    if interpolation_mode == "LINEAR":
        return linear(x, size, sampling_mode)
    return _centred(x, size)


def _scaled(x: Array, height: Any, width: Any) -> list[int]:
    return [int(np.floor(n * s)) for n, s in zip(x.shape[-2:], (height, width), strict=True)]


@kernel
def upsample_nearest_neighbor(
    x: Array, scale_factor_height: Any = 1, scale_factor_width: Any = 1
) -> Array:
    for axis, size in zip(
        (-2, -1), _scaled(x, scale_factor_height, scale_factor_width), strict=True
    ):
        x = x.take(np.arange(size) * x.shape[axis] // size, axis)
    return x


@kernel
def upsample_bilinear(
    x: Array, scale_factor_height: Any = 1, scale_factor_width: Any = 1,
    align_corners: bool = True, half_pixel_centers: bool | None = None,
) -> Array:  # fmt: skip
    centres = not align_corners if half_pixel_centers is None else half_pixel_centers
    mode = "STRICT_ALIGN_CORNERS" if align_corners else "UNALIGN_CORNERS" if centres else "DEFAULT"
    return linear(x, _scaled(x, scale_factor_height, scale_factor_width), mode)


@kernel
def crop(x: Array, crop_height: Array, crop_width: Array) -> Array:
    (top, bottom), (left, right) = crop_height, crop_width
    return x[..., top : x.shape[-2] - bottom, left : x.shape[-1] - right]


def _cut(image: Array, box: Array, size: Sequence[int], mode: str, pad: float) -> Array:
    """One image read between the corners of a box in pixels, `pad` beyond it."""
    outside, found = np.zeros((1, *size), bool), image
    for axis, (first, last) in enumerate([(box[0], box[2]), (box[1], box[3])], start=1):
        count = size[axis - 1]
        i = np.arange(count)
        if mode == "OFFSET_CORNERS":
            places = first + (i + 0.5) * max(1, last - first) / count
        elif mode == "ALIGN_CORNERS" and count == 1:
            places = np.array([(first + last) / 2])
        else:
            places = first + i * (last - first) / max(count - 1, 1)
        held = np.clip(places, 0, image.shape[axis] - 1)
        outside = outside | (places != held).reshape([-1 if n == axis else 1 for n in range(3)])
        found = read(found, axis, held)
    return np.where(outside, pad, found)


@kernel
def crop_resize(
    x: Array, boxes: Any = None, box_indices: Any = None, roi: Any = None,
    target_height: int = 1, target_width: int = 1, normalized_coordinates: bool = False,
    spatial_scale: Any = 1.0, box_coordinate_mode: str = "CORNERS_HEIGHT_FIRST",
    sampling_mode: str = "DEFAULT", pad_value: Any = 0.0,
) -> Array:  # fmt: skip
    old = roi is not None
    rows = np.asarray(roi if old else boxes, np.float64)
    rows = rows.reshape(rows.shape[0], -1)
    named = old and rows.shape[1] == 5
    numbers = rows[:, 0].astype(int) if named else box_indices
    rows = rows[:, 1:] if named else rows
    rows = rows[:, [1, 0, 3, 2]] if "WIDTH_FIRST" in box_coordinate_mode else rows
    if box_coordinate_mode.startswith("CENTER"):
        rows = np.concatenate([rows[:, :2] - rows[:, 2:] / 2, rows[:, :2] + rows[:, 2:] / 2], 1)
    ends = np.array([x.shape[2] - 1, x.shape[3] - 1] * 2)
    rows = rows * spatial_scale * (ends if normalized_coordinates else 1)
    size, pad = (int(target_height), int(target_width)), float(pad_value)
    found = []
    for index, row in enumerate(rows):
        chosen = x if old and not named else x[[index if numbers is None else int(numbers[index])]]
        found.append([_cut(image, row, size, sampling_mode, pad) for image in chosen])
    result = np.array(found).astype(x.dtype)
    return result if old else result[:, 0]


@kernel
def resample(
    x: Array, coordinates: Array, sampling_mode: str, padding_mode: str, padding_value: Any,
    coordinates_mode: str, align_corners: bool,
) -> Array:  # fmt: skip
    lengths = np.array(x.shape[:1:-1], np.float64)
    places = coordinates.astype(np.float64)
    if coordinates_mode != "unnormalized":
        part = (
            (places + 1) / 2
            if coordinates_mode.endswith("to_one") and "minus" in (coordinates_mode)
            else places
        )
        places = part * (lengths - 1) if align_corners else part * lengths - 0.5
    if padding_mode in ("reflection", "symmetric"):
        start, span = (0.0, lengths - 1) if padding_mode == "reflection" else (-0.5, lengths)
        rest = np.abs(places - start) % (2 * np.maximum(span, 1))
        places = np.minimum(rest, 2 * np.maximum(span, 1) - rest) + start
    if padding_mode != "constant":
        places = np.clip(places, 0, lengths - 1)
    batch = np.arange(x.shape[0])[:, None, None]

    def at(spot: Array) -> Array:
        inside = ((spot >= 0) & (spot < lengths)).all(-1)
        held = np.clip(spot, 0, lengths - 1).astype(int)
        found = x[batch, :, held[..., 1], held[..., 0]]
        return np.where(inside[..., None], found, padding_value)

    if sampling_mode == "nearest":
        result = at(np.rint(places))
    else:
        low = np.floor(places)
        part = places - low
        result = 0.0
        for dx, dy in itertools.product((0, 1), (0, 1)):
            share = part[..., :1] if dx else 1 - part[..., :1]
            share = share * (part[..., 1:] if dy else 1 - part[..., 1:])
            result = result + share * at(low + np.array([dx, dy]))
    return np.moveaxis(result, -1, 1).astype(x.dtype)


def _overlaps(one: Array, others: Array) -> Array:
    """Intersection over union of a box with others, all by centre and size."""
    low = np.maximum(one[:2] - one[2:] / 2, others[:, :2] - others[:, 2:] / 2)
    high = np.minimum(one[:2] + one[2:] / 2, others[:, :2] + others[:, 2:] / 2)
    common = np.maximum(high - low, 0).prod(1)
    union = one[2:].prod() + others[:, 2:].prod(1) - common
    return np.where(union > 0, common / np.where(union > 0, union, 1), 0).astype(np.float32)


@kernel
def non_maximum_suppression(
    boxes: Array, scores: Array, iou_threshold: Any, max_boxes: int,
    score_threshold: Any = None, per_class_suppression: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    """The best first, none that overlaps a better one; zeros and -1 behind them."""
    turned = score_threshold is None
    if turned:
        boxes, scores = boxes.transpose(0, 2, 1), scores.transpose(0, 2, 1)
    count, most = len(boxes), int(max_boxes)
    found = np.zeros((count, most, 4), boxes.dtype)
    marks = np.zeros((count, most, scores.shape[2]), scores.dtype)
    places, totals = np.full((count, most), -1, np.int32), np.zeros(count, np.int32)
    for image in range(count):
        best, kind = scores[image].max(1), scores[image].argmax(1)
        kept: list[int] = []
        for index in np.argsort(-best, kind="stable"):
            if len(kept) == most or (not turned and best[index] < score_threshold):
                break
            rivals = [k for k in kept if not per_class_suppression or kind[k] == kind[index]]
            near = _overlaps(boxes[image, index], boxes[image, rivals])
            if (near <= np.float32(iou_threshold)).all():
                kept.append(int(index))
        found[image, : len(kept)], marks[image, : len(kept)] = (
            boxes[image, kept],
            scores[image, kept],
        )
        places[image, : len(kept)], totals[image] = kept, len(kept)
    if turned:
        return found.transpose(0, 2, 1), marks.transpose(0, 2, 1), places
    return found, marks, places, totals
