"""Tensors made from numbers: filled ones, ranges, grids, triangles and diagonals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.attributes import dtype_of_code
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.weights import Array, numpy_dtype

FLOAT32 = np.dtype("float32")

PI = np.float32(np.pi)
"""MXNet's windows take their angles in float32."""


def _filled(value: float, shape: int | tuple[int, ...], dtype: np.dtype[AnyValue]) -> Expr:
    lengths: list[Dim] = [shape] if isinstance(shape, int) else list(shape)
    if any(isinstance(length, int) and length < 0 for length in lengths):
        raise Unsupported(f"a shape of unknown lengths: {shape}")
    return relay.full(relay.Constant(np.array(value).astype(dtype)), lengths, dtype)


@OPS.imports("_zeros", "_npi_zeros", ignored=("ctx",))
def import_zeros(
    ctx: ImportContext, *, shape: int | tuple[int, ...] = (), dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    return _filled(0, shape, dtype)


@OPS.imports("_ones", "_npi_ones", ignored=("ctx",))
def import_ones(
    ctx: ImportContext, *, shape: int | tuple[int, ...] = (), dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    return _filled(1, shape, dtype)


@OPS.imports("_full", ignored=("ctx",))
def import_full(
    ctx: ImportContext,
    *,
    shape: int | tuple[int, ...],
    value: float,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return _filled(value, shape, dtype)


@OPS.imports("_zeros_without_dtype", ignored=("ctx",))
def import_zeros_without_dtype(
    ctx: ImportContext, *, shape: int | tuple[int, ...] | None = None, dtype: int = -1
) -> Expr:
    if shape is None or dtype < 0:
        raise Unsupported("zeros whose shape or dtype follows from what they meet")
    return _filled(0, shape, numpy_dtype(dtype_of_code(dtype)))


@OPS.imports("_arange", "_npi_arange", ignored=("ctx",))
def import_arange(
    ctx: ImportContext,
    *,
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    """Counted in float64; of integers and float16, MXNet cuts start and step to whole numbers."""
    if stop is None and infer_range:
        raise Unsupported("infer_range=True: the length follows from what the result meets")
    first, last = (0.0, start) if stop is None else (start, stop)
    if step == 0 or repeat < 1:
        raise Unsupported(f"a range of step {step} and repeat {repeat}")
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
    places = relay.cast(relay.arange(0, count, 1, dtype="int64"), "float64")
    steps = relay.multiply(places, relay.const(step, "float64"))
    return _cast(relay.add(steps, relay.const(first, "float64")), dtype)


def _cast(x: Expr, dtype: np.dtype[AnyValue]) -> Expr:
    known = x.checked_type
    return x if getattr(known, "dtype", None) == dtype.name else relay.cast(x, dtype)


@OPS.imports("_linspace", ignored=("ctx",))
def import_linspace(
    ctx: ImportContext,
    *,
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return relay.Constant(_spaced(start, stop, num, endpoint).astype(dtype))


def _spaced(start: float, stop: float, num: int, endpoint: bool) -> Array:
    if num < 0:
        raise Unsupported(f"num={num} is below 0")
    return np.linspace(start, stop, num, endpoint=endpoint)


@OPS.imports("_npi_logspace", ignored=("ctx",))
def import_logspace(
    ctx: ImportContext,
    *,
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return relay.Constant(np.power(base, _spaced(start, stop, num, endpoint)).astype(dtype))


def _eye(rows: int, columns: int, k: int, dtype: np.dtype[AnyValue]) -> Expr:
    """Where the numbers of row and column differ by `k`: no constant that grows with both."""
    if min(rows, columns) < 0:
        raise Unsupported(f"a matrix of {rows} rows and {columns} columns")
    row = relay.expand_dims(relay.arange(k, rows + k, 1, dtype="int64"), 1)
    return relay.cast(relay.equal(row, relay.arange(0, columns, 1, dtype="int64")), dtype)


@OPS.imports("_eye", ignored=("ctx",))
def import_eye(
    ctx: ImportContext,
    *,
    N: int,  # noqa: N803
    M: int = 0,  # noqa: N803
    k: int = 0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    """No columns given, or 0, means as many as rows."""
    return _eye(N, M or N, k, dtype)


@OPS.imports("_npi_eye", ignored=("ctx",))
def import_np_eye(
    ctx: ImportContext,
    *,
    N: int,  # noqa: N803
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: np.dtype[AnyValue] = FLOAT32,
) -> Expr:
    return _eye(N, N if M is None else M, k, dtype)


@OPS.imports("_npi_identity", ignored=("ctx",))
def import_np_identity(
    ctx: ImportContext, *, shape: tuple[int, ...] = (), dtype: np.dtype[AnyValue] = FLOAT32
) -> Expr:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise Unsupported(f"expected the shape of a square matrix, found {shape}")
    return _eye(shape[0], shape[1], 0, dtype)


@OPS.imports("_npi_indices", ignored=("ctx",))
def import_indices(
    ctx: ImportContext,
    *,
    dimensions: int | tuple[int, ...],
    dtype: np.dtype[AnyValue] = np.dtype("int32"),
) -> Expr:
    lengths = (dimensions,) if isinstance(dimensions, int) else dimensions
    if not lengths:
        return _filled(0, (0,), dtype)
    grids = []
    for axis, length in enumerate(lengths):
        line = relay.arange(0, length, 1, dtype="int64")
        column = relay.expand_dims(line, 1, len(lengths) - axis - 1)
        grids.append(relay.broadcast_to(column, lengths))
    return _cast(relay.stack(grids, 0), dtype)


WINDOWS: dict[str, Callable[[Array], Array]] = {
    "hanning": lambda turn: 0.5 - 0.5 * np.cos(turn),
    "hamming": lambda turn: 0.54 - 0.46 * np.cos(turn),
    "blackman": lambda turn: 0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2 * turn),
}


def _register_window(name: str, window: Callable[[Array], Array]) -> None:
    @OPS.imports(f"_npi_{name}", ignored=("ctx",))
    def import_window(
        ctx: ImportContext,
        *,
        M: int | None = None,  # noqa: N803
        dtype: np.dtype[AnyValue] = FLOAT32,
    ) -> Expr:
        """Of integers every factor is cut to 0 or 1, and with it the window to 0."""
        if M is None:
            raise Unsupported("a window without its length M")
        if M <= 1:
            return relay.Constant(np.ones(max(M, 0)).astype(dtype))
        if not is_float(dtype.name):
            return relay.Constant(np.zeros(M, dtype))
        turn = 2 * PI * np.arange(M, dtype=np.float32) / np.float32(M - 1)
        return relay.Constant(window(turn.astype(np.float64)).astype(dtype))


for _name, _window in WINDOWS.items():
    _register_window(_name, _window)


@OPS.exports("full_like")
def export_full_like(ctx: ExportContext, data: Value, fill_value: Value) -> Value:
    type_ = ctx.type(data)
    value = ctx.cast(fill_value, type_.dtype)
    lengths = type_.concrete_shape
    if value.data is not None and lengths is not None:
        return ctx.const(np.broadcast_to(value.data, lengths))
    block = ctx.reshape(value, (1,) * type_.rank)
    return ctx.emit_bytes("broadcast_like", block, data) if type_.rank else block


@OPS.exports("arange")
def export_arange(
    ctx: ExportContext, start: Value, end: Value, step: Value, *, dtype: np.dtype[AnyValue]
) -> Value:
    """A range of constant length is counted, whatever its ends are."""
    (length,) = ctx.result_type().shape
    if not isinstance(length, int):
        raise Unsupported("a range whose length is computed at run time")
    numbers = ctx.const(np.arange(length), "int64")
    wide = "float64" if ctx.type(start).dtype.startswith("float") else "int64"

    def spelled(first: Expr, by: Expr, places: Expr) -> Expr:
        steps = relay.multiply(relay.cast(places, wide), relay.cast(by, wide))
        return relay.cast(relay.add(relay.cast(first, wide), steps), dtype)

    return ctx.spell(spelled, start, step, numbers)


@OPS.exports("meshgrid")
def export_meshgrid(
    ctx: ExportContext, data: tuple[Value, ...], *, indexing: Literal["ij", "xy"]
) -> tuple[Value, ...]:
    shape = ctx.result_types()[0].shape
    places = list(range(len(data)))
    if indexing == "xy":
        places[:2] = reversed(places[:2])

    def spread(place: int) -> Value:
        ones = tuple(length if axis == place else 1 for axis, length in enumerate(shape))
        return ctx.spell(
            lambda x: relay.broadcast_to(relay.reshape(x, ones), shape), data[places.index(place)]
        )

    return tuple(spread(place) for place in places)


@OPS.exports("ndarray_size")
def export_ndarray_size(ctx: ExportContext, data: Value, *, dtype: AnyValue) -> Value:
    shape = ctx.type(data).concrete_shape
    result = ctx.result_type()
    if shape is not None:
        return ctx.const(np.prod(shape, dtype=np.int64), result.dtype)
    whole = ctx.emit("Cast", ctx.emit("size_array", data), dtype=result.dtype)
    return ctx.emit("_npx_reshape", whole, newshape=()) if ctx.np_shape else whole


@OPS.exports("trilu")
def export_trilu(ctx: ExportContext, data: Value, k: Value, *, upper: bool) -> Value:
    """The two last axes must be fixed: their places are compared with `k`."""
    rows, columns = ctx.static_lengths(data, (-2, -1))
    offsets = ctx.const(np.arange(columns)[None, :] - np.arange(rows)[:, None], "int64")
    compare = relay.greater_equal if upper else relay.less_equal

    def spelled(x: Expr, diagonal: Expr, places: Expr) -> Expr:
        kept = compare(places, relay.cast(diagonal, "int64"))
        return relay.where(kept, x, relay.zeros_like(x))

    return ctx.spell(spelled, data, k, offsets)


@OPS.exports("matrix_set_diag")
def export_matrix_set_diag(
    ctx: ExportContext,
    input: Value,
    diagonal: Value,
    *,
    k1: int,
    k2: int,
    super_diag_right_align: bool,
    sub_diag_right_align: bool,
) -> Value:
    """Every place of a diagonal takes its element of `diagonal`, whose two last axes are one."""
    rows, columns = ctx.static_lengths(input, (-2, -1))
    lines = ctx.type(diagonal).shape
    (width,) = ctx.static_lengths(diagonal, [-1])
    places = np.zeros((rows, columns), np.int64)
    on = np.zeros((rows, columns), np.bool_)
    for k in range(k1, k2 + 1):
        length = min(rows + min(k, 0), columns - max(k, 0))
        right = super_diag_right_align if k >= 0 else sub_diag_right_align
        steps = np.arange(max(length, 0))
        where = (steps - min(k, 0), steps + max(k, 0))
        places[where] = (k2 - k) * width + (width - length if right else 0) + steps
        on[where] = True
    outer = lines[:-1] if k1 == k2 else lines[:-2]
    flat = ctx.reshape(diagonal, (*outer, (k2 - k1 + 1) * width))

    def spelled(x: Expr, values: Expr) -> Expr:
        chosen = relay.take(values, relay.Constant(places), axis=-1, mode="clip")
        return relay.where(relay.Constant(on), chosen, x)

    return ctx.spell(spelled, input, flat)


@OPS.exports("reinterpret")
def export_reinterpret(ctx: ExportContext, data: Value, *, dtype: np.dtype[AnyValue]) -> Value:
    """MXNet reads no bits: only integers of one width, and constants, are converted."""
    source, target = numpy_dtype(ctx.type(data).dtype), numpy_dtype(ctx.result_type().dtype)
    if data.data is not None:
        return ctx.const(np.array(data.data, order="C").view(target))
    if source == target:
        return data
    if {source.kind, target.kind} <= {"i", "u"}:
        return ctx.emit("Cast", data, dtype=target)
    raise Unsupported(f"the bits of {source} as {target}: MXNet converts values, not bits")
