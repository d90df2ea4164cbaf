"""Other dtypes, and operators that change nothing."""

from __future__ import annotations

from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.relay.ir.shapes import is_float
from serde.walk.pairs import pair, writes


@OPS.imports("amp_cast")
def import_amp_cast(ctx: ImportContext, data: Expr, *, dtype: np.dtype[AnyValue]) -> Expr:
    """What is no float of 16 or 32 bits stays as it is."""
    if ctx.type(data).dtype not in ("bfloat16", "float16", "float32"):
        return data
    if not is_float(dtype.name):
        raise Unsupported(f"amp_cast to {dtype}, which oneDNN rounds and MXNet without it cuts")
    return relay.cast(data, dtype)


@OPS.imports("amp_multicast")
def import_amp_multicast(
    ctx: ImportContext, *data: Expr, num_outputs: int, cast_narrow: bool = False
) -> tuple[Expr, ...]:
    """Floats of 16 and 32 bits take the wider, or the narrower, of their dtypes."""
    cast = ("float16", "float32")
    found = [ctx.type(x).dtype for x in data if ctx.type(x).dtype in cast]
    if not found:
        return data
    dtype = min(found) if cast_narrow else max(found)
    return tuple(relay.cast(x, dtype) if ctx.type(x).dtype in cast else x for x in data)


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


@OPS.imports(
    "_copy",
    "_np_copy",
    "_CrossDeviceCopy",
    "BlockGrad",
    "make_loss",
    "_identity_with_attr_like_rhs",
    uses=1,
)
def import_identity(ctx: ImportContext, data: Expr) -> Expr:
    return data


@OPS.imports("_contrib_gradientmultiplier", ignored=("scalar", "is_int"))
def import_gradient_multiplier(ctx: ImportContext, data: Expr) -> Expr:
    return data


OPS.pairs(
    pair("Cast", "cast", "dtype"),
    writes("_copy", "copy"),
)
