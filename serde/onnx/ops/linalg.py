"""Dense layers and matrix products."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast, filled, scalar_like, widened
from serde.onnx.ops.shape.layout import arranged
from serde.onnx.ops.shape.reshape import squeeze, unsqueeze
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.relay.op.linalg.product import parse_equation
from serde.relay.op.linalg.sparse import resolved_shape
from serde.weights import numpy_dtype


@OPS.exports("nn.dense")
def export_dense(
    ctx: ExportContext,
    x: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        result = integer_product(ctx, x, weight, turn_y=True)
        return result if bias is None else ctx.emit("Add", result, bias)
    _require_plain(ctx, x)
    if ctx.type(x).rank != 2:
        transposed = ctx.emit("Transpose", weight, perm=[1, 0])
        return ctx.emit("MatMul", x, transposed)
    return ctx.emit("Gemm", x, weight, bias, transB=1)


def _require_plain(ctx: ExportContext, x: Value) -> None:
    dtype = ctx.type(x).dtype
    if ctx.result_type().dtype != dtype:
        raise Unsupported(f"a product of {dtype} summed in {ctx.result_type().dtype}")


BYTES = ("int8", "uint8")
"""What the integer products of ONNX take; they sum in int32."""


def integer_product(
    ctx: ExportContext,
    x: Value,
    y: Value,
    zero_points: tuple[Value, Value] | None = None,
    *,
    turn_x: bool = False,
    turn_y: bool = False,
) -> Value:
    """Return the matrix product of integers, each without its zero point, in the result's dtype.

    MatMulInteger takes bytes and gives int32; everything else is a MatMul of wider integers.

    Args:
        ctx: The context.
        x: Left side.
        y: Right side.
        zero_points: Those of both sides, scalars or, of the right side, one for each column.
        turn_x: Whether the last two axes of `x` are exchanged.
        turn_y: Whether those of `y` are.
    """
    dtype = ctx.result_type().dtype
    left, right = _turned(ctx, x, turn_x), _turned(ctx, y, turn_y)
    sides = [ctx.type(x).dtype, ctx.type(y).dtype]
    narrow = all(side in BYTES for side in sides) and dtype == "int32"
    if narrow and (zero_points is None or all(map(_fits, zero_points, sides))):
        points = [
            None if not zero.any() else ctx.const(zero, side)
            for zero, side in zip(map(ctx.constant, zero_points or ()), sides, strict=False)
        ]
        return ctx.emit("MatMulInteger", left, right, *points)
    wide = "int64" if dtype == "int64" else "int32"
    parts = [cast(ctx, left, wide), cast(ctx, right, wide)]
    if zero_points is not None:
        parts = [
            ctx.emit("Sub", part, cast(ctx, zero, wide))
            for part, zero in zip(parts, zero_points, strict=True)
        ]
    total = ctx.emit("MatMul", *parts)
    return total if dtype == wide else cast(ctx, total, dtype)


def _fits(zero_point: Value, dtype: str) -> bool:
    """Whether a zero point is constant and a number of `dtype`."""
    if zero_point.data is None:
        return False
    limits = np.iinfo(dtype)
    return bool(((zero_point.data >= limits.min) & (zero_point.data <= limits.max)).all())


@OPS.exports("nn.matmul")
def export_matmul(
    ctx: ExportContext,
    x: Value,
    y: Value,
    *,
    units: Dim | None,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        return integer_product(ctx, x, y, turn_x=transpose_a, turn_y=transpose_b)
    _require_plain(ctx, x)
    return ctx.emit("MatMul", _turned(ctx, x, transpose_a), _turned(ctx, y, transpose_b))


@OPS.exports("nn.batch_matmul")
def export_batch_matmul(
    ctx: ExportContext,
    x: Value,
    y: Value,
    *,
    out_dtype: np.dtype[AnyValue] | None,
    transpose_a: bool,
    transpose_b: bool,
) -> Value:
    if not is_float(ctx.type(x).dtype):
        return integer_product(ctx, x, y, turn_x=transpose_a, turn_y=transpose_b)
    _require_plain(ctx, x)
    return ctx.emit("MatMul", _turned(ctx, x, transpose_a), _turned(ctx, y, transpose_b))


def _turned(ctx: ExportContext, x: Value, transpose: bool) -> Value:
    """Return `x` with its last two axes exchanged, if asked."""
    if not transpose:
        return x
    rank = ctx.type(x).rank
    return ctx.emit("Transpose", x, perm=[*range(rank - 2), rank - 1, rank - 2])


@OPS.exports("nn.bias_add")
def export_bias_add(ctx: ExportContext, x: Value, bias: Value, *, axis: int) -> Value:
    rank = ctx.type(x).rank
    following = rank - 1 - axis % rank
    return ctx.emit("Add", x, ctx.view(bias, (*ctx.type(bias).shape, *(1,) * following)))


@OPS.exports("einsum", since=12)
def export_einsum(ctx: ExportContext, data: tuple[Value, ...], *, equation: str) -> Value:
    """Before 28 there is none of bfloat16; a product in float32, rounded once, is the same."""
    dtype = ctx.type(data[0]).dtype
    data, equation = _of_one_length(ctx, data, equation)
    if dtype == "bfloat16" and ctx.version < 28:
        wide = [cast(ctx, each, np.float32) for each in data]
        return cast(ctx, ctx.emit("Einsum", *wide, equation=equation), dtype)
    return ctx.emit("Einsum", *data, equation=equation)


def _of_one_length(
    ctx: ExportContext, data: tuple[Value, ...], equation: str
) -> tuple[tuple[Value, ...], str]:
    """Return tensors and an equation in which an index has one length.

    What is spread in Relay, ONNX refuses: an axis of length 1 beside a longer one of the same
    name, which goes, and dots that stand for fewer axes than others, which get more.
    """
    terms, result = parse_equation(equation)
    parts = [term.partition("...") for term in terms]
    types = [ctx.type(each) for each in data]
    free = [
        type_.rank - len(before) - len(after)
        for type_, (before, _, after) in zip(types, parts, strict=True)
    ]
    long = set()
    for type_, (before, _, after) in zip(types, parts, strict=True):
        ends = (*type_.shape[: len(before)], *type_.shape[type_.rank - len(after) :])
        long |= {name for name, dim in zip(before + after, ends, strict=True) if dim != 1}
    found = []
    for place, (value, type_) in enumerate(zip(data, types, strict=True)):
        before, dots, after = parts[place]
        axes = [*range(len(before)), *range(type_.rank - len(after), type_.rank)]
        spread = [
            axis
            for axis, name in zip(axes, before + after, strict=True)
            if type_.shape[axis] == 1 and name in long
        ]
        kept = "".join(name for axis, name in zip(axes, before, strict=False) if axis not in spread)
        tail = axes[len(before) :]
        rest = "".join(name for axis, name in zip(tail, after, strict=True) if axis not in spread)
        value = squeeze(ctx, value, spread) if spread else value
        missing = max(free) - free[place] if dots else 0
        if missing:
            value = unsqueeze(ctx, value, [len(kept) + i for i in range(missing)])
        terms[place] = f"{kept}{dots}{rest}"
        found.append(value)
    if tuple(found) == data:
        return data, equation
    return tuple(found), f"{','.join(terms)}->{result}"


@OPS.exports("dft", since=17)
def export_dft(ctx: ExportContext, re: Value, im: Value, *, inverse: bool) -> tuple[Value, Value]:
    """ONNX has both parts on a last axis, and never transforms the first one."""
    rank = ctx.type(re).rank
    leading = [0] if rank == 1 else []
    parts = [unsqueeze(ctx, part, [*leading, rank + len(leading)]) for part in (re, im)]
    axis = rank - 1 + len(leading)
    signal = ctx.emit("Concat", *parts, axis=axis + 1)
    if ctx.version >= 20:
        result = ctx.emit("DFT", signal, None, ctx.const(axis, np.int64), inverse=int(inverse))
    else:
        result = ctx.emit("DFT", signal, axis=axis, inverse=int(inverse))
    found = [ctx.emit("Gather", result, ctx.const(i, np.int64), axis=axis + 1) for i in (0, 1)]
    real, imaginary = (squeeze(ctx, part, [0]) if leading else part for part in found)
    return real, imaginary


@OPS.exports("stft")
def export_stft(
    ctx: ExportContext,
    x: Value,
    window: Value,
    *,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool,
    onesided: bool,
) -> Value:
    """A convolution whose filters are the waves of all frequencies, shaped by the window."""
    dtype = ctx.type(x).dtype
    frequencies = np.arange(n_fft // 2 + 1 if onesided else n_fft)
    taps = np.arange(win_length)
    waves = np.exp(-2j * np.pi * np.outer(frequencies, taps) / win_length)
    if normalized:
        waves = waves / np.sqrt(n_fft)
    filters = np.zeros((2 * len(frequencies), 1, n_fft))
    filters[:, 0, :win_length] = np.concatenate([waves.real, waves.imag])
    if window.data is not None:
        filters[..., :win_length] *= window.data[:win_length]
        weight = ctx.const(filters, dtype)
    else:
        shaped = widened(ctx, window, dtype)
        (given,) = ctx.static_lengths(window, [0])
        if given > n_fft:
            shaped = ctx.emit("Slice", shaped, ctx.ints([0]), ctx.ints([n_fft]))
        if given < n_fft:
            shaped = ctx.emit("Concat", shaped, ctx.const(np.zeros(n_fft - given), dtype), axis=0)
        weight = ctx.emit("Mul", ctx.const(filters, dtype), shaped)
    batched = ctx.type(x).rank == 2
    signals = unsqueeze(ctx, x, [1] if batched else [0, 1])
    found = ctx.emit("Conv", signals, weight, kernel_shape=[n_fft], strides=[hop_length])
    whole = [0, 2, len(frequencies), -1] if batched else [2, len(frequencies), -1]
    parts = ctx.emit("Reshape", found, ctx.ints(whole))
    return ctx.emit("Transpose", parts, perm=[0, 2, 3, 1] if batched else [1, 2, 0])


def _places(ctx: ExportContext, indices: Value, indptr: Value) -> np.ndarray[AnyValue, AnyValue]:
    """Return row and column of each element of a sparse matrix whose places are constants.

    Raises:
        Unsupported: They are not constants, or two elements have one place.
    """
    counts = np.diff(ctx.constant(indptr))
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.stack([rows, ctx.constant(indices)[: len(rows)]], -1).astype(np.int64)
    if len(np.unique(places, axis=0)) < len(places):
        raise Unsupported("a sparse matrix with two elements in one place")
    return places


def _matrix(ctx: ExportContext, data: Value, indices: Value, indptr: Value, columns: int) -> Value:
    """Return a sparse matrix as a dense one."""
    places = _places(ctx, indices, indptr)
    block = ctx.static_shape(data)[1:]
    height, width = block or (1, 1)
    dtype = ctx.type(data).dtype
    count = len(ctx.constant(indptr)) - 1
    shape = (count, columns // width, *block)
    if ctx.static_shape(data)[0] > len(places):
        data = ctx.emit("Slice", data, ctx.ints([0]), ctx.ints([len(places)]), ctx.ints([0]))
    zeros = filled(ctx, ctx.ints(shape), 0, dtype)
    found = ctx.emit("ScatterND", zeros, ctx.const(places), data)
    if not block:
        return found
    moved = ctx.emit("Transpose", found, perm=[0, 2, 1, 3])
    return ctx.emit("Reshape", moved, ctx.ints([count * height, columns]))


@OPS.exports("nn.sparse_dense", "nn.internal.sparse_dense_padded")
def export_sparse_dense(
    ctx: ExportContext, x: Value, data: Value, indices: Value, indptr: Value, *, sparse_lhs: bool
) -> Value:
    (columns,) = ctx.static_lengths(x, [1])
    matrix = _matrix(ctx, data, indices, indptr, columns)
    left, right = (matrix, x) if sparse_lhs else (x, matrix)
    return ctx.emit("MatMul", left, ctx.emit("Transpose", right, perm=[1, 0]))


@OPS.exports("nn.sparse_add")
def export_sparse_add(
    ctx: ExportContext, x: Value, data: Value, indices: Value, indptr: Value
) -> Value:
    (columns,) = ctx.static_lengths(x, [1])
    return ctx.emit("Add", x, _matrix(ctx, data, indices, indptr, columns))


@OPS.exports("nn.sparse_transpose")
def export_sparse_transpose(
    ctx: ExportContext, data: Value, indices: Value, indptr: Value
) -> tuple[Value, ...]:
    """The places are constants, so that only the elements move when the model runs."""
    rows, columns = _places(ctx, indices, indptr).T
    order = np.argsort(columns, kind="stable")
    count = len(ctx.constant(indptr)) - 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=count))])
    return (
        ctx.emit("Gather", data, ctx.const(order, np.int64)),
        ctx.const(rows[order], ctx.type(indices).dtype),
        ctx.const(starts, ctx.type(indptr).dtype),
    )


@OPS.exports("nn.sparse_conv2d")
def export_sparse_conv2d(
    ctx: ExportContext,
    x: Value,
    data: Value,
    indices: Value,
    indptr: Value,
    *,
    layout: str,
    kernel_size: tuple[Dim, ...],
) -> Value:
    size = 3 if tuple(kernel_size) == (3, 3) else 1
    (channels,) = ctx.static_lengths(x, [layout.index("C")])
    matrix = _matrix(ctx, data, indices, indptr, channels * size * size)
    window = "OIHW" if layout == "NCHW" else "OHWI"
    lengths = {"O": -1, "I": channels, "H": size, "W": size}
    weight = ctx.emit("Reshape", matrix, ctx.ints(lengths[letter] for letter in window))
    found = ctx.emit(
        "Conv",
        arranged(ctx, x, layout, "NCHW"),
        arranged(ctx, weight, window, "OIHW"),
        pads=[size // 2] * 4,
    )
    return arranged(ctx, found, "NCHW", layout)


@OPS.exports("sparse_reshape")
def export_sparse_reshape(
    ctx: ExportContext, indices: Value, before: Value, after: Value
) -> tuple[Value, Value]:
    """Each element's number in row-major order, divided by what each new axis steps over."""
    old = tuple(int(length) for length in ctx.constant(before))
    new = resolved_shape(old, ctx.constant(after))
    wide = widened(ctx, indices, "int64")
    scaled = ctx.emit("Mul", wide, ctx.ints(_steps(old)))
    if ctx.version >= 13:
        numbers = ctx.emit("ReduceSum", scaled, ctx.ints([1]), keepdims=1)
    else:
        numbers = ctx.emit("ReduceSum", scaled, axes=[1], keepdims=1)
    found = ctx.emit("Mod", ctx.emit("Div", numbers, ctx.ints(_steps(new))), ctx.ints(new))
    dtype = ctx.type(indices).dtype
    shape = np.array(new, numpy_dtype(ctx.type(after).dtype))
    return found if dtype == "int64" else cast(ctx, found, dtype), ctx.const(shape)


def _steps(shape: tuple[int, ...]) -> list[int]:
    return [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]


@OPS.imports("Einsum", since=(12, 28))
def import_einsum(ctx: ImportContext, *inputs: Expr, equation: str) -> Expr:
    """Spaces in the equation mean nothing."""
    return relay.einsum(list(inputs), equation.replace(" ", ""))


@OPS.imports("MatMul", since=(1, 9, 13))
def import_matmul(ctx: ImportContext, a: Expr, b: Expr) -> Expr:
    return product_of(ctx, a, b)


def product_of(ctx: ImportContext, a: Expr, b: Expr) -> Expr:
    """Return NumPy's matmul: a vector on the left is a row, on the right a column."""
    left, right = ctx.type(a).rank, ctx.type(b).rank
    if right == 2 and left > 1:
        return call("nn.matmul", a, b, units=None, transpose_b=False)
    if left == right == 3:
        return relay.nn.batch_matmul(a, b, transpose_b=False)
    return call("serde.matmul", a, b)


@OPS.exports("serde.matmul")
def export_matmul_of_stacks(ctx: ExportContext, x: Value, y: Value) -> Value:
    dtypes = (ctx.type(x).dtype, ctx.type(y).dtype)
    wide = ("int32", "int64", "uint32", "uint64")
    if is_float(dtypes[0]) or (dtypes[0] == dtypes[1] and dtypes[0] in wide):
        return ctx.emit("MatMul", x, y)
    return integer_product(ctx, x, y)


@OPS.imports("Gemm", since=(7, 9, 11, 13))
def import_gemm(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    c: Expr | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: bool = False,  # noqa: N803
    transB: bool = False,  # noqa: N803
) -> Expr:
    left = relay.transpose(a, axes=[1, 0]) if transA else a
    found: Expr
    if transB:
        found = call("nn.dense", left, b, units=ctx.type(b).shape[0])
    else:
        found = call("nn.matmul", left, b, units=None, transpose_b=False)
    if alpha != 1.0:
        found = relay.multiply(found, scalar_like(ctx, found, alpha))
    if c is None:
        return found
    if beta != 1.0:
        c = relay.multiply(c, scalar_like(ctx, c, beta))
    type_ = ctx.type(c)
    if type_.rank == 1 and type_.shape[0] == ctx.type(found).shape[1] != 1:
        return relay.nn.bias_add(found, c, axis=1)
    return relay.add(found, c)


@OPS.imports("Gemm", since=(1, 6))
def import_gemm_v1(
    ctx: ImportContext,
    a: Expr,
    b: Expr,
    c: Expr,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    broadcast: bool = False,
    transA: bool = False,  # noqa: N803
    transB: bool = False,  # noqa: N803
) -> Expr:
    return import_gemm(ctx, a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)


@OPS.exports("sparse_fill_empty_rows")
def export_sparse_fill_empty_rows(
    ctx: ExportContext, indices: Value, values: Value, shape: Value, default: Value
) -> tuple[Value, Value, Value]:
    """Rows without a mark are empty; a stable order brings what is added to its place."""
    (rank,) = ctx.static_lengths(indices, [1])
    wide = widened(ctx, indices, "int64")
    rows = ctx.emit("Gather", wide, ctx.const(0, np.int64), axis=1)
    count = ctx.emit("Slice", widened(ctx, shape, "int64"), ctx.ints([0]), ctx.ints([1]))
    marks = filled(ctx, ctx.emit("Shape", rows), 1, "int64")
    taken = ctx.emit("ScatterElements", filled(ctx, count, 0, "int64"), rows, marks, axis=0)
    empty = ctx.emit("Equal", taken, ctx.const(0, np.int64))
    added = ctx.emit("Transpose", ctx.emit("NonZero", empty), perm=[1, 0])
    padded = ctx.emit("Pad", added, ctx.ints([0, 0, 0, rank - 1]))
    every = ctx.emit("Concat", wide, padded, axis=0)
    filler = ctx.emit(
        "Expand", default, ctx.emit("Slice", ctx.emit("Shape", added), ctx.ints([0]), ctx.ints([1]))
    )
    keys = ctx.emit("Gather", every, ctx.const(0, np.int64), axis=1)
    _, order = ctx.emit_tuple("TopK", keys, ctx.emit("Shape", keys), outputs=2, axis=0, largest=0)
    found = ctx.emit("Gather", every, order, axis=0)
    dtype = ctx.type(indices).dtype
    joined = ctx.emit("Concat", values, filler, axis=0)
    return (
        found if dtype == "int64" else cast(ctx, found, dtype),
        ctx.emit("Gather", joined, order, axis=0),
        empty,
    )
