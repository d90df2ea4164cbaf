"""Into quantised numbers, out of them, and from one scale to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.qnn.fused import Calibration
from serde.mxnet.ops.qnn.parameters import (
    LEVELS,
    ONE,
    WHOLE,
    known,
    levels_in,
    levels_within,
    magnitude,
    number,
    real_of,
    scalar,
    step,
    symmetric,
)
from serde.mxnet.ops.table import OPS, Import
from serde.relay.ir.expr import Expr

OutType = Literal["auto", "int8", "uint8"]


@OPS.imports("_contrib_quantize")
def import_quantize(
    ctx: Import,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: Literal["int8", "uint8"] = "uint8",
) -> Sequence[Expr]:
    """int8 has a range about zero, uint8 keeps the one given."""
    end = magnitude(min_range, max_range)
    result = levels_within(data, end, WHOLE[out_type], out_type)
    ends = symmetric(end) if out_type == "int8" else (min_range, max_range)
    return [result, *ends]


@OPS.imports("_contrib_quantize_v2")
def import_quantize_v2(
    ctx: Import, data: Expr, *, out_type: OutType = "int8", calibration: Calibration
) -> Sequence[Expr]:
    """Without a calibrated range, that of the data counts. Quantised data pass."""
    calibrated = calibration.ends
    dtype = _choose_dtype(out_type, calibration)
    given = ctx.type(data).dtype
    if given in LEVELS:
        if given != dtype:
            raise Unsupported(f"quantisation of {given} to {dtype}: MXNet passes the bits on")
        levels = LEVELS[given]
        whole = (number(-levels if given == "int8" else 0), number(levels))
        return [data, *(calibrated or whole)]
    low, high = calibrated or (_single(relay.min(data)), _single(relay.max(data)))
    end = magnitude(low, high)
    result = levels_within(data, end, LEVELS[dtype], dtype)
    return [result, *(symmetric(end) if dtype == "int8" else (low, high))]


def _choose_dtype(out_type: OutType, calibration: Calibration) -> str:
    """Return the dtype; ``auto`` goes by the least number, if there is one."""
    if out_type != "auto":
        return out_type
    low = calibration.min_calib_range
    return "uint8" if calibration.ends and low is not None and low >= 0 else "int8"


def _single(x: Expr) -> Expr:
    return relay.reshape(x, (1,))


@OPS.imports("_contrib_quantize_asym")
def import_quantize_asym(ctx: Import, data: Expr, *, calibration: Calibration) -> Sequence[Expr]:
    """To uint8 with a level that is zero; factor and level are further results."""
    calibrated = calibration.ends
    low, high = calibrated or (_single(relay.min(data)), _single(relay.max(data)))
    most = scalar(WHOLE["uint8"])
    factor = known(relay.divide(most, known(relay.subtract(high, low))))
    shift = known(relay.subtract(most, known(relay.multiply(high, factor))))
    sides = (known(relay.squeeze(each, axis=[0])) for each in (factor, shift))
    real = relay.add(relay.multiply(data, next(sides)), next(sides))
    return [levels_in(real, ONE, "uint8"), factor, shift]


@OPS.imports("_contrib_dequantize")
def import_dequantize(
    ctx: Import,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: Literal["float32"] = "float32",
) -> Expr:
    dtype = ctx.type(data).dtype
    if dtype not in LEVELS:
        raise Unsupported(f"{dtype} cannot be dequantised by MXNet")
    return real_of(data, step(magnitude(min_range, max_range), LEVELS[dtype]))


@OPS.imports("_contrib_requantize")
def import_requantize(
    ctx: Import,
    data: Expr,
    min_range: Expr,
    max_range: Expr,
    *,
    out_type: OutType = "int8",
    calibration: Calibration,
) -> Sequence[Expr]:
    """Without a calibrated range, that of the data counts; uint8 has one from zero."""
    calibrated = calibration.ends
    dtype = _choose_dtype(out_type, calibration)
    real = real_of(data, step(magnitude(min_range, max_range), WHOLE["int32"]))
    ends = calibrated or (_single(relay.min(real)), _single(relay.max(real)))
    end = magnitude(*ends)
    result = levels_within(real, end, WHOLE[dtype], dtype)
    return [result, *(symmetric(end) if dtype == "int8" else (number(0), end))]
