"""Forms whose shape is an operand; where it is a constant, types are those of the static forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.limits import MAX_RANK
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, TensorType, get, ranges, relay_op, sample, tensor
from serde.relay.ir.shapes import is_float, normalize_axes
from serde.relay.ir.traits import Fusion, FusionPattern, InRange, Moves, Reshape, Values
from serde.relay.op.shape import arrange, broadcast, create, pad, reshape

__all__ = ["Given", "count_of", "integers_of", "scalar_of", "static_type"]

Given = Array | TensorType


def integers_of(operand: Array) -> tuple[int, ...]:
    """Return the integers of a vector."""
    return tuple(int(item) for item in operand.reshape(-1))


def count_of(operand: Given) -> int:
    """Return how many integers a vector holds."""
    kind = np.dtype(operand.dtype).kind
    shape = tuple(operand.shape)
    if kind not in "iu" or len(shape) != 1 or not isinstance(shape[0], int):
        raise TypeInferenceError(f"expected integers of known number, found {operand!r}")
    if shape[0] > MAX_RANK:
        raise TypeInferenceError(f"expected a number for each axis, found {shape[0]}")
    return shape[0]


def scalar_of(operand: Given) -> int | None:
    """Return the value of a constant scalar, None for one that is computed."""
    if tuple(operand.shape) not in ((), (1,)):
        raise TypeInferenceError(f"expected a scalar, found {operand!r}")
    return int(operand.item()) if isinstance(operand, np.ndarray) else None


def static_type(name: str, *operands: TensorType, **attrs: AnyValue) -> AnyValue:
    """Return the type that the static form has."""
    definition = get(name)
    return definition.infer(*operands, **definition.bind(attrs))


def _unknown(rank: int, dtype: AnyValue) -> TensorType:
    return TensorType([Any()] * rank, dtype)


def _filled_type(shape: Given, *, dtype: AnyValue) -> TensorType:
    rank = count_of(shape)
    if dtype is None:
        raise TypeInferenceError("attribute dtype must name the dtype of the result")
    if isinstance(shape, np.ndarray):
        return static_type("zeros", shape=integers_of(shape), dtype=dtype)
    return _unknown(rank, dtype)


_LENGTHS = np.array([2, 3], np.int64)
_TWO_TWOS = tensor((2,), "int64", low=2, high=2)


@relay_op(
    "dyn.zeros",
    traits=(Fusion(FusionPattern.ELEMWISE), InRange(ranges.within(0, ranges.COUNT))),
    infer=_filled_type,
    by_value=["shape"],
    samples=[sample(_LENGTHS, dtype="float32"), sample(_TWO_TWOS, dtype="int64")],
)
def zeros(shape: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """Zeros."""
    return create.zeros(shape=integers_of(shape), dtype=dtype)


@relay_op(
    "dyn.ones",
    traits=(Fusion(FusionPattern.ELEMWISE), InRange(ranges.within(0, ranges.COUNT))),
    infer=_filled_type,
    by_value=["shape"],
    samples=[sample(_LENGTHS, dtype="float32"), sample(_TWO_TWOS, dtype="bool")],
)
def ones(shape: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """Ones."""
    return create.ones(shape=integers_of(shape), dtype=dtype)


def _full_type(fill_value: TensorType, shape: Given, *, dtype: AnyValue) -> TensorType:
    rank = count_of(shape)
    if fill_value.rank:
        raise TypeInferenceError(f"expected a scalar, found {fill_value!r}")
    if isinstance(shape, np.ndarray):
        return static_type("full", fill_value, shape=integers_of(shape), dtype=dtype)
    return _unknown(rank, dtype or fill_value.dtype)


@relay_op(
    "dyn.full",
    traits=(Values(0), Fusion(FusionPattern.ELEMWISE), InRange(ranges.within(1, ranges.COUNT))),
    infer=_full_type,
    by_value=["shape"],
    samples=[sample((), _LENGTHS), sample((), _TWO_TWOS, dtype="int32")],
)
def full(fill_value: Array, shape: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """One value everywhere."""
    return create.full(fill_value, shape=integers_of(shape), dtype=dtype)


def _broadcast_to_type(data: TensorType, shape: Given, *, dtype: AnyValue) -> TensorType:
    rank = count_of(shape)
    if isinstance(shape, np.ndarray):
        return static_type("broadcast_to", data, shape=integers_of(shape), dtype=dtype)
    if data.rank > rank:
        raise TypeInferenceError(f"no broadcast from {data!r} to {rank} axes")
    return _unknown(rank, data.dtype)


@relay_op(
    "dyn.broadcast_to",
    traits=(Moves(all=True), Fusion(FusionPattern.BROADCAST)),
    infer=_broadcast_to_type,
    by_value=["shape"],
    samples=[sample((3,), np.array([2, 3], np.int32)), sample((2, 1), _TWO_TWOS)],
)
def broadcast_to(data: Array, shape: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """`data` spread over `shape`."""
    return broadcast.broadcast_to(data, shape=integers_of(shape))


def _reshape_type(data: TensorType, newshape: Given, *, allowzero: bool) -> TensorType:
    rank = count_of(newshape)
    if isinstance(newshape, np.ndarray):
        codes = integers_of(newshape)
        return static_type("reshape", data, newshape=codes, allowzero=allowzero)
    return _unknown(rank, data.dtype)


@relay_op(
    "dyn.reshape",
    traits=(Reshape, Moves(all=True)),
    infer=_reshape_type,
    by_value=["newshape"],
    samples=[
        sample((2, 3, 4), np.array([0, -1], np.int64)),
        sample((4,), _TWO_TWOS),
        sample((2, 3, 4), np.array([-3, -2], np.int64)),
    ],
)
def dynamic_reshape(data: Array, newshape: Array, *, allowzero: bool = False) -> Array:
    """The elements in another shape; of the codes, a shape that is computed holds 0 and -1 only."""
    return reshape.reshape(data, newshape=integers_of(newshape), allowzero=allowzero)


def _tile_type(data: TensorType, reps: Given) -> TensorType:
    whole = TensorType(reps.shape, "int64") if is_float(str(reps.dtype)) else reps
    count = count_of(whole)  # TVM takes floats that are whole numbers too.
    if isinstance(reps, np.ndarray):
        return static_type("tile", data, reps=integers_of(reps))
    return _unknown(max(data.rank, count), data.dtype)


@relay_op(
    "dyn.tile",
    traits=(Moves(all=True), InRange(ranges.within(1, (1, 3)))),
    infer=_tile_type,
    by_value=["reps"],
    samples=[
        sample((2, 3), np.array([2, 1, 2], np.int64)),
        sample((3,), _TWO_TWOS),
        sample((2, 1, 3), tensor((2,), "int32", low=2, high=2)),
    ],
)
def tile(data: Array, reps: Array) -> Array:
    """The whole tensor repeated along each axis, aligned at the last."""
    return arrange.tile(data, reps=integers_of(reps))


def _expand_dims_type(data: TensorType, axis: Given, *, num_newaxis: int) -> TensorType:
    place = scalar_of(axis)
    if place is not None:
        return static_type("expand_dims", data, axis=place, num_newaxis=num_newaxis)
    return _unknown(data.rank + num_newaxis, data.dtype)


@relay_op(
    "dyn.expand_dims",
    traits=(Reshape, Moves(all=True)),
    infer=_expand_dims_type,
    by_value=["axis"],
    meta_class="relay.attrs.DynExpandDimsAttrs",
    samples=[
        sample((2, 3), np.array(-2, np.int64)),
        sample((2, 3), tensor((), "int64", low=1, high=1), num_newaxis=2),
    ],
)
def expand_dims(data: Array, axis: Array, *, num_newaxis: int = 1) -> Array:
    """`data` with `num_newaxis` axes of length 1 before axis `axis`."""
    return reshape.expand_dims(data, axis=int(axis.item()), num_newaxis=num_newaxis)


def _squeeze_type(data: TensorType, axes: Given) -> TensorType:
    count = count_of(axes)
    if isinstance(axes, np.ndarray):
        return static_type("squeeze", data, axis=normalize_axes(integers_of(axes), data.rank))
    if count > data.rank:
        raise TypeInferenceError(f"{data!r} has no {count} axes")
    return _unknown(data.rank - count, data.dtype)


@relay_op(
    "dyn.squeeze",
    traits=(Reshape, Moves(all=True)),
    infer=_squeeze_type,
    by_value=["axes"],
    samples=[
        sample((1, 3, 1), np.array([0, -1], np.int64)),
        sample((2, 1, 3), tensor((1,), "int64", low=1, high=1)),
    ],
)
def squeeze(data: Array, axes: Array) -> Array:
    """`data` without the axes named, which have length 1."""
    return reshape.squeeze(data, axis=integers_of(axes))


def _pad_type(
    data: TensorType, pad_width: Given, pad_val: TensorType, *, pad_mode: str
) -> TensorType:
    shape = tuple(pad_width.shape)
    wrong = [n for n, w in zip(shape, (data.rank, 2), strict=False) if type(n) is int and n != w]
    if len(shape) != 2 or wrong:
        raise TypeInferenceError(f"expected {data.rank} pairs of widths, found {pad_width!r}")
    if isinstance(pad_width, np.ndarray):
        widths = _pairs(pad_width)
        return static_type("nn.pad", data, pad_val, pad_width=widths, pad_mode=pad_mode)
    if pad_val.rank:
        raise TypeInferenceError(f"expected a scalar to pad with, found {pad_val!r}")
    return _unknown(data.rank, data.dtype)


def _pairs(pad_width: Array) -> Sequence[tuple[int, int]]:
    return tuple((int(before), int(after)) for before, after in pad_width)


@relay_op(
    "dyn.nn.pad",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE), InRange(ranges.within(1, (0, 3)))),
    infer=_pad_type,
    by_value=["pad_width"],
    samples=[
        sample((2, 3), np.array([[1, 2], [0, 3]], np.int64), np.float32(0.5)),
        sample((3, 4), tensor((2, 2), "int64", low=1, high=2), (), pad_mode="reflect"),
        sample((3, 4), tensor((2, 2), "int32", low=0, high=2), ()),
    ],
)
def dynamic_pad(
    data: Array,
    pad_width: Array,
    pad_val: Array,
    *,
    pad_mode: Literal["constant", "edge", "reflect"] = "constant",
) -> Array:
    """`data` with elements before and after each axis; see ``nn.pad``."""
    return pad.pad(data, pad_val, pad_width=_pairs(pad_width), pad_mode=pad_mode)  # type: ignore[arg-type]
