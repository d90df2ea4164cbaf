"""Operators that keep the elements and their order, and give another shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core import MAX_RANK, dataclass
from serde.errors import TypeInferenceError
from serde.relay.ir import Fusion, FusionPattern, Moves, Reshape, SameAxes, SameType, TypeOnly
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.expr import Constant, Expr
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample
from serde.relay.ir.shapes import normalize_axes, normalize_axis
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_reshape_like

__all__ = ["ReshapeLike", "integers", "lengths", "new_shape"]


@dataclass(frozen=True, kw_only=True)
class ReshapeLike:
    """Attributes of ``reshape_like``."""

    lhs_begin: int = 0
    lhs_end: int | None = None
    rhs_begin: int = 0
    rhs_end: int | None = None


def integers(value: AnyValue) -> AnyValue:
    """Return the numbers of a constant; anything else as it is."""
    return value.data.tolist() if isinstance(value, Constant) else value


def lengths(shape: Sequence[Dim]) -> tuple[int, ...]:
    """Return the dimensions of an attribute as integers."""
    for dim in shape:
        if not isinstance(dim, int):
            raise TypeInferenceError(f"dimension {dim} has no value yet")
    return tuple(dim for dim in shape if isinstance(dim, int))


class _Reader:
    """Reads reshape codes from the left and matches them against the dimensions of the input."""

    def __init__(self, shape: Sequence[Dim], codes: Sequence[Dim], allowzero: bool) -> None:
        self.codes = list(codes)
        self.allowzero = allowzero
        self.result: list[Dim] = []
        self.open: int | None = None
        self.literal: Dim = 1
        self.shape = list(shape)
        self.at = 0
        self.matched: set[int] = set()

    def take(self) -> Dim:
        """Return the next input dimension, which the result then holds whole."""
        if self.at >= len(self.shape):
            raise TypeInferenceError(
                f"the codes {self.codes} need more axes than the {len(self.shape)} of the input"
            )
        self.matched.add(self.at)
        self.at += 1
        return self.shape[self.at - 1]

    def read(self) -> list[Dim]:
        """Return the shape that the codes mean."""
        position = 0
        while position < len(self.codes):
            position += self._one(position)
        self._close()
        return self.result

    def _one(self, position: int) -> int:
        """Read the code at `position` and return how many entries it took."""
        code = self.codes[position]
        if code == 0 and not self.allowzero:
            self.result.append(self.take())
        elif not isinstance(code, int) or code >= 0:
            self.result.append(code)
            self.literal = self.literal * code
            self.at += 1
        elif code == -1:
            if self.open is not None:
                raise TypeInferenceError(f"only one dimension of {self.codes} may be -1")
            self.open = len(self.result)
            self.result.append(1)
            self.at += 1
        elif code == -2:
            while self.at < len(self.shape):
                self.result.append(self.take())
        elif code == -3:
            self.result.append(self.take() * self.take())
        elif code == -4:
            self._split_axis(self.codes[position + 1 : position + 3])
            return 3
        else:
            raise TypeInferenceError(f"{code} is no reshape code")
        return 1

    def _split_axis(self, parts: Sequence[Dim]) -> None:
        whole = self.take()
        if len(parts) != 2 or list(parts) == [-1, -1] or 0 in parts:
            raise TypeInferenceError("two lengths must follow -4, one of them at most -1")
        first, second = parts
        if first == -1:
            first = whole // second
        elif second == -1:
            second = whole // first
        total = first * second
        if isinstance(whole, int) and isinstance(total, int) and whole != total:
            raise TypeInferenceError(f"a dimension of {whole} does not split into {list(parts)}")
        self.result += [first, second]

    def _close(self) -> None:
        """Fill in the dimension that is -1, and check the number of elements."""
        rest = product(dim for i, dim in enumerate(self.shape) if i not in self.matched)
        if self.open is not None:
            if self.literal == 0:
                raise TypeInferenceError(f"-1 beside a length of 0 in {self.codes} means nothing")
            self.result[self.open] = rest // self.literal
        used = self.literal if self.open is None else self.literal * self.result[self.open]
        if isinstance(rest, int) and isinstance(used, int) and rest != used:
            shown = ", ".join(map(str, self.shape))
            raise TypeInferenceError(f"a tensor of shape ({shown}) cannot become {self.codes}")


def new_shape(
    shape: Sequence[Dim], newshape: Sequence[Dim], allowzero: bool = False
) -> tuple[Dim, ...]:
    """Return the shape that reshape codes make of `shape`.

    0 copies a dimension (`allowzero`: is the length 0), -1 is what remains, -2
    copies all that follow, -3 joins two, -4 splits one into the two that follow.
    """
    return tuple(_Reader(shape, newshape, allowzero).read())


def _reshape_type(data: TensorType, *, newshape: Sequence[Dim], allowzero: bool) -> TensorType:
    return TensorType(new_shape(data.shape, newshape, allowzero), data.dtype)


@relay_op(
    "reshape",
    traits=(Reshape, Moves(all=True)),
    infer=_reshape_type,
    samples=[
        sample((2, 3, 4, 1), newshape=[6, -1]),
        sample((2, 3, 4, 1), newshape=[0, -1]),
        sample((2, 3, 4, 1), newshape=[-2]),
        sample((2, 3, 4, 1), newshape=[-3, -2]),
        sample((2, 3, 4, 1), newshape=[-4, 1, 2, -2]),
        sample((2, 3, 4, 1), newshape=[2, -4, -1, 3, -3]),
        sample((2, 3, 4, 1), newshape=[-1, 0, 4]),
        sample((0, 3), newshape=[3, 0], allowzero=True),
        sample((1, 1), newshape=[]),
    ],
)
def reshape(data: Array, *, newshape: tuple[Dim, ...], allowzero: bool = False) -> Array:
    """The elements in row-major order in another shape; for the codes see new_shape."""
    return data.reshape(lengths(new_shape(data.shape, newshape, allowzero)))


@builder("reshape")
def build_reshape(data: Expr, newshape: AnyValue, allowzero: bool = False) -> Expr:
    """Return `data` in another shape, given as integers, dimensions or an expression."""
    shape = integers(newshape)
    if isinstance(shape, Expr):
        return call("dyn.reshape", data, shape, allowzero=allowzero)
    return call("reshape", data, newshape=shape, allowzero=allowzero)


def _reversed_shape(
    shape: Sequence[Dim], newshape: Sequence[Dim], allowzero: bool
) -> tuple[Dim, ...]:
    if -4 in newshape:
        raise TypeInferenceError("-4 has no meaning where codes are matched from the right")
    return new_shape(shape[::-1], newshape[::-1], allowzero)[::-1]


def _reverse_reshape_type(
    data: TensorType, *, newshape: Sequence[Dim], allowzero: bool
) -> TensorType:
    return TensorType(_reversed_shape(data.shape, newshape, allowzero), data.dtype)


@relay_op(
    "contrib_reverse_reshape",
    traits=(Reshape, Moves(all=True)),
    infer=_reverse_reshape_type,
    samples=[
        sample((10, 5, 4), newshape=[-1, 0]),
        sample((2, 3, 4), newshape=[-2, -3]),
        sample((2, 3, 4), newshape=[6, 0]),
    ],
)
def contrib_reverse_reshape(
    data: Array, *, newshape: tuple[Dim, ...], allowzero: bool = False
) -> Array:
    """As reshape, with the codes matched from the last axis towards the first."""
    return data.reshape(lengths(_reversed_shape(data.shape, newshape, allowzero)))


@builder("reverse_reshape")
def build_reverse_reshape(data: Expr, newshape: int | Sequence[int]) -> Expr:
    """Return `data` in another shape, codes matched from the right."""
    return call("contrib_reverse_reshape", data, newshape=integers(newshape))


def _span(begin: int, end: int | None, rank: int) -> tuple[int, int]:
    start = begin + rank if begin < 0 else begin
    stop = rank if end is None else end + rank if end < 0 else end
    if not 0 <= start <= stop <= rank:
        raise TypeInferenceError(f"axes {begin} to {end} are outside a tensor of rank {rank}")
    return start, stop


def _like_shape(
    data: Sequence[Dim],
    like: Sequence[Dim],
    lhs_begin: int,
    lhs_end: int | None,
    rhs_begin: int,
    rhs_end: int | None,
) -> tuple[Dim, ...]:
    start, stop = _span(lhs_begin, lhs_end, len(data))
    first, last = _span(rhs_begin, rhs_end, len(like))
    old, new = product(data[start:stop]), product(like[first:last])
    if isinstance(old, int) and isinstance(new, int) and old != new:
        raise TypeInferenceError(f"{old} elements cannot take a shape of {new}")
    return (*data[:start], *like[first:last], *data[stop:])


def _reshape_like_type(data: TensorType, shape_like: TensorType, **attrs: AnyValue) -> TensorType:
    return TensorType(_like_shape(data.shape, shape_like.shape, **attrs), data.dtype)


@relay_op(
    "reshape_like",
    traits=(Reshape, Moves(all=True), TypeOnly(1)),
    infer=_reshape_like_type,
    decompose=decompose_reshape_like,
    samples=[
        sample((6, 4), (2, 3, 4)),
        sample((2, 12, 5), (3, 4, 9), lhs_begin=1, lhs_end=2, rhs_begin=0, rhs_end=-1),
    ],
)
def reshape_like(data: Array, shape_like: Array, *, ranges: ReshapeLike) -> Array:
    """`data` with its axes `lhs_begin` to `lhs_end` shaped as axes of the second operand."""
    spans = (ranges.lhs_begin, ranges.lhs_end, ranges.rhs_begin, ranges.rhs_end)
    return data.reshape(lengths(_like_shape(data.shape, shape_like.shape, *spans)))


def _transpose_type(data: TensorType, *, axes: Sequence[int] | None) -> TensorType:
    order = normalize_axes(axes or range(data.rank)[::-1], data.rank)
    if len(order) != data.rank:
        raise TypeInferenceError(f"axes {list(order)} do not order a tensor of rank {data.rank}")
    return TensorType([data.shape[axis] for axis in order], data.dtype)


@relay_op(
    "transpose",
    traits=(Moves(all=True),),
    infer=_transpose_type,
    samples=[sample((2, 3, 4), axes=[0, -1, 1]), sample((2, 3, 4), axes=None)],
    arguments=Arguments(defaults={"axes": None}),
)
def transpose(data: Array, *, axes: tuple[int, ...] | None) -> Array:
    """The axes in another order; None reverses them."""
    return data.transpose(axes or None)


def _normalize_new_axis(axis: int, rank: int) -> int:
    if not -rank - 1 <= axis <= rank:
        raise TypeInferenceError(f"no axis can be inserted at {axis} in a tensor of rank {rank}")
    return axis % (rank + 1)


def _expand_dims_type(data: TensorType, *, axis: int, num_newaxis: int) -> TensorType:
    if not 0 <= num_newaxis <= MAX_RANK:
        raise TypeInferenceError(f"num_newaxis {num_newaxis} is not within 0 and {MAX_RANK}")
    at = _normalize_new_axis(axis, data.rank)
    return TensorType((*data.shape[:at], *[1] * num_newaxis, *data.shape[at:]), data.dtype)


@relay_op(
    "expand_dims",
    traits=(Reshape, Moves(all=True), Fusion(FusionPattern.BROADCAST)),
    infer=_expand_dims_type,
    samples=[
        sample((2, 3), axis=-1, num_newaxis=2),
        sample((2, 3), axis=1),
        sample((), axis=0),
        sample((2, 3), axis=-2, num_newaxis=0),
    ],
)
def expand_dims(data: Array, *, axis: int, num_newaxis: int = 1) -> Array:
    """`data` with `num_newaxis` axes of length 1 before axis `axis`."""
    at = _normalize_new_axis(axis, data.ndim)
    return data.reshape((*data.shape[:at], *[1] * num_newaxis, *data.shape[at:]))


@builder("expand_dims")
def build_expand_dims(data: Expr, axis: AnyValue, num_newaxis: int = 1) -> Expr:
    """Return `data` with axes of length 1 before axis `axis`, an integer or an expression."""
    place = integers(axis)
    if isinstance(place, Expr):
        return call("dyn.expand_dims", data, place, num_newaxis=num_newaxis)
    return call("expand_dims", data, axis=place, num_newaxis=num_newaxis)


def _choose_squeezed_axes(shape: Sequence[Dim], axis: Sequence[int] | None) -> tuple[int, ...]:
    if axis is not None:
        axes = normalize_axes(axis, len(shape))
        for index in axes:
            if isinstance(shape[index], int) and shape[index] != 1:
                raise TypeInferenceError(f"axis {index} of length {shape[index]} cannot go")
        return axes
    unknown = [dim for dim in shape if not isinstance(dim, int)]
    if unknown:
        raise TypeInferenceError(f"name the axes: dimension {unknown[0]} may be 1 or not")
    return tuple(index for index, dim in enumerate(shape) if dim == 1)


def _squeeze_type(data: TensorType, *, axis: Sequence[int] | None) -> TensorType:
    gone = _choose_squeezed_axes(data.shape, axis)
    return TensorType([d for i, d in enumerate(data.shape) if i not in gone], data.dtype)


@relay_op(
    "squeeze",
    traits=(Reshape, Moves(all=True)),
    infer=_squeeze_type,
    samples=[sample((1, 3, 1), axis=[-1]), sample((1, 3, 1)), sample((2, 1), axis=1)],
)
def squeeze(data: Array, *, axis: tuple[int, ...] | None = None) -> Array:
    """`data` without the axes named, which have length 1; None drops all such."""
    return data.squeeze(_choose_squeezed_axes(data.shape, axis))


@builder("squeeze")
def build_squeeze(data: Expr, axis: AnyValue = None) -> Expr:
    """Return `data` without `axis`: integers, an expression, or None for all of length 1."""
    gone = integers(axis)
    if isinstance(gone, Expr):
        return call("dyn.squeeze", data, gone)
    return call("squeeze", data, axis=gone)


def _shape_of_type(data: TensorType, *, dtype: AnyValue) -> TensorType:
    return TensorType((data.rank,), _require_dtype(dtype))


def _require_dtype(dtype: AnyValue) -> AnyValue:
    if dtype is None:
        raise TypeInferenceError("attribute dtype must name the dtype of the result")
    return dtype


@relay_op(
    "shape_of",
    traits=(TypeOnly(0),),
    infer=_shape_of_type,
    samples=[sample((2, 3), dtype="int64")],
    arguments=Arguments(defaults={"dtype": "int32"}),
)
def shape_of(data: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """The lengths of the axes."""
    return np.array(data.shape, dtype)


def _size_type(data: TensorType, *, dtype: AnyValue) -> TensorType:
    return TensorType((), _require_dtype(dtype))


@relay_op(
    "ndarray_size",
    traits=(TypeOnly(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_size_type,
    samples=[sample((2, 3), dtype="int32")],
    arguments=Arguments(defaults={"dtype": "int32"}),
)
def ndarray_size(data: Array, *, dtype: np.dtype[AnyValue] | None = None) -> Array:
    """The number of elements."""
    return np.array(data.size, dtype)


def _reverse_type(data: TensorType, *, axis: int | None) -> TensorType:
    if axis is None:
        raise TypeInferenceError("attribute axis must name an axis")
    normalize_axis(axis, data.rank)
    return data


@relay_op(
    "reverse",
    traits=(Moves(all=True), SameAxes(("axis",)), SameType),
    infer=_reverse_type,
    samples=[sample((2, 3), axis=1), sample((4,), axis=-1)],
)
def reverse(data: Array, *, axis: int | None = None) -> Array:
    """The elements in opposite order along `axis`."""
    return np.flip(data, axis)
