"""Arithmetic of shapes and axes, on dimensions that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import TypeInferenceError
from serde.relay.ir.dims import Any, Dim, SymDim, same_length
from serde.relay.ir.types import TensorType

__all__ = [
    "at", "broadcast", "broadcast_dim", "concat_dim", "conv_dim", "find_inserted", "float_type",
    "is_float", "join_dim", "layout_axes", "normalize_axes", "normalize_axis", "pool_dim",
    "reduced_axes", "require_float", "require_same_dtype", "require_window", "split_padding",
    "transposed_conv_dim",
]  # fmt: skip


def normalize_axis(axis: int, rank: int) -> int:
    """Return `axis` counted from the front.

    Raises:
        TypeInferenceError: It is outside a tensor of that rank.
    """
    if not -rank <= axis < rank:
        raise TypeInferenceError(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Return `axes` counted from the front, in the order given.

    Raises:
        TypeInferenceError: One is outside the tensor or named twice.
    """
    result = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(result)) != len(result):
        raise TypeInferenceError(f"axes {list(result)} name an axis twice")
    return result


def reduced_axes(rank: int, axis: Sequence[int] | None, exclude: bool) -> tuple[int, ...]:
    """Return the axes that are reduced, in ascending order."""
    if axis is None:
        return tuple(range(rank))
    named = normalize_axes(axis, rank)
    return tuple(i for i in range(rank) if (i in named) != exclude)


def is_float(dtype: str) -> bool:
    """Whether `dtype` names a floating-point type, bfloat16 and float8 included."""
    return dtype.startswith(("float", "bfloat"))


def require_float(*types: TensorType) -> None:
    """Refuse tensors that are not of a floating-point type.

    Raises:
        TypeInferenceError: One is not.
    """
    for type_ in types:
        if not is_float(type_.dtype):
            raise TypeInferenceError(f"expected a floating-point tensor, found {type_.dtype}")


def float_type(data: TensorType, **_: AnyValue) -> TensorType:
    """Return the type of a floating-point tensor, which that of the result is.

    Raises:
        TypeInferenceError: It is of another type.
    """
    require_float(data)
    return data


def require_same_dtype(*types: TensorType) -> str:
    """Return the dtype that all share.

    Raises:
        TypeInferenceError: They differ.
    """
    names = {type_.dtype for type_ in types}
    if len(names) != 1:
        raise TypeInferenceError(f"dtypes differ: {', '.join(t.dtype for t in types)}")
    return types[0].dtype


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """Return the length that two dimensions broadcast to.

    Two different symbols give an anonymous dimension; a symbol with an integer
    other than 1 gives the integer.

    Raises:
        TypeInferenceError: Two integers differ and neither is 1.
    """
    if same_length(a, b):
        return a
    if a == 1:
        return b
    if b == 1:
        return a
    if type(a) is int and type(b) is int:
        raise TypeInferenceError(f"lengths {a} and {b} do not broadcast")
    if type(a) is int:
        return a
    if type(b) is int:
        return b
    return Any()


def broadcast(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the shape that `shapes` broadcast to, as NumPy aligns them.

    Raises:
        TypeInferenceError: They do not broadcast.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for axis, dim in enumerate(shape):
            try:
                result[offset + axis] = broadcast_dim(result[offset + axis], dim)
            except TypeInferenceError:
                shown = " and ".join(f"({', '.join(map(str, s))})" for s in shapes)
                raise TypeInferenceError(f"shapes {shown} do not broadcast") from None
    return tuple(result)


def join_dim(a: Dim, b: Dim) -> Dim:
    """Return the length of two dimensions that must be equal; the one that says more.

    Raises:
        TypeInferenceError: Two integers differ.
    """
    if type(a) is int and type(b) is int and a != b:
        raise TypeInferenceError(f"lengths {a} and {b} differ")
    if isinstance(a, Any) or (isinstance(a, SymDim) and type(b) is int):
        return b
    return a


def concat_dim(dims: Iterable[Dim]) -> Dim:
    """Return the sum of `dims`."""
    total: Dim = 0
    for dim in dims:
        total = total + dim
    return total


def conv_dim(length: Dim, kernel: Dim, stride: int, padding: int, dilation: int) -> Dim:
    """Return the output length of a convolution; `padding` is the sum of both sides.

    Raises:
        TypeInferenceError: The window does not fit the padded input, or the stride is not positive.
    """
    return pool_dim(length, kernel, stride, padding, dilation, ceil_mode=False)


def pool_dim(
    length: Dim, kernel: Dim, stride: int, padding: int, dilation: int, *, ceil_mode: bool
) -> Dim:
    """Return the output length of a pooling; `padding` is the sum of both sides.

    Raises:
        TypeInferenceError: The window does not fit the padded input, or the stride is not positive.
    """
    if stride < 1 or dilation < 1:
        raise TypeInferenceError(f"stride {stride} and dilation {dilation} must be positive")
    room = length + padding - ((kernel - 1) * dilation + 1) + (stride - 1 if ceil_mode else 0)
    if type(room) is int and room < 0:
        raise TypeInferenceError(f"a window of {kernel} does not fit a length of {length}")
    return room // stride + 1


def transposed_conv_dim(
    length: Dim, kernel: Dim, stride: int, padding: int, dilation: int, output_padding: int
) -> Dim:
    """Return the output length of a transposed convolution; `padding` is the sum of both sides."""
    return (length - 1) * stride - padding + (kernel - 1) * dilation + 1 + output_padding


def require_window(rank: int, **values: Sequence[int]) -> None:
    """Refuse attributes of a window that do not give one positive number for each spatial axis.

    Raises:
        TypeInferenceError: One has another length or a number below 1.
    """
    for name, given in values.items():
        if len(given) != rank or any(value < 1 for value in given):
            raise TypeInferenceError(
                f"{name}: expected {rank} positive numbers, found {list(given)}"
            )


def split_padding(padding: Sequence[int], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after each of `rank` spatial axes.

    One number holds for every side, `rank` numbers for both sides of each axis,
    twice as many are all of before and then all of after.

    Raises:
        TypeInferenceError: There is another number of them, or one is negative.
    """
    if any(value < 0 for value in padding):
        raise TypeInferenceError(f"padding {list(padding)} is negative")
    given = tuple(padding)
    if len(given) == 2 * rank:
        return given[:rank], given[rank:]
    if len(given) == rank:
        return given, given
    if len(given) == 1:
        return given * rank, given * rank
    counts = " or ".join(map(str, sorted({1, rank, 2 * rank})))
    raise TypeInferenceError(f"padding: expected {counts} numbers, found {list(given)}")


def layout_axes(layout: str, wanted: str) -> tuple[int, ...]:
    """Return, for each axis letter of `wanted`, where it is in `layout`.

    Raises:
        TypeInferenceError: The layouts do not have the same letters.
    """
    if sorted(layout) != sorted(wanted) or len(set(layout)) != len(layout):
        raise TypeInferenceError(f"expected a layout of the axes {wanted}, found {layout!r}")
    return tuple(layout.index(letter) for letter in wanted)


def at(shape: Sequence[Dim], axes: Iterable[int]) -> tuple[Dim, ...]:
    """Return the dimensions of `shape` at `axes`."""
    return tuple(shape[axis] for axis in axes)


def itemsize(dtype: str) -> int:
    """Return the bytes of one element."""
    return np.dtype(numpy_dtype(dtype)).itemsize


def find_inserted(short: Sequence[Dim], long: Sequence[Dim]) -> list[int]:
    """Return the axes of length 1 that make one shape the other; none where they do not."""
    axes: list[int] = []
    for index, length in enumerate(long):
        matched = index - len(axes)
        if matched < len(short) and short[matched] == length:
            continue
        if length != 1:
            return []
        axes.append(index)
    return axes if len(long) - len(axes) == len(short) else []
