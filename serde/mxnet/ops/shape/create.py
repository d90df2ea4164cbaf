"""Tensors made from numbers: filled ones, ranges, grids and windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.attributes import dtype_of_code
from serde.mxnet.model import COMPUTED
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Dim, Expr, is_float
from serde.relay.lowering.lengths import length_of
from serde.walk.context import TypedContext
from serde.walk.pairs import reads

FLOAT32 = np.dtype("float32")

_INLINE: Final = 2**18
"""Most elements of one value that a symbol's parameters hold; more are made when it runs."""


PI = np.float32(np.pi)
"""MXNet's windows take their angles in float32."""


def _fill(value: float, shape: int | tuple[int, ...], dtype: np.dtype[AnyValue]) -> Expr:
    lengths: list[Dim] = [shape] if isinstance(shape, int) else list(shape)
    if any(isinstance(length, int) and length < 0 for length in lengths):
        raise Unsupported(f"a shape of unknown lengths: {shape}")
    return relay.full(relay.Constant(np.array(value).astype(dtype)), lengths, dtype)


def _import_constant(
    ctx: Import,
    *,
    value: int,
    shape: int | tuple[int, ...] = (),
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return _fill(value, shape, dtype)


def _export_like(ctx: Export, data: Value, *, name: str) -> Value:
    return ctx.emit_bytes(name, data)


@OPS.imports("_full", ignored=("ctx",))
def import_full(
    ctx: Import, *, shape: int | tuple[int, ...], value: float, dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    return _fill(value, shape, dtype)


@OPS.imports("_zeros_without_dtype", ignored=("ctx",))
def import_zeros_without_dtype(
    ctx: Import, *, shape: int | tuple[int, ...] | None = None, dtype: int = -1
) -> Expr:
    if shape is None or dtype < 0:
        raise Unsupported("zeros whose shape or dtype follows from what they meet")
    return _fill(0, shape, numpy_dtype(dtype_of_code(dtype)))


def _export_constant(ctx: Export, *, value: int) -> Value:
    type_ = ctx.result_type()
    lengths = type_.concrete_shape
    number = np.asarray(value, numpy_dtype(type_.dtype))
    if lengths is None:
        return ctx.spell(lambda x: relay.broadcast_to(x, type_.shape), ctx.const(number))
    return _filled(ctx, lengths, number)


for _name, _value in {"zeros": 0, "ones": 1}.items():
    OPS.imports(f"_{_name}", f"_npi_{_name}", ignored=("ctx",))(
        partial(_import_constant, value=_value)
    )
    OPS.exports(_name, ignored=("shape", "dtype"))(partial(_export_constant, value=_value))
    OPS.exports(f"{_name}_like")(partial(_export_like, name=f"{_name}_like"))


def _filled(ctx: Export, lengths: Sequence[int], value: Array) -> Value:
    """Return a constant with one value everywhere; a large one MXNet makes when it runs."""
    exact = value.dtype.kind not in "iu" or abs(int(value)) <= 2**53
    if math.prod(lengths) > _INLINE and exact and value.dtype.name in COMPUTED:
        return ctx.emit("_full", shape=tuple(lengths), value=float(value), dtype=value.dtype)
    return ctx.const(allocation.full(lengths, value, value.dtype))


@OPS.exports("full")
def export_full(
    ctx: Export, fill_value: Value, *, shape: tuple[Dim, ...] | None, dtype: AnyValue
) -> Value:
    lengths, value = ctx.result_type().concrete_shape, ctx.cast(fill_value, ctx.result_type().dtype)
    if lengths is None:
        wanted = ctx.result_type().shape
        return ctx.spell(lambda x: relay.broadcast_to(x, wanted), ctx.reshape(value, ()))
    if value.data is not None:
        return _filled(ctx, lengths, value.data.reshape(()))
    return ctx.emit_bytes("broadcast_to", ctx.reshape(value, (1,) * len(lengths)), shape=lengths)


@OPS.imports("_npi_full_like", ignored=("ctx",))
def import_full_like(
    ctx: Import, a: Expr, *, fill_value: float, dtype: np.dtype[AnyValue] | None = None
) -> Expr:
    like = a if dtype is None else relay.cast(a, dtype)
    return relay.full_like(like, scalar_like(ctx, like, fill_value))


@OPS.exports("full_like")
def export_full_like(ctx: Export, data: Value, fill_value: Value) -> Value:
    type_ = ctx.type(data)
    value = ctx.cast(fill_value, type_.dtype)
    lengths = type_.concrete_shape
    if value.data is not None and lengths is not None:
        return _filled(ctx, lengths, value.data.reshape(()))
    block = ctx.reshape(value, (1,) * type_.rank)
    return ctx.emit_bytes("broadcast_like", block, data) if type_.rank else block


@OPS.imports("_arange", "_npi_arange", ignored=("ctx",))
def import_arange(
    ctx: Import,
    *, start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
    infer_range: bool = False, dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:  # fmt: skip
    """Counted in float64; of integers and float16, MXNet cuts start and step to whole numbers."""
    if stop is None and infer_range:
        raise Unsupported("infer_range=True: the length follows from what the result meets")
    first, last = (0.0, start) if stop is None else (start, stop)
    if step == 0 or repeat < 1 or not all(map(math.isfinite, (first, last, step))):
        raise Unsupported(f"a range from {first} to {last} by {step} with repeat {repeat}")
    count = max(0, math.ceil((last - first) / step))
    if dtype not in ("float32", "float64"):
        first, step = math.trunc(first), math.trunc(step)
    values = _range(first, step, count, dtype)
    return values if repeat == 1 else relay.repeat(values, repeat, axis=0)


def _range(first: float, step: float, count: int, dtype: np.dtype[AnyValue]) -> Expr:
    """Return `count` values; whole ones by way of int64, which says them with one operator."""
    if first == int(first) and step == int(step) and step:
        ends = (int(first), int(first) + int(step) * count, int(step))
        return _cast(relay.arange(*ends, dtype="int64"), dtype)
    indices = relay.cast(relay.arange(0, count, 1, dtype="int64"), "float64")
    steps = relay.multiply(indices, relay.const(step, "float64"))
    return _cast(relay.add(steps, relay.const(first, "float64")), dtype)


def _cast(x: Expr, dtype: np.dtype[AnyValue]) -> Expr:
    known = x.checked_type
    return x if getattr(known, "dtype", None) == dtype.name else relay.cast(x, dtype)


@OPS.exports("arange")
def export_arange(
    ctx: Export, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """A range of constant length is counted, whatever its ends are."""
    (length,) = ctx.result_type().shape
    if not isinstance(length, int):
        raise Unsupported("a range whose length is computed at run time")
    numbers = ctx.const(allocation.arange(length), "int64")
    wide = "float64" if ctx.type(start).dtype.startswith("float") else "int64"

    def build(first: Expr, by: Expr, indices: Expr) -> Expr:
        steps = relay.multiply(relay.cast(indices, wide), relay.cast(by, wide))
        return relay.cast(relay.add(relay.cast(first, wide), steps), dtype)

    return ctx.spell(build, start, step, numbers)


def axis_indices(ctx: TypedContext[Expr], x: Expr, axis: int | None, dtype: str = "int32") -> Expr:
    """Return the indices along an axis, or of all elements, counted from 0, as a vector."""
    length: Dim = 1
    for each in ctx.type(x).shape if axis is None else [ctx.dim_at(x, axis)]:
        length = length * each
    if isinstance(length, int):
        return relay.Constant(allocation.arange(length, dtype=dtype))
    if not isinstance(length, Any):
        return relay.cumsum(relay.ones((length,), dtype), axis=0, exclusive=True)
    count = relay.ndarray_size(x, "int32") if axis is None else length_of(x, axis, "int32")
    zero, one = relay.const(np.int32(0)), relay.const(np.int32(1))
    return relay.cast(relay.arange(zero, count, one, dtype="int32"), dtype)


@OPS.imports("_contrib_arange_like", ignored=("ctx",))
def import_arange_like(
    ctx: Import,
    data: Expr,
    *,
    start: float = 0.0,
    step: float = 1.0,
    repeat: int = 1,
    axis: int | None = None,
) -> Expr:
    """Unlike a plain range, `repeat` leaves the length as it is, and bounds of float16 are whole.

    Without an axis the numbers fill a tensor of the shape of `data`.
    """
    if repeat == 0:
        raise Unsupported("repeat=0")
    numbers = axis_indices(ctx, data, axis)
    if abs(repeat) != 1:
        numbers = relay.floor_divide(numbers, relay.const(np.int32(abs(repeat))))
    if repeat < 0:
        step = -step
    dtype = numpy_dtype(ctx.type(data).dtype)
    if not math.isfinite(start) or not math.isfinite(step):
        raise Unsupported(f"a range from {start} by {step}")
    if dtype not in (np.float32, np.float64):
        start, step = int(start), int(step)
    numbers = relay.cast(numbers, dtype)
    if step != 1:
        numbers = relay.multiply(numbers, relay.Constant(np.array(step).astype(dtype)))
    if start != 0:
        numbers = relay.add(numbers, relay.Constant(np.array(start).astype(dtype)))
    return numbers if axis is not None else relay.reshape_like(numbers, data)


@dataclass(frozen=True, kw_only=True)
class Space:
    """Attributes of numbers at equal distances."""

    start: float
    stop: float
    num: int
    endpoint: bool = True

    def values(self) -> Array:
        """Return the numbers."""
        if self.num < 0:
            raise Unsupported(f"num={self.num} is below 0")
        return allocation.linspace(self.start, self.stop, self.num, endpoint=self.endpoint)


@OPS.imports("_linspace", ignored=("ctx",))
def import_linspace(ctx: Import, *, space: Space, dtype: np.dtype[AnyValue] = FLOAT32) -> Expr:
    return relay.Constant(space.values().astype(dtype))


@OPS.imports("_npi_logspace", ignored=("ctx",))
def import_logspace(
    ctx: Import, *, space: Space, base: float = 10.0, dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    return relay.Constant(np.power(base, space.values()).astype(dtype))


@OPS.imports("_npi_indices", ignored=("ctx",))
def import_indices(
    ctx: Import, *, dimensions: int | tuple[int, ...], dtype: np.dtype[AnyValue] = np.dtype("int32")
) -> Expr:
    lengths = (dimensions,) if isinstance(dimensions, int) else dimensions
    if not lengths:
        return _fill(0, (0,), dtype)
    grids = []
    for axis, length in enumerate(lengths):
        line = relay.arange(0, length, 1, dtype="int64")
        column = relay.expand_dims(line, 1, len(lengths) - axis - 1)
        grids.append(relay.broadcast_to(column, lengths))
    return _cast(relay.stack(grids, 0), dtype)


WINDOWS: dict[str, Callable[[Array], Array]] = {
    "hanning": lambda angle: 0.5 - 0.5 * np.cos(angle),
    "hamming": lambda angle: 0.54 - 0.46 * np.cos(angle),
    "blackman": lambda angle: 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle),
}


def _register_window(name: str, window: Callable[[Array], Array]) -> None:
    @OPS.imports(f"_npi_{name}", ignored=("ctx",))
    def import_window(
        ctx: Import,
        *,
        M: int | None = None,  # noqa: N803
        dtype: np.dtype[AnyValue] = FLOAT32,
    ) -> Expr:
        """Of integers every factor is cut to 0 or 1, and with it the window to 0."""
        if M is None:
            raise Unsupported("a window without its length M")
        if M <= 1:
            return relay.Constant(allocation.ones(max(M, 0)).astype(dtype))
        if not is_float(dtype.name):
            return relay.Constant(allocation.zeros(M, dtype))

        def values(number: Array) -> Array:
            angle = 2 * PI * number.astype(np.float32) / np.float32(M - 1)
            return window(angle.astype(np.float64)).astype(dtype)

        allocation.allow(M, dtype)
        return relay.Constant(allocation.at_positions(M, values))


for _name, _window in WINDOWS.items():
    _register_window(_name, _window)


OPS.pairs(
    reads("zeros_like", "zeros_like", ignored="dtype"),
    reads("ones_like", "ones_like", ignored="dtype"),
)
