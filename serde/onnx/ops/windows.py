"""Windows that shape a signal, and the weights of the mel scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx

import serde.relay as relay
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


def _wide(value: float) -> Expr:
    return relay.Constant(np.float64(value))


def _scalar(ctx: ImportContext, x: Expr, dtype: str) -> Expr:
    """Return a number as a scalar of `dtype`."""
    shaped = relay.reshape(x, newshape=()) if ctx.type(x).rank else x
    return relay.cast(shaped, dtype)


def _counting(ctx: ImportContext, count: Expr) -> Expr:
    """Return 0, 1, ... below a number of int64, as float64."""
    steps = (relay.Constant(np.int64(0)), ctx.fold(count), relay.Constant(np.int64(1)))
    return relay.cast(call("arange", *steps, dtype="int64"), "float64")


def _window(terms: Sequence[float]) -> Callable[..., Expr]:
    """Return the importer of a sum of cosines of 0, 1, ... turns, each with its factor."""

    def import_window(
        ctx: ImportContext,
        size: Expr,
        *,
        output_datatype: int = onnx.TensorProto.FLOAT,
        periodic: bool = True,
    ) -> Expr:
        count = _scalar(ctx, size, "int64")
        turns = relay.cast(count, "float64")
        if not periodic:
            turns = relay.subtract(turns, _wide(1))
        part = relay.divide(_counting(ctx, count), turns)
        total = relay.full_like(part, _wide(terms[0]))
        for number, factor in enumerate(terms[1:], 1):
            wave = relay.cos(relay.multiply(part, _wide(2 * math.pi * number)))
            total = relay.add(total, relay.multiply(wave, _wide(factor)))
        return relay.cast(total, ctx.dtype(output_datatype))

    return import_window


OPS.imports("HannWindow", since=17)(_window((0.5, -0.5)))


OPS.imports("HammingWindow", since=17)(_window((25 / 46, -21 / 46)))


OPS.imports("BlackmanWindow", since=17)(_window((0.42, -0.5, 0.08)))


MEL, BREAK = 2595.0, 700.0
"""The mel scale: so many mels a power of ten of 1 + frequency / 700 Hz."""


def _mels(hertz: Expr) -> Expr:
    return relay.multiply(
        relay.log10(relay.add(relay.divide(hertz, _wide(BREAK)), _wide(1))), _wide(MEL)
    )


@OPS.imports("MelWeightMatrix", since=17)
def import_mel_weight_matrix(
    ctx: ImportContext,
    num_mel_bins: Expr,
    dft_length: Expr,
    sample_rate: Expr,
    lower_edge_hertz: Expr,
    upper_edge_hertz: Expr,
    *,
    output_datatype: int = onnx.TensorProto.FLOAT,
) -> Expr:
    """Triangles over the bins of a spectrum, each from the middle of one to that of the next."""
    bins, length = (_scalar(ctx, each, "int64") for each in (num_mel_bins, dft_length))
    rate, low, high = (
        _scalar(ctx, each, "float64") for each in (sample_rate, lower_edge_hertz, upper_edge_hertz)
    )
    one, two = relay.Constant(np.int64(1)), relay.Constant(np.int64(2))
    number = relay.add(bins, two)
    start = _mels(low)
    step = relay.divide(relay.subtract(_mels(high), start), relay.cast(number, "float64"))
    mels = relay.add(relay.multiply(_counting(ctx, number), step), start)
    raised = relay.power(_wide(10), relay.divide(mels, _wide(MEL)))
    hertz = relay.multiply(relay.subtract(raised, _wide(1)), _wide(BREAK))
    whole = relay.cast(relay.add(length, one), "float64")
    edges = relay.floor(relay.divide(relay.multiply(hertz, whole), rate))
    steps = relay.cast(_counting(ctx, bins), "int64")
    lower, centre, higher = (
        relay.take(edges, relay.add(steps, relay.Constant(np.int64(each))), axis=0, mode="fast")
        for each in range(3)
    )
    rows = relay.expand_dims(
        _counting(ctx, relay.add(relay.floor_divide(length, two), one)), axis=1
    )
    rising, falling = relay.subtract(centre, lower), relay.subtract(higher, centre)
    zero, unit = _wide(0), _wide(1)
    flat = relay.equal(rising, zero)
    up = relay.divide(relay.subtract(rows, lower), relay.where(flat, unit, rising))
    inside = relay.logical_and(relay.greater_equal(rows, lower), relay.less_equal(rows, centre))
    found = relay.where(inside, relay.where(flat, unit, up), zero)
    down = relay.divide(
        relay.subtract(higher, rows), relay.where(relay.equal(falling, zero), unit, falling)
    )
    behind = relay.logical_and(relay.greater_equal(rows, centre), relay.less(rows, higher))
    return relay.cast(relay.where(behind, down, found), ctx.dtype(output_datatype))
