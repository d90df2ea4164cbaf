"""Operators that cut or overwrite rectangular regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import numpy as np

from serde.core.records import dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Any, Array, Constant, Dim, Expr, builder, call, const, relay_op, sample
from serde.relay.ir.shapes import normalize_axes, require_same_dtype
from serde.relay.ir.traits import Fusion, FusionPattern, Moves, TypeOnly, Values
from serde.relay.ir.types import TensorType
from serde.relay.lowering.index import decompose_strided_set
from serde.relay.op.index.gather import require_integers
from serde.relay.op.shape.reshape import integers

__all__ = ["FAR", "StridedSlice", "slice_dim"]

FAR = 2**31 - 1
"""A bound from here on means the end of the axis, whatever its length."""


@dataclass(frozen=True, kw_only=True)
class StridedSlice:
    """Attributes of ``strided_slice``."""

    begin: tuple[int, ...] | None
    end: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    slice_mode: Literal["end", "size"] = "end"
    axes: tuple[int, ...] | None

    def cuts(self, rank: int) -> dict[int, tuple[int, int, int]]:
        """Return begin, end and stride of each axis that is sliced."""
        begin, end = self.begin, self.end
        if begin is None or end is None:
            raise TypeInferenceError("attributes begin and end must be given")
        count = max(len(begin), len(end))
        over = normalize_axes(self.axes, rank) if self.axes is not None else tuple(range(count))
        if len(over) != count or count > rank or len(begin) != len(end):
            raise TypeInferenceError(
                f"begin {list(begin)} and end {list(end)} do not fit {rank} axes"
            )
        steps = list(self.strides or ())[:count]
        steps += [1] * (count - len(steps))
        if 0 in steps:
            raise TypeInferenceError("a stride is 0")
        if self.slice_mode == "size":
            if any(start < 0 for start in begin):
                raise TypeInferenceError(
                    f"begin {list(begin)} must not be negative where end is a size"
                )
            end = tuple(FAR if n < 0 else start + n for start, n in zip(begin, end, strict=True))
            steps = [1] * count
        return dict(zip(over, zip(begin, end, steps, strict=True), strict=True))


def slice_dim(length: Dim, begin: int, end: int, stride: int) -> Dim:
    """Return the length of a slice, as Python counts it.

    Of a symbol, a slice that reaches from near one end to near the other is
    taken to lie inside the axis; where the symbol decides how much is cut
    off, the length is anonymous.
    """
    if isinstance(length, int):
        return len(range(*slice(begin, end, stride).indices(length)))
    if (begin < 0) == (end < 0) and (end - begin) * stride <= 0:
        return 0
    if isinstance(length, Any):
        return length
    if stride < 0:
        whole = begin in (-1, FAR) and end <= -FAR
        return (length - stride - 1) // -stride if whole else Any()
    if begin < 0 and end >= FAR:
        return 1 if begin == -1 else Any()
    if begin < 0 or 0 <= end < FAR:
        return Any()
    span = length - begin + (0 if end >= FAR else end)
    return (span + stride - 1) // stride


def _strided_slice_type(data: TensorType, *, region: StridedSlice) -> TensorType:
    cuts = region.cuts(data.rank)
    shape = [slice_dim(d, *cuts[i]) if i in cuts else d for i, d in enumerate(data.shape)]
    return TensorType(shape, data.dtype)


def _index_region(rank: int, cuts: dict[int, tuple[int, int, int]]) -> tuple[slice, ...]:
    return tuple(slice(*cuts[i]) if i in cuts else slice(None) for i in range(rank))


@relay_op(
    "strided_slice",
    traits=(Moves(),),
    infer=_strided_slice_type,
    samples=[
        sample((8, 9), begin=[-1], end=[-9], strides=[-1], axes=None),
        sample((8, 9), begin=[1, 0], end=[FAR, FAR], strides=[1, 2], axes=None),
        sample((8, 9), begin=[0, 2], end=[-2, 100], strides=[3], axes=None),
        sample((8, 9, 5), begin=[1], end=[4], strides=[1], axes=[2]),
        sample((8, 9), begin=[1, 2], end=[3, -1], strides=[1], slice_mode="size", axes=None),
        sample((8, 9), begin=[-1], end=[-FAR], strides=[-2], axes=[-1]),
        sample((8, 9), begin=[-1], end=[FAR], strides=None, axes=[0]),
        sample((4,), begin=[3], end=[1], strides=[1], axes=None),
    ],
)
def strided_slice(data: Array, *, region: StridedSlice) -> Array:
    """A region of `data`, counted as Python counts slices.

    With `slice_mode` "size", `end` holds lengths, -1 for all that remains, and strides do not
    count. `axes` None means the leading ones.
    """
    return data[_index_region(data.ndim, region.cuts(data.ndim))].copy()


@builder("strided_slice")
def build_strided_slice(
    data: Expr,
    begin: AnyValue,
    end: AnyValue,
    strides: AnyValue = None,
    axes: Sequence[int] | None = None,
    slice_mode: str = "end",
) -> Expr:
    """Return a region of `data`; bounds are integers or expressions.

    Where one has no value yet, those that are known become constants beside it.
    """
    steps = integers(strides)
    bounds = [integers(begin), integers(end), steps]
    if any(isinstance(bound, Expr) for bound in bounds):
        return _dynamic_slice(data, bounds, axes, slice_mode)
    if slice_mode == "end":
        bounds[:2] = _complete_bounds(*bounds)
    return call(
        "strided_slice", data, begin=bounds[0], end=bounds[1],
        strides=[1] if steps is None else steps, slice_mode=slice_mode, axes=axes,
    )  # fmt: skip


def _complete_bounds(
    begin: Sequence[int | None], end: Sequence[int | None], strides: Sequence[int] | None
) -> list[list[int]]:
    """Return bounds of as many axes; one that is None is the end of its axis.

    So is one that is not there, but that TVM stops short of the first element then.
    """
    given = list(strides or ())
    count = max(len(begin), len(end), len(given) if len(given) > 1 else 0)
    steps = [*given, *[1] * count][:count]
    rows = zip([*begin, *[None] * count], [*end, *[0] * count], steps, strict=False)
    first, last = [], []
    for place, (start, stop, step) in enumerate(rows):
        first.append(start if start is not None else 0 if step > 0 else -1)
        here = stop if place < len(end) or step < 0 else None
        last.append(here if here is not None else FAR if step > 0 else -FAR)
    return [first, last]


def _dynamic_slice(
    data: Expr, bounds: list[AnyValue], axes: Sequence[int] | None, slice_mode: str
) -> Expr:
    open_ = next(bound for bound in bounds if isinstance(bound, Expr))
    type_ = open_.checked_type
    if not isinstance(type_, TensorType) or type_.rank != 1 or not isinstance(type_.shape[0], int):
        raise TypeInferenceError(
            f"strided_slice: expected a vector of known length, found {type_!r}"
        )
    whole = data.type
    if isinstance(whole, TensorType) and type_.shape[0] > whole.rank:
        raise TypeInferenceError(
            f"strided_slice: {type_.shape[0]} bounds for a tensor of {whole.rank} axes"
        )
    ones = [1] * type_.shape[0]
    wanted = [ones if bound is None else bound for bound in bounds]
    operands = [
        bound if isinstance(bound, Expr) else Constant(np.array(bound, type_.dtype))
        for bound in wanted
    ]
    return call("dyn.strided_slice", data, *operands, slice_mode=slice_mode, axes=axes)


def _strided_set_type(
    data: TensorType, v: TensorType, begin: TensorType, end: TensorType, strides: TensorType
) -> TensorType:
    require_same_dtype(data, v)
    require_integers(begin, end, strides)
    if any(bound.rank != 1 for bound in (begin, end, strides)):
        raise TypeInferenceError("expected vectors for begin, end and strides")
    if v.rank != data.rank:
        raise TypeInferenceError(f"expected a region of rank {data.rank}, found {v!r}")
    return data


@relay_op(
    "strided_set",
    traits=(Values(0, 1), Fusion(FusionPattern.INJECTIVE)),
    infer=_strided_set_type,
    decompose=decompose_strided_set,
    samples=[
        sample((3, 4), (2, 2), np.array([1, 0]), np.array([3, 4]), np.array([1, 2])),
        sample((4,), (2,), np.array([-1]), np.array([-5]), np.array([-2])),
    ],
)
def strided_set(data: Array, v: Array, begin: Array, end: Array, strides: Array) -> Array:
    """`data` with a region, counted as Python counts slices, replaced by `v`."""
    first, last = _complete_bounds(begin.tolist(), end.tolist(), strides.tolist())
    region = StridedSlice(begin=tuple(first), end=tuple(last), strides=strides.tolist(), axes=None)
    cuts = region.cuts(data.ndim)
    result = data.copy()
    result[_index_region(data.ndim, cuts)] = v
    return result


@builder("strided_set")
def build_strided_set(
    data: Expr, v: Expr, begin: AnyValue, end: AnyValue, strides: AnyValue = None
) -> Expr:
    """Return `data` with a region replaced; bounds are integers or expressions."""
    first = begin if isinstance(begin, Expr) else const(list(begin), "int32")
    last = end if isinstance(end, Expr) else const(list(end), "int32")
    if strides is None:
        count = first.checked_type
        length = count.concrete_shape if isinstance(count, TensorType) else None
        if length is None:
            raise TypeInferenceError("strided_set: strides must be given")
        strides = [1] * length[0]
    steps = strides if isinstance(strides, Expr) else const(list(strides), "int32")
    return call("strided_set", data, v, first, last, steps)


def _slice_like_type(
    data: TensorType, shape_like: TensorType, *, axes: Sequence[int] | None
) -> TensorType:
    shape = list(data.shape)
    for axis in _like_axes(data.rank, shape_like.rank, axes):
        have, want = shape[axis], shape_like.shape[axis]
        if isinstance(have, int) and isinstance(want, int) and want > have:
            raise TypeInferenceError(f"axis {axis} of {have} cannot be cut to {want}")
        shape[axis] = want
    return TensorType(shape, data.dtype)


def _like_axes(rank: int, other: int, axes: Sequence[int] | None) -> tuple[int, ...]:
    if axes:
        named = normalize_axes(axes, rank)
        normalize_axes(named, other)
        return named
    return tuple(range(min(rank, other)))


@relay_op(
    "slice_like",
    traits=(Moves(), TypeOnly(1)),
    infer=_slice_like_type,
    samples=[sample((8, 9), (4, 5), axes=[0]), sample((8, 9), (4, 5), axes=[])],
)
def slice_like(data: Array, shape_like: Array, *, axes: tuple[int, ...] | None) -> Array:
    """The leading part of `data`, as long as the second operand along `axes`, or along all."""
    along = _like_axes(data.ndim, shape_like.ndim, axes)
    cut = [slice(shape_like.shape[i]) if i in along else slice(None) for i in range(data.ndim)]
    return data[tuple(cut)].copy()


@builder("slice_like")
def build_slice_like(data: Expr, shape_like: Expr, axes: Sequence[int] | None = ()) -> Expr:
    """Return the leading part of `data`, as long as `shape_like` along `axes`."""
    return call("slice_like", data, shape_like, axes=() if axes is None else axes)
