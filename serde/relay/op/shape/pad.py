"""Padding, dilation and flattening."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from serde.core.weights import numpy_dtype
from serde.errors import TypeInferenceError
from serde.relay.ir import Constant, Expr, TensorType, const, require_window, tensor_type
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.registry import Arguments, Array, builder, call, relay_op, sample, tensor
from serde.relay.ir.traits import Fusion, FusionPattern, Moves, Reshape, SameAxes, Values
from serde.relay.lowering.shape import decompose_mirror_pad, decompose_pad

PadWidth = tuple[tuple[int, int], ...]


def _infer_padded(
    data: TensorType, pad_width: PadWidth, *, longest: int | None, cut: bool = False
) -> TensorType:
    """Return the type of `data` with its sides padded.

    Args:
        data: Type to pad.
        pad_width: Lengths before and after each axis.
        longest: How much less than the length of an axis its padding must at least be,
            None where any padding will do.
        cut: Whether a negative length takes elements away.
    """
    if len(pad_width) != data.rank:
        raise TypeInferenceError(
            f"pad_width: expected {data.rank} pairs for {data!r}, found {len(pad_width)}"
        )
    shape: list[Dim] = []
    for length, (before, after) in zip(data.shape, pad_width, strict=True):
        if not cut and (before < 0 or after < 0):
            raise TypeInferenceError(f"pad_width {[before, after]} is negative")
        if type(length) is int and length + min(before, 0) + min(after, 0) < 0:
            raise TypeInferenceError(f"pad_width {[before, after]} cuts more than {length} away")
        wide = max(before, after)
        if longest is not None and wide and type(length) is int and wide > length - longest:
            raise TypeInferenceError(
                f"pad_width {[before, after]} mirrors more than a length of {length} has"
            )
        shape.append(length + (before + after))
    return TensorType(shape, data.dtype)


_LONGEST = {"constant": None, "edge": None, "reflect": 1}


def _pad_type(
    data: TensorType, pad_val: TensorType, *, pad_width: PadWidth, pad_mode: str
) -> TensorType:
    if pad_val.rank:
        raise TypeInferenceError(f"expected a scalar to pad with, found {pad_val!r}")
    if pad_mode == "edge":
        for length, sides in zip(data.shape, pad_width, strict=False):
            if length == 0 and any(sides):
                raise TypeInferenceError("an axis of length 0 has no edge to repeat")
    return _infer_padded(data, pad_width, longest=_LONGEST[pad_mode], cut=pad_mode == "constant")


@relay_op(
    "nn.pad",
    traits=(Values(0), SameAxes(per_axis=("pad_width",)), Fusion(FusionPattern.INJECTIVE)),
    infer=_pad_type,
    decompose=decompose_pad,
    samples=[
        sample((2, 3), np.float32(0.5), pad_width=((1, 2), (0, 3))),
        sample((2, 3), np.int32(0), pad_width=((1, 2), (0, 3)), pad_mode="edge"),
        sample((3, 4), np.int32(0), pad_width=((2, 1), (0, 3)), pad_mode="reflect"),
        sample(tensor((3,), "int8"), tensor((), "int8"), pad_width=((0, 1),)),
    ],
)
def pad(
    data: Array,
    pad_val: Array,
    *,
    pad_width: tuple[tuple[int, int], ...],
    pad_mode: Literal["constant", "edge", "reflect"] = "constant",
) -> Array:
    """`data` with elements before and after each axis, as many as `pad_width` says.

    They are `pad_val`, or the nearest element, or the mirror image without the edge. Of a
    constant, a negative number takes as many away.
    """
    if pad_mode != "constant":
        return np.pad(data, pad_width, pad_mode)
    value = np.asarray(pad_val).astype(data.dtype)
    ends = zip(data.shape, pad_width, strict=True)
    kept = data[tuple(slice(max(-b, 0), n + min(a, 0)) for n, (b, a) in ends)]
    sides = [(max(before, 0), max(after, 0)) for before, after in pad_width]
    return np.pad(kept, sides, constant_values=value)


@builder("nn.pad")
def build_pad(
    data: Expr,
    pad_width: Expr | Sequence[Sequence[int]],
    pad_value: Expr | float = 0,
    pad_mode: str = "constant",
) -> Expr:
    """Build ``nn.pad``, or ``dyn.nn.pad`` for widths that are computed.

    A number to pad with becomes a constant.
    """
    value = pad_value if isinstance(pad_value, Expr) else const(pad_value)
    if isinstance(pad_width, Constant):
        pad_width = pad_width.data.tolist()
    if isinstance(pad_width, Expr):
        return call("dyn.nn.pad", data, pad_width, value, pad_mode=pad_mode)
    return call("nn.pad", data, value, pad_width=pad_width, pad_mode=pad_mode)


def _mirror_pad_type(data: TensorType, *, mode: str, pad_width: PadWidth) -> TensorType:
    return _infer_padded(data, pad_width, longest=1 if mode == "REFLECT" else 0)


@relay_op(
    "nn.mirror_pad",
    traits=(Moves(all=True), SameAxes(per_axis=("pad_width",))),
    infer=_mirror_pad_type,
    decompose=decompose_mirror_pad,
    samples=[
        sample((2, 3), mode="REFLECT", pad_width=((1, 1), (2, 0))),
        sample((2, 3), pad_width=((1, 2), (2, 3))),
    ],
)
def mirror_pad(
    data: Array,
    *,
    mode: Literal["SYMMETRIC", "REFLECT"] = "SYMMETRIC",
    pad_width: tuple[tuple[int, int], ...],
) -> Array:
    """`data` continued by its mirror image, with the edge repeated (SYMMETRIC) or not."""
    return np.pad(data, pad_width, "symmetric" if mode == "SYMMETRIC" else "reflect")


def _dilate_type(
    data: TensorType, *, strides: tuple[int, ...], dilation_value: float
) -> TensorType:
    require_window(data.rank, strides=strides)
    lengths = zip(data.shape, strides, strict=True)
    shape: list[Dim] = [0 if n == 0 else (n - 1) * s + 1 for n, s in lengths]
    return TensorType(shape, data.dtype)


def _decompose_dilate(x: Expr, *, strides: tuple[int, ...], dilation_value: float) -> Expr:
    """Each element gets an axis of its own, is padded there, and what follows the last is cut."""
    type_ = tensor_type(x)
    value = const(np.asarray(dilation_value).astype(numpy_dtype(type_.dtype)), type_.dtype)
    for axis, stride in enumerate(strides):
        if stride == 1:
            continue
        shape = list(tensor_type(x).shape)
        shape[axis] = shape[axis] * stride
        widths = [(0, stride - 1 if index == axis + 1 else 0) for index in range(len(shape) + 1)]
        apart = call("nn.pad", call("expand_dims", x, axis=axis + 1), value, pad_width=widths)
        whole = call("reshape", apart, newshape=shape)
        x = call("strided_slice", whole, begin=(0,), end=(1 - stride,), strides=(1,), axes=(axis,))
    return x


@relay_op(
    "nn.dilate",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_dilate_type,
    decompose=_decompose_dilate,
    meta_class="relay.attrs.DilateAttrs",
    samples=[sample((2, 3), strides=(1, 2)), sample((2, 3), strides=(3, 1), dilation_value=1.5)],
    arguments=Arguments(names={"x": "data"}, required=("strides",)),
)
def dilate(x: Array, *, strides: tuple[int, ...] = (1, 1), dilation_value: float = 0.0) -> Array:
    """Elements `strides` apart along each axis, with `dilation_value` between them."""
    lengths = [0 if n == 0 else (n - 1) * s + 1 for n, s in zip(x.shape, strides, strict=True)]
    result = np.full(lengths, np.asarray(dilation_value).astype(x.dtype))
    result[tuple(slice(None, None, s) for s in strides)] = x
    return result


def _batch_flatten_type(data: TensorType) -> TensorType:
    if data.rank < 1:
        raise TypeInferenceError("a scalar has no batch axis")
    return TensorType((data.shape[0], product(data.shape[1:])), data.dtype)


@relay_op(
    "nn.batch_flatten",
    traits=(Reshape, Moves(all=True)),
    infer=_batch_flatten_type,
    samples=[sample((2, 3, 4)), sample((5,)), sample(tensor((2, 3, 2, 2), "int8"))],
)
def batch_flatten(data: Array) -> Array:
    """All axes but the first as one."""
    rest = int(np.prod(data.shape[1:], dtype=np.int64))
    return data.reshape(data.shape[0], rest)
