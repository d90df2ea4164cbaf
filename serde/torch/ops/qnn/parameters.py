"""Into quantised numbers and out of them, with the rounding of PyTorch's kernels on x86.

They multiply by the inverse of the scale in float32. Most add the zero point before they round,
the 8-bit ones of one scale in one fused step; halves go to even.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any as AnyValue, Final, Literal, TypeAlias

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call, limits
from serde.relay.ir.schema import innermost
from serde.torch.ops.elementwise.convert import as_float
from serde.torch.ops.table import DTYPE_CODES, Import, Scalar
from serde.torch.quantization import Quantization
from serde.walk.converter import parameters_of

__all__ = [
    "ACTIVATIONS", "OUTPUT", "Function", "Result", "Rounding", "along", "broadcast_shape",
    "dequantize", "dequantize_fused", "fixed_number", "integer_dtype", "of_reals", "parameter",
    "quantize", "quantize_number", "round_levels", "scale_array", "single",
]  # fmt: skip

Rounding = Literal["fused", "before", "after"]
"""Whether the zero point is added before rounding, in one step with the product, or after it."""

Function: TypeAlias = Callable[..., Expr]

ACTIVATIONS: Final[dict[str, Callable[[Expr], Expr] | None]] = {"": None, "_relu": relay.nn.relu}
"""What follows in the same operator, by the end of its name."""

_INTEGERS: Final = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}


def integer_dtype(dtype: str | int) -> str:
    """Return the dtype of the integers of a quantised dtype."""
    coded = isinstance(dtype, int) and 0 <= dtype < len(DTYPE_CODES)
    name = DTYPE_CODES[dtype] if coded and isinstance(dtype, int) else dtype
    if name not in _INTEGERS:
        raise Unsupported(f"quantised numbers of dtype {name}")
    return _INTEGERS[str(name)]


def scale_array(ctx: Import, value: AnyValue) -> Array:
    """Return scales or zero points as they are stored, doubles or integers."""
    return ctx.constant(value) if isinstance(value, Expr) else np.array(value)


def parameter(ctx: Import, value: AnyValue, dtype: str) -> Expr:
    """Return a scale or zero point in the dtype in which kernels use it."""
    if isinstance(value, Expr) and not ctx.is_constant(value):
        return ctx.cast(value, dtype)
    return Constant(scale_array(ctx, value).astype(dtype))


def along(ctx: Import, x: Expr, values: Array, axis: int | None) -> Array:
    """Return values shaped to broadcast along an axis of data; one value stays a scalar."""
    return values.reshape(broadcast_shape(ctx, x, axis if values.ndim else None))


def broadcast_shape(ctx: Import, x: Expr, axis: int | None) -> tuple[int, ...]:
    """Return the shape in which a vector broadcasts along an axis of data; none for a number."""
    if axis is None:
        return ()
    return tuple(-1 if each == axis else 1 for each in range(ctx.type(x).rank))


def single(quantization: Quantization) -> tuple[float, int]:
    """Return scale and zero point of a tensor that has one of each."""
    scale, zero = quantization.scale, quantization.zero_point
    if isinstance(scale, Expr) or isinstance(zero, Expr):
        raise Unsupported("needs a tensor of one known scale, found one of a scale a channel")
    return scale, zero


def fixed_number(ctx: Import, value: Scalar) -> float:
    """Return a number that must be known, which a tensor may tell."""
    return as_float(ctx.as_number(value) if isinstance(value, Expr) else value)


def dequantize(ctx: Import, x: Expr) -> Expr:
    """Return what a quantised tensor stands for: ``(x - zero_point) * scale`` in float32."""
    given = ctx.quantization(x)
    zero = parameter(ctx, given.zero_point, ctx.dtype(x))
    scale = parameter(ctx, given.scale, "float32")
    if ctx.dtype(x) == "int32":
        if not isinstance(given.zero_point, int) or given.zero_point:
            raise Unsupported("quantised numbers of 32 bits with a zero point")
        return call("serde.dequantize_linear", x, scale, None, axis=given.axis or 0)
    return call("serde.dequantize_linear", x, scale, zero, axis=given.axis or 0)


def dequantize_fused(ctx: Import, x: Expr) -> Expr:
    """Return the same as vectorised kernels compute it, ``x * scale - zero_point * scale``.

    The product is not rounded before the sum, which float64 says.
    """
    number, zero = single(ctx.quantization(x))
    if not zero:
        return dequantize(ctx, x)
    scale = np.float32(number)
    offset = np.float32(-zero) * scale
    wide = relay.cast(x, "float64")
    product = relay.multiply(wide, ctx.scalar(float(scale), "float64"))
    return relay.cast(relay.add(product, ctx.scalar(float(offset), "float64")), "float32")


def _is_power_of_two(scale: Array) -> bool:
    return bool((np.frexp(scale)[0] == 0.5).all())


def quantize(
    ctx: Import, x: Expr, quantization: Quantization, dtype: str, rounding: Rounding = "fused"
) -> Expr:
    """Return data quantised, saturated to the range of the dtype."""
    axis = quantization.axis
    scale = scale_array(ctx, quantization.scale).astype(np.float32)
    zero = scale_array(ctx, quantization.zero_point).astype(np.int64)
    wide = ctx.cast(x, "float32")
    late = rounding == "after" or not zero.any()
    if late and dtype != "int32" and _is_power_of_two(scale):
        points, kind = Constant(zero.astype(dtype)), np.dtype(dtype)
        found = call(
            "serde.quantize_linear", wide, Constant(scale), points, axis=axis or 0, out_dtype=kind
        )
        return ctx.quantized(found, quantization)
    with np.errstate(all="ignore"):
        inverse = along(ctx, wide, np.asarray(np.float32(1) / scale), axis)
    level = _find_level(wide, inverse, along(ctx, wide, zero, axis), "after" if late else rounding)
    if dtype == "int32":
        return ctx.quantized(_saturate_wide(ctx, level, late, zero), quantization)
    whole = round_levels(level, dtype, zero if late else 0, axis or 0)
    return ctx.quantized(whole, quantization)


def round_levels(level: Expr, dtype: str, zero: AnyValue = 0, axis: int = 1) -> Expr:
    """Return levels as integers, halves to even, from a zero point on and saturated."""
    points = np.asarray(zero).astype(dtype)
    ones = Constant(np.ones_like(points, np.float32))
    kind = np.dtype(dtype)
    return call("serde.quantize_linear", level, ones, Constant(points), axis=axis, out_dtype=kind)


def _find_level(x: Expr, inverse: Array, zero: Array, rounding: Rounding) -> Expr:
    """Return data in steps of the scale, from the zero point on unless it is added later."""
    if rounding == "fused":
        wide = relay.cast(x, "float64")
        product = relay.multiply(wide, Constant(inverse.astype(np.float64)))
        return relay.cast(relay.add(product, Constant(zero.astype(np.float64))), "float32")
    product = relay.multiply(x, Constant(inverse))
    if rounding == "after":
        return product
    return relay.add(product, Constant(zero.astype(np.float32)))


def _saturate_wide(ctx: Import, level: Expr, late: bool, zero: Array) -> Expr:
    """Return levels as integers of 32 bits; there is no quantising operator of that width."""
    bounds = limits("int32")
    whole = relay.cast(call("serde.round_even", level), "float64")
    if late and zero.any():
        whole = relay.add(whole, Constant(zero.astype(np.float64)))
    return relay.cast(relay.clip(whole, float(bounds.min), float(bounds.max)), "int32")


def quantize_number(value: float, quantization: Quantization, dtype: str) -> int:
    """Return one number quantised."""
    scale, zero = single(quantization)
    if math.isinf(value):
        return int(limits(dtype).max if value > 0 else limits(dtype).min)
    inverse = np.float32(1) / np.float32(scale)
    level = int(np.rint(np.float32(value) * inverse)) + zero
    return int(np.clip(level, limits(dtype).min, limits(dtype).max))


@dataclass(frozen=True, kw_only=True)
class Result:
    """Scale and zero point of its result, as an operator is told them."""

    output_scale: float
    output_zero_point: int

    @property
    def quantization(self) -> Quantization:
        """The same as what a tensor has."""
        return Quantization(self.output_scale, self.output_zero_point)

    def quantize(self, ctx: Import, x: Expr, like: Expr, rounding: Rounding = "after") -> Expr:
        """Return data quantised, in the dtype of a tensor."""
        return quantize(ctx, x, self.quantization, ctx.dtype(like), rounding)


OUTPUT: Final = {"scale": "output_scale", "zero_point": "output_zero_point"}
"""Other words for the same."""


def of_reals(
    function: Function, rounding: Rounding = "after", activate: Callable[[Expr], Expr] | None = None
) -> Function:
    """Return an importer that applies a function of PyTorch to what quantised tensors stand for.

    Its parameters are those of the function, and scale and zero point of the result.
    """

    @functools.wraps(innermost(function))
    def run(
        ctx: Import, x: Expr, *rest: Expr | None, result: Result, **attributes: AnyValue
    ) -> Expr:
        others = (dequantize(ctx, y) if y is not None and ctx.is_quantized(y) else y for y in rest)
        found = function(ctx, dequantize(ctx, x), *others, **attributes)
        return result.quantize(ctx, activate(found) if activate else found, x, rounding)

    own = inspect.Parameter("result", inspect.Parameter.KEYWORD_ONLY)
    signature = inspect.Signature([*parameters_of(function), own])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {**innermost(function).__annotations__, "result": Result}
    return run
