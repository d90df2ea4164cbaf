"""What normalisations are made of, in float32 or wider."""

from __future__ import annotations

from collections.abc import Sequence

import serde.core.allocation as allocation
from serde.core.weights import numpy_dtype
from serde.relay.ir import Constant, Expr, Span, Tuple, call, const, normalize_axis, tensor_type
from serde.relay.ir.precision import as_dtype, wide_dtype

__all__ = [
    "batch_norm_body", "dropout_body", "group_norm_body", "instance_norm_body",
    "l2_normalize_body", "layer_norm_body", "lrn_body", "scale_and_shift", "standardize",
]  # fmt: skip


def _widen(data: Expr) -> tuple[Expr, str, str]:
    """Return what is computed with, its dtype, and that of the result."""
    dtype = tensor_type(data).dtype
    wide = wide_dtype(dtype)
    return as_dtype(data, wide), wide, dtype


def standardize(data: Expr, axes: Sequence[int], epsilon: float) -> Expr:
    """Return `data` less its mean over axes, divided by the root of its variance."""
    if not axes:
        return call("subtract", data, data)
    centred = call("subtract", data, call("mean", data, axis=axes, keepdims=True))
    variance = call("mean", call("multiply", centred, centred), axis=axes, keepdims=True)
    stabilized = call("add", variance, const(epsilon, tensor_type(data).dtype))
    return call("divide", centred, call("sqrt", stabilized))


def _along(vector: Expr, like: Expr, axis: int) -> Expr:
    """Return a vector in the dtype of what it lies along an axis of."""
    type_ = tensor_type(like)
    following = type_.rank - 1 - axis % type_.rank
    wide = as_dtype(vector, type_.dtype)
    return call("expand_dims", wide, axis=1, num_newaxis=following) if following else wide


def scale_and_shift(
    x: Expr, factor: Expr | None, term: Expr | None, axis: int, span: Span | None = None
) -> Expr:
    """Return `x` by a vector and with another along an axis, where there are these."""
    if factor is not None:
        x = call("multiply", x, _along(factor, x, axis), span=span)
    return x if term is None else call("add", x, _along(term, x, axis), span=span)


def _affine(x: Expr, gamma: Expr, beta: Expr, axis: int, center: bool, scale: bool) -> Expr:
    return scale_and_shift(x, gamma if scale else None, beta if center else None, axis)


def batch_norm_body(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr,
    *, axis: int, epsilon: float, center: bool, scale: bool,
) -> Tuple:  # fmt: skip
    """The factor and the shift of a channel come first, which folds where they are weights."""
    x, wide, dtype = _widen(data)
    variance = call("add", as_dtype(moving_var, wide), const(epsilon, wide))
    factor = call("rsqrt", variance)
    if scale:
        factor = call("multiply", factor, as_dtype(gamma, wide))
    shift = call("negative", call("multiply", as_dtype(moving_mean, wide), factor))
    if center:
        shift = call("add", shift, as_dtype(beta, wide))
    result = scale_and_shift(x, factor, shift, axis)
    return Tuple([as_dtype(result, dtype), moving_mean, moving_var])


def layer_norm_body(
    data: Expr, gamma: Expr, beta: Expr, *, axis: int, epsilon: float, center: bool, scale: bool
) -> Expr:
    x, _, dtype = _widen(data)
    result = standardize(x, (normalize_axis(axis, tensor_type(data).rank),), epsilon)
    return as_dtype(_affine(result, gamma, beta, axis, center, scale), dtype)


def instance_norm_body(
    data: Expr, gamma: Expr, beta: Expr, *, axis: int, epsilon: float, center: bool, scale: bool
) -> Expr:
    x, _, dtype = _widen(data)
    rank = tensor_type(data).rank
    axes = tuple(each for each in range(1, rank) if each != axis % rank)
    result = standardize(x, axes, epsilon)
    return as_dtype(_affine(result, gamma, beta, axis, center, scale), dtype)


def group_norm_body(
    data: Expr, gamma: Expr, beta: Expr,
    *, num_groups: int, axis: int, epsilon: float, center: bool, scale: bool,
) -> Expr:  # fmt: skip
    """Each group is one channel of an instance norm."""
    type_ = tensor_type(data)
    axis, dtype = normalize_axis(axis, type_.rank), numpy_dtype(type_.dtype)
    order = (0, axis, *(each for each in range(1, type_.rank) if each != axis))
    moved = data if axis == 1 else call("transpose", data, axes=order)
    rows = call("reshape", moved, newshape=(0, num_groups, -1))
    vectors = (Constant(allocation.full(num_groups, each, dtype)) for each in (1, 0))
    normal = call("nn.instance_norm", rows, *vectors, epsilon=epsilon, center=False, scale=False)
    shape = tensor_type(moved).concrete_shape
    if shape is None:
        result = call("reshape_like", normal, moved)
    else:
        result = call("reshape", normal, newshape=shape)
    if axis != 1:
        result = call("transpose", result, axes=tuple(map(order.index, range(type_.rank))))
    return _affine(result, gamma, beta, axis, center, scale)


def lrn_body(data: Expr, *, size: int, axis: int, bias: float, alpha: float, beta: float) -> Expr:
    """The squares are added up as often as there are neighbours, each time moved by one."""
    x, wide, dtype = _widen(data)
    half, rank = size // 2, tensor_type(data).rank
    axis = normalize_axis(axis, rank)
    widths = [(half if each == axis else 0,) * 2 for each in range(rank)]
    zero = const(0, wide)
    squares = call("nn.pad", call("multiply", x, x), zero, pad_width=widths)
    total: Expr | None = None
    for place in allocation.iterations(size, f"a norm over {size} channels"):
        end = place - size + 1 if place < size - 1 else 2**31 - 1
        part = call("strided_slice", squares, begin=(place,), end=(end,), strides=(1,),
                    axes=(axis,))  # fmt: skip
        total = part if total is None else call("add", total, part)
    scaled = call("multiply", total, const(alpha / size, wide))
    power = call("power", call("add", scaled, const(bias, wide)), const(beta, wide))
    return as_dtype(call("divide", x, power), dtype)


def l2_normalize_body(data: Expr, *, eps: float, axis: tuple[int, ...]) -> Expr:
    x, wide, dtype = _widen(data)
    axes = tuple(axis) or tuple(range(tensor_type(data).rank))
    total = call("sum", call("multiply", x, x), axis=axes, keepdims=True)
    length = call("sqrt", call("maximum", total, const(eps, wide)))
    return as_dtype(call("divide", x, length), dtype)


def dropout_body(data: Expr, *, rate: float) -> Expr:
    """At inference nothing is dropped, and the mask is of ones."""
    return Tuple([data, call("ones_like", data)])
