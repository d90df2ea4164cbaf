"""Products of matrices, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.allocation import zeros
from serde.errors import Unsupported
from serde.relay.ir import Expr, call, tensor_type
from serde.relay.op.attention import decompose_attention, has_any
from serde.tflite.ops.table import INTEGERS, OPS, Export, Import, Value
from serde.tflite.quantization import rescaled, scale_product, zero_point
from serde.walk import Placeholder, Takes, writes
from serde.walk.takes import ANY


def _dense_reader(*, on_codes: bool) -> Callable[..., Expr]:
    def read(
        ctx: Import, x: Expr, weights: Expr, bias: Expr | None = None,
        *, weights_format: int = 0, keep_num_dims: bool = False, fused_activation_function: int = 0,
    ) -> Expr:  # fmt: skip
        """Weights are [outputs, inputs]; the input is made a matrix of so many columns."""
        if weights_format != 0:
            raise Unsupported("weights whose bytes are shuffled")
        units, columns = ctx.type(weights).shape[-2:]
        leading, flat = ctx.type(x).shape[:-1], x
        is_matrix = len(leading) == 1 and ctx.dim_at(x, -1) == columns
        if not is_matrix and (on_codes or not keep_num_dims):
            flat = relay.reshape(x, (-1, columns))
        if not on_codes:
            found = relay.nn.dense(flat, weights, units=units)
            found = found if bias is None else relay.nn.bias_add(found, bias, axis=-1)
            return ctx.activated(found, fused_activation_function)
        factors, made, one = (ctx.tensor(0), ctx.tensor(1)), ctx.result(), ctx.const(1.0, "float32")
        points = zero_point(factors[0]), zero_point(factors[1])
        wide = "int64" if made.dtype == "int16" else "int32"
        sums = relay.qnn.op.dense(flat, weights, *points, one, one, units, wide)
        sums = sums if bias is None else relay.nn.bias_add(sums, bias, axis=-1)
        found = rescaled(sums, scale_product(*factors), made, fused_activation_function)
        keeps = keep_num_dims and len(leading) != 1
        return relay.reshape(found, (*leading, units)) if keeps else found

    return read


_IGNORED = ("asymmetric_quantize_inputs", "quantized_bias_type", "quant_spec")
OPS.imports("FULLY_CONNECTED", ignored=_IGNORED)(_dense_reader(on_codes=False))
INTEGERS.imports("FULLY_CONNECTED", ignored=_IGNORED)(_dense_reader(on_codes=True))


@OPS.imports("BATCH_MATMUL", ignored=("asymmetric_quantize_inputs",))
def import_batch_matmul(
    ctx: Import, x: Expr, y: Expr, *, adj_x: bool = False, adj_y: bool = False
) -> Expr:
    return relay.serde.matmul(_swapped(ctx, x, adj_x), _swapped(ctx, y, adj_y))


def _swapped(ctx: Import, x: Expr, adjoint: bool) -> Expr:
    rank = ctx.rank(x)
    return relay.transpose(x, (*range(rank - 2), rank - 1, rank - 2)) if adjoint else x


OPS.expands("serde.attention")(partial(decompose_attention, find_alive=has_any))

_MOST_AXES = 5


@OPS.exports("nn.dense", ignored=("units", "out_dtype"))
def export_dense(ctx: Export, data: Value, weight: Value, bias: Value | None = None) -> Value:
    rank = ctx.type(data).rank
    keep = {"keep_num_dims": rank != 2, "weights_format": 0, "fused_activation_function": 0}
    if bias is None:
        bias = ctx.const(zeros(ctx.static_lengths(weight, [0])), ctx.result_type().dtype)
    return ctx.emit("FULLY_CONNECTED", data, weight, bias, **keep)


@OPS.exports("serde.matmul")
def export_stacked_matmul(ctx: Export, a: Value, b: Value) -> Value:
    """Of vectors an axis is added, and taken away again."""
    ranks = ctx.type(a).rank, ctx.type(b).rank
    if max(ranks) > _MOST_AXES:
        raise Unsupported(f"BATCH_MATMUL takes at most {_MOST_AXES} axes, found {max(ranks)}")
    if min(ranks) < 2:
        return ctx.spell(_of_matrices, a, b)
    return ctx.emit("BATCH_MATMUL", a, b, adj_x=False, adj_y=False)


def _of_matrices(a: Expr, b: Expr) -> Expr:
    left = relay.expand_dims(a, axis=0) if tensor_type(a).rank == 1 else a
    right = relay.expand_dims(b, axis=1) if tensor_type(b).rank == 1 else b
    found = relay.serde.matmul(left, right)
    gone = [-2] * (tensor_type(a).rank == 1) + [-1] * (tensor_type(b).rank == 1)
    return relay.squeeze(found, axis=gone) if gone else found


_TRANSPOSED = {"adj_x": "transpose_a", "adj_y": "transpose_b"}

OPS.pairs(
    writes(
        "BATCH_MATMUL", "nn.batch_matmul", "adj_x", "adj_y", renamed=_TRANSPOSED,
        takes=Takes(out_dtype=ANY),
    ),
    writes(
        "BATCH_MATMUL", "nn.matmul", "adj_x", "adj_y", renamed=_TRANSPOSED,
        takes=Takes(units=ANY, out_dtype=ANY),
    ),
)  # fmt: skip


@OPS.imports("STABLEHLO_DOT_GENERAL", ignored=("precision_config",))
def import_dot_general(
    ctx: Import, x: Expr, y: Expr,
    *, lhs_batching_dimensions: AnyValue = None, rhs_batching_dimensions: AnyValue = None,
    lhs_contracting_dimensions: AnyValue = None, rhs_contracting_dimensions: AnyValue = None,
) -> Expr:  # fmt: skip
    """Batch axes come first, then what is left of either."""
    rows, shapes = [], []
    for value, batch, summed in (
        (x, lhs_batching_dimensions, lhs_contracting_dimensions),
        (y, rhs_batching_dimensions, rhs_contracting_dimensions),
    ):
        shape = ctx.static_shape(value)
        along, gone = ctx.numbers(batch), ctx.numbers(summed)
        named = ctx.axes([*along, *gone], len(shape))
        free = [axis for axis in range(len(shape)) if axis not in named]
        groups = [[shape[axis] for axis in each] for each in (along, free, gone)]
        order = relay.transpose(value, (*along, *free, *gone)) if shape else value
        rows.append(relay.reshape(order, tuple(prod(each) for each in groups)))
        shapes.append(groups)
    if shapes[0][0] != shapes[1][0] or shapes[0][2] != shapes[1][2]:
        raise Unsupported(f"a product of {ctx.type(x)!r} and {ctx.type(y)!r} along other lengths")
    found = relay.nn.batch_matmul(rows[0], rows[1], ctx.result().dtype)
    return relay.reshape(found, (*shapes[0][0], *shapes[0][1], *shapes[1][1]))


class Complex(Placeholder):
    """Stands for complex numbers, which Relay has not.

    Attributes:
        pairs: Their real and imaginary parts, along a last axis.
    """

    __slots__ = ("pairs",)

    def __init__(self, pairs: Expr) -> None:
        self.below = ()
        self.type = None
        self.span = None
        self.pairs = pairs


@OPS.imports("RFFT2D")
def import_rfft2d(ctx: Import, x: Expr, fft_length: Expr) -> Expr:
    """Along the last axis first, of which half the spectrum stays."""
    height, width = ctx.numbers(ctx.ints(fft_length), 2)
    if min(height, width) < 1 or ctx.rank(x) < 2:
        raise Unsupported(f"a transform of {ctx.type(x)!r} of [{height}, {width}]")
    found = call("serde.dft", relay.expand_dims(x, -1), axis=-2, dft_length=width, onesided=True)
    return Complex(call("serde.dft", found, axis=-3, dft_length=height))


def _part(ctx: Import, x: Expr, number: int) -> Expr:
    if not isinstance(x, Complex):
        raise Unsupported("complex numbers that no transform gives")
    return relay.take(x.pairs, ctx.const(number, "int32"), axis=-1)


OPS.imports("REAL")(partial(_part, number=0))
OPS.imports("IMAG")(partial(_part, number=1))


@OPS.imports("COMPLEX_ABS")
def import_complex_abs(ctx: Import, x: Expr) -> Expr:
    parts = [_part(ctx, x, number) for number in range(2)]
    return relay.sqrt(relay.add(*(relay.multiply(each, each) for each in parts)))
