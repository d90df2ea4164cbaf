"""Convolutions in floats that hold their sums, and transposed ones cut behind themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Final

from serde.core.weights import dtype_name
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, call, const, is_float, split_padding, tensor_type
from serde.relay.ir.precision import as_dtype, limits
from serde.relay.lowering.lengths import LAST

__all__ = [
    "CONVOLUTIONS", "TRANSPOSED", "convolution_on_floats", "cut_behind", "dtypes_of",
    "is_on_floats", "transposed_on_floats",
]  # fmt: skip

CONVOLUTIONS: Final = ("nn.conv1d", "nn.conv2d", "nn.conv3d")

TRANSPOSED: Final = ("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")

_EXACT: Final = {"float32": 1 << 24, "float64": 1 << 53}
"""Up to these magnitudes a float holds every integer."""

_MOST_TAPS: Final = 1 << 20
"""More products are not assumed where lengths of a weight are open."""


def is_on_floats(node: Call) -> bool:
    """Whether a convolution multiplies floats of one dtype and gives that dtype."""
    dtypes = dtypes_of(*node.args, out_dtype=node.attrs["out_dtype"])
    return len(dtypes) == 1 and all(map(is_float, dtypes))


def dtypes_of(*operands: Expr, out_dtype: AnyValue) -> set[str]:
    """Return the dtypes of a convolution's operands and of its result."""
    given = {tensor_type(each).dtype for each in operands}
    return given if out_dtype is None else given | {dtype_name(out_dtype)}


def convolution_on_floats(integers: str) -> Callable[..., Expr]:
    """Return what makes a convolution of one on floats of one dtype.

    Sums of narrow floats are in float32; those of integers are in the dtype `integers`, and wrap
    around in the dtype of the result, as integers do.
    """

    def expand_convolution(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
        given = [tensor_type(each).dtype for each in (data, weight)]
        dtype = given[0] if attrs["out_dtype"] is None else dtype_name(attrs["out_dtype"])
        transposed = "output_padding" in attrs
        if all(map(is_float, given)):
            work = "float64" if "float64" in (*given, dtype) else "float32"
        else:
            work = integers
            first, *lengths = tensor_type(weight).shape
            lengths = [first // attrs["groups"], *lengths[1:]] if transposed else lengths
            _require_exact(given, lengths, work)
        name = f"nn.conv{len(attrs['strides'])}d{'_transpose' * transposed}"
        wide = [as_dtype(each, work) for each in (data, weight)]
        sums = call(name, *wide, **{**attrs, "out_dtype": None})
        return as_dtype(sums if is_float(dtype) else as_dtype(sums, "int64"), dtype)

    return expand_convolution


def _require_exact(given: Sequence[str], lengths: Sequence[AnyValue], work: str) -> None:
    """Refuse sums of integers that may leave what a float holds exactly."""
    fixed = [length for length in lengths if isinstance(length, int)]
    taps = math.prod(fixed) if len(fixed) == len(lengths) else _MOST_TAPS
    if math.prod(map(_greatest, given)) * taps > _EXACT[work]:
        raise Unsupported(f"a convolution of {given[0]} with {given[1]}, summed in {work}")


def _greatest(dtype: str) -> int:
    if dtype == "bool":
        return 1
    info = limits(dtype)
    return max(-int(info.min), int(info.max))


def transposed_on_floats(integers: str, *, alike: bool = False) -> Callable[..., Expr]:
    """Return what makes a transposed convolution of one on floats without output padding."""
    widen = convolution_on_floats(integers)

    def expand_transposed(data: Expr, weight: Expr, **attrs: AnyValue) -> Expr:
        dtypes = dtypes_of(data, weight, out_dtype=attrs["out_dtype"])
        if len(dtypes) > 1 or not all(map(is_float, dtypes)):
            return widen(data, weight, **attrs)
        return cut_behind(data, weight, alike=alike, **attrs)

    return expand_transposed


def cut_behind(data: Expr, weight: Expr, *, alike: bool = False, **attrs: AnyValue) -> Expr:
    """Return a transposed convolution without output padding.

    That is cut off less behind each axis, or added as zeros. Where both sides are to be cut
    `alike`, what is cut off one of them alone is cut off the result.
    """
    rank = len(attrs["strides"])
    before, after = split_padding(attrs["padding"], rank)
    surplus = [cut - extra for cut, extra in zip(after, attrs["output_padding"], strict=True)]
    ends = [max(each, 0) for each in surplus]
    both = [max(min(pair), 0) for pair in zip(before, ends, strict=True)]
    inner = (*both, *both) if alike else (*before, *ends)
    changed = {"padding": inner, "output_padding": (0,) * rank}
    result = call(f"nn.conv{rank}d_transpose", data, weight, **{**attrs, **changed})
    widths = ((0, 0), (0, 0), *((0, max(-each, 0)) for each in surplus))
    if any(map(any, widths)):
        zero = const(0, tensor_type(result).dtype)
        result = call("nn.pad", result, zero, pad_width=widths)
    if not alike or both == list(before) == ends:
        return result
    begin = [cut - each for cut, each in zip(before, both, strict=True)]
    end = [each - cut if cut > each else LAST for cut, each in zip(ends, both, strict=True)]
    axes = tuple(range(2, 2 + rank))
    return call(
        "strided_slice", result, begin=tuple(begin), end=tuple(end), strides=(1,) * rank, axes=axes
    )
