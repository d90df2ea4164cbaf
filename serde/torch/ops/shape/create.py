"""Tensors that are made: filled with one value, or counting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Any, Constant, Expr, call, is_float
from serde.torch.ops.elementwise.convert import PLACEMENT, as_float
from serde.torch.ops.shape.lengths import count_steps, restore
from serde.torch.ops.table import OPS, Export, Import, Scalar, SymInt, Value
from serde.torch.ops.written import cast, integers

DType = np.dtype[AnyValue] | None
Size = tuple[SymInt, ...]


def fill(ctx: Import, size: Sequence[SymInt], value: Expr) -> Expr:
    """Return a tensor of one value, whose lengths may be computed."""
    dims = [ctx.dim(each) for each in size]
    dtype = ctx.dtype(value)
    if any(isinstance(dim, Any) for dim in dims):
        return call("dyn.full", value, ctx.shape_vector(size), dtype=dtype)
    return call("full", value, shape=dims, dtype=dtype)


def fill_like(ctx: Import, x: Expr, value: Expr) -> Expr:
    """Return a tensor of one value with the shape of another."""
    return fill(ctx, [ctx.size(x, axis) for axis in range(ctx.type(x).rank)], value)


def number_dtype(ctx: Import, *values: Scalar) -> str:
    """Return the dtype that a tensor of numbers gets."""
    return ctx.result_dtype(*map(ctx.number, values))


def _fill(ctx: Import, *, size: Size, fill_value: Scalar, dtype: DType = None) -> Expr:
    return fill(ctx, size, ctx.scalar(fill_value, dtype.name if dtype else ctx.default_dtype))


def _fill_like(ctx: Import, self: Expr, *, fill_value: Scalar, dtype: DType = None) -> Expr:
    return fill_like(ctx, self, ctx.scalar(fill_value, dtype.name if dtype else ctx.dtype(self)))


def _fill_beside(
    ctx: Import, self: Expr, *, size: Size, fill_value: Scalar, dtype: DType = None
) -> Expr:
    return fill(ctx, size, ctx.scalar(fill_value, dtype.name if dtype else ctx.dtype(self)))


FILLINGS: Final = {"zeros": 0, "ones": 1, "empty": 0}
"""Values by the names of tensors that hold them; nobody says what an empty one holds."""

for _name, _value in FILLINGS.items():
    OPS.imports(f"aten::{_name}", ignored=PLACEMENT)(partial(_fill, fill_value=_value))
    OPS.imports(f"aten::{_name}_like", ignored=PLACEMENT)(partial(_fill_like, fill_value=_value))
    OPS.imports(f"aten::new_{_name}", ignored=PLACEMENT)(partial(_fill_beside, fill_value=_value))

_STRIDED: Final = (*PLACEMENT, "stride", "physical_layout")
OPS.imports("aten::empty_strided", "aten::empty_permuted", ignored=_STRIDED)(
    partial(_fill, fill_value=0)
)
OPS.imports("aten::new_empty_strided", ignored=_STRIDED)(partial(_fill_beside, fill_value=0))
OPS.imports("aten::full_like", ignored=PLACEMENT)(_fill_like)
OPS.imports("aten::new_full", ignored=PLACEMENT)(_fill_beside)


@OPS.imports("aten::full", ignored=PLACEMENT)
def import_full(ctx: Import, *, size: Size, fill_value: Scalar, dtype: DType = None) -> Expr:
    kind = number_dtype(ctx, fill_value) if dtype is None else dtype.name
    return fill(ctx, size, ctx.scalar(fill_value, kind))


def _export_constant(ctx: Export, *, target: str) -> Value:
    type_ = ctx.result_type()
    return ctx.call(target, ctx.sizes(type_.shape), dtype=ctx.dtype(type_.dtype))


def _export_computed(ctx: Export, shape: Value, *, target: str) -> Value:
    return ctx.call(target, integers(ctx, shape), dtype=ctx.dtype(ctx.result_type().dtype))


for _name in ("ones", "zeros"):
    OPS.exports(_name, ignored=("shape", "dtype"))(
        partial(_export_constant, target=f"torch.{_name}")
    )
    OPS.exports(f"dyn.{_name}", ignored=("dtype",))(
        partial(_export_computed, target=f"torch.{_name}")
    )


@OPS.exports("full", ignored=("shape", "dtype"))
def export_full(ctx: Export, fill_value: Value) -> Value:
    type_ = ctx.result_type()
    value = ctx.scalar(fill_value)
    if value is not None:
        return ctx.call("torch.full", ctx.sizes(type_.shape), value, dtype=ctx.dtype(type_.dtype))
    return ctx.method(cast(ctx, fill_value, type_.dtype), "expand", ctx.sizes(type_.shape))


@OPS.exports("full_like")
def export_full_like(ctx: Export, data: Value, fill_value: Value) -> Value:
    value = ctx.scalar(fill_value)
    if value is not None:
        return ctx.call("torch.full_like", data, value)
    return ctx.method(cast(ctx, fill_value, ctx.type(data).dtype), "expand_as", data)


@OPS.exports("dyn.full", ignored=("dtype",))
def export_dyn_full(ctx: Export, fill_value: Value, shape: Value) -> Value:
    value = cast(ctx, fill_value, ctx.result_type().dtype)
    return ctx.method(value, "expand", integers(ctx, shape))


@OPS.imports("aten::scalar_tensor", ignored=PLACEMENT)
def import_scalar_tensor(ctx: Import, *, s: Scalar, dtype: DType = None) -> Expr:
    return ctx.scalar(s, dtype.name if dtype else ctx.default_dtype)


@OPS.imports("aten::arange", ignored=PLACEMENT)
def import_arange(
    ctx: Import, *, end: Scalar, start: Scalar = 0, step: Scalar = 1, dtype: DType = None
) -> Expr:
    """Without a dtype, integers count in int64; floats are counted in float64.

    Fractions that count integers of less than 64 bits say how many there are, and are cut then.
    """
    kind = number_dtype(ctx, start, end, step) if dtype is None else dtype.name
    bounds = (start, end, step)
    fractions = any(is_float(ctx.dtype(ctx.number(each))) for each in bounds)
    if fractions and not is_float(kind) and kind != "int64":
        first, last, by = map(as_float, bounds)
        places = allocation.arange(len(allocation.arange(first, last, by)))
        return ctx.cast(Constant(int(first) + places * int(by)), kind)
    work = "float64" if is_float(kind) else "int64"
    found = ctx.fold(call("arange", *(ctx.scalar(each, work) for each in bounds), dtype=work))
    if not fractions:
        found = restore(ctx, found, [count_steps(ctx, start, end, step)])
    return ctx.cast(found, kind)


@OPS.imports("aten::_dim_arange")
def import_dim_arange(ctx: Import, like: Expr, *, dim: int) -> Expr:
    """The places of an axis."""
    length = ctx.scalar(ctx.size(like, ctx.axis(like, dim)), "int64")
    zero, one = (relay.const(each, "int64") for each in (0, 1))
    return relay.arange(zero, length, one, dtype="int64")


@OPS.exports("arange")
def export_arange(
    ctx: Export, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """PyTorch refuses an end before the start, of which Relay has an empty range."""
    numbers = [ctx.scalar(each) for each in (start, end, step)]
    name = ctx.dtype(dtype.name)
    if None not in numbers and ctx.result_type().shape != (0,):
        given = numbers if numbers[2] != 1 else numbers[:2]
        return ctx.call(
            "torch.arange", *(given if given[0] or len(given) > 2 else given[1:]), dtype=name
        )
    count = ctx.numbers(end)
    if numbers[0] == 0 and numbers[2] == 1 and count is not None:
        return ctx.call("torch.arange", *count, dtype=name)
    return ctx.call(ctx.helper("arange"), start, end, step)


@OPS.imports("aten::zero")
def import_zero(ctx: Import, self: Expr) -> Expr:
    return _fill_like(ctx, self, fill_value=0)


@OPS.imports("aten::fill")
def import_fill(ctx: Import, self: Expr, value: Expr) -> Expr:
    return fill_like(ctx, self, ctx.cast(value, ctx.dtype(self)))


@OPS.imports("aten::copy", ignored=("non_blocking",))
def import_copy(ctx: Import, self: Expr, src: Expr) -> Expr:
    """What is written takes shape and dtype of what was there."""
    found = ctx.cast(src, ctx.dtype(self))
    if ctx.type(found) == ctx.type(self):
        return found
    return relay.broadcast_to_like(found, self)


def _steps(ctx: Import, count: SymInt) -> Expr:
    """Return 0, 1, ... below a number in float64."""
    zero, one = ctx.scalar(0, "float64"), ctx.scalar(1, "float64")
    return ctx.fold(call("arange", zero, ctx.scalar(count, "float64"), one, dtype="float64"))


def _evenly(ctx: Import, start: Expr, end: Expr, steps: int, kind: str) -> Expr:
    """Return numbers from one to the other in float64, each counted from the nearer end.

    Ends of integers are integers.
    """
    if not is_float(kind):
        start, end = ctx.cast(start, kind), ctx.cast(end, kind)
    first, last = (ctx.cast(each, "float64") for each in (start, end))
    place = _steps(ctx, steps)
    if steps < 2:
        return relay.add(place, first)
    step = relay.divide(relay.subtract(last, first), ctx.scalar(steps - 1, "float64"))
    back = relay.subtract(ctx.scalar(steps - 1, "float64"), place)
    below = relay.add(first, relay.multiply(step, place))
    above = relay.subtract(last, relay.multiply(step, back))
    near = relay.less(place, ctx.scalar(steps // 2, "float64"))
    return ctx.fold(relay.where(near, below, above))


@OPS.imports("aten::linspace", ignored=PLACEMENT)
def import_linspace(
    ctx: Import, start: Expr, end: Expr, *, steps: SymInt, dtype: DType = None
) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    return ctx.cast(_evenly(ctx, start, end, ctx.fixed(steps), kind), kind)


@OPS.imports("aten::logspace", ignored=PLACEMENT)
def import_logspace(
    ctx: Import, start: Expr, end: Expr, *, steps: SymInt, base: float = 10.0, dtype: DType = None
) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    powers = _evenly(ctx, start, end, ctx.fixed(steps), kind)
    return ctx.cast(ctx.fold(relay.power(ctx.scalar(base, "float64"), powers)), kind)


@OPS.imports("aten::range", ignored=PLACEMENT)
def import_range(
    ctx: Import, *, start: Scalar, end: Scalar, step: Scalar = 1, dtype: DType = None
) -> Expr:
    """The end belongs to it."""
    first, last, by = map(as_float, (start, end, step))
    kind = ctx.default_dtype if dtype is None else dtype.name
    if not by or not all(map(math.isfinite, (first, last, by))):
        raise Unsupported(f"numbers from {first} to {last} in steps of {by}")
    count = max(int((last - first) / by + 1), 0)
    found = relay.multiply(_steps(ctx, count), ctx.scalar(by, "float64"))
    return ctx.cast(ctx.fold(relay.add(found, ctx.scalar(first, "float64"))), kind)


WINDOWS = {"bartlett": (), "blackman": (0.42, -0.5, 0.08), "hann": (0.5, -0.5)}
"""Coefficients of the sums of cosines that windows are; without any, it is a triangle."""


def _window(
    ctx: Import, length: int, periodic: bool, coefficients: Sequence[float], dtype: DType
) -> Expr:
    kind = ctx.default_dtype if dtype is None else dtype.name
    period = max(length if periodic else length - 1, 1)
    if length < 0:
        raise Unsupported(f"a window of {length} elements")
    places = allocation.arange(length)
    if length == 1:
        found = np.ones(1)
    elif not coefficients:
        found = 1 - np.abs(2 * places / period - 1)
    else:
        angles = 2 * math.pi / period * places
        found = sum(each * np.cos(k * angles) for k, each in enumerate(coefficients))
    return ctx.cast(Constant(np.asarray(found, np.float64)), kind)


def _register_window(name: str, coefficients: Sequence[float]) -> None:
    @OPS.imports(f"aten::{name}_window", ignored=PLACEMENT)
    def import_window(
        ctx: Import, *, window_length: int, periodic: bool = True, dtype: DType = None
    ) -> Expr:
        return _window(ctx, window_length, periodic, coefficients, dtype)


for _name, _coefficients in WINDOWS.items():
    _register_window(_name, _coefficients)


@OPS.imports("aten::hamming_window", ignored=PLACEMENT)
def import_hamming_window(
    ctx: Import,
    *,
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    dtype: DType = None,
) -> Expr:
    return _window(ctx, window_length, periodic, (alpha, -beta), dtype)


@OPS.imports("aten::tensor", "aten::as_tensor.list", ignored=("device", "requires_grad"))
def import_tensor(ctx: Import, *, data: AnyValue, dtype: DType = None) -> Expr:
    """A number, or lists of numbers, some of which may be computed."""
    found = _stack(ctx, data)
    return found if dtype is None else ctx.cast(found, dtype.name)


for _name in ("bool", "float", "int"):

    @OPS.imports(
        f"aten::tensor.{_name}", f"aten::as_tensor.{_name}", ignored=("device", "requires_grad")
    )
    def import_number_tensor(ctx: Import, *, t: Scalar, dtype: DType = None) -> Expr:
        kind = number_dtype(ctx, t) if dtype is None else dtype.name
        return ctx.scalar(t, kind)


def _stack(ctx: Import, data: AnyValue) -> Expr:
    if not isinstance(data, (list, tuple)):
        return ctx.scalar(data, number_dtype(ctx, data))
    if not data:
        return relay.zeros((0,), ctx.default_dtype)
    return ctx.fold(relay.stack(ctx.promote(*(_stack(ctx, each) for each in data)), axis=0))


@OPS.imports("prims::iota", ignored=("device", "requires_grad"))
def import_iota(
    ctx: Import, *, length: SymInt, start: SymInt, step: SymInt, dtype: np.dtype[AnyValue]
) -> Expr:
    zero, one = ctx.scalar(0, "int64"), ctx.scalar(1, "int64")
    count = call("arange", zero, ctx.scalar(length, "int64"), one, dtype="int64")
    scaled = relay.multiply(ctx.fold(count), ctx.scalar(step, "int64"))
    return ctx.cast(ctx.fold(relay.add(scaled, ctx.scalar(start, "int64"))), dtype.name)
