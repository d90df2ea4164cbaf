"""Constants."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Constant, Expr

__all__: list[str] = []


@OPS.imports("constant")
def import_constant(
    ctx: ImportContext,
    *,
    shape: tuple[int, ...],
    value: tuple[AnyValue, ...],
    dtype: str = "float32",
) -> Expr:
    """One value fills the shape."""
    if any(each < 0 for each in shape):
        raise Unsupported(f"a constant of shape {list(shape)}")
    if not all(isinstance(each, (bool, int, float)) for each in value):
        raise Unsupported(f"a constant of {value!r:.40}")
    data = np.asarray(value, numpy_dtype(dtype))
    size = prod(shape)
    if data.size == 1 and size != 1:
        return relay.full(Constant(data.reshape(())), shape)
    if data.size != size:
        raise Unsupported(f"{data.size} values for a constant of shape {list(shape)}")
    return Constant(data.reshape(shape))


@OPS.exports("full", ignored=("dtype",))
def export_full(ctx: ExportContext, fill_value: Value, *, shape: tuple[Dim, ...]) -> Value:
    """A value that is computed is spread by repeating it."""
    own, wanted = ctx.type(fill_value).dtype, ctx.result_type().dtype
    if own != wanted:
        return ctx.spell(lambda x: relay.full(relay.cast(x, wanted), shape), fill_value)
    if fill_value.data is None:
        return ctx.spell(lambda x: relay.broadcast_to(x, shape), fill_value)
    return _constant(ctx, value=fill_value.data.item())


@OPS.exports("full_like")
def export_full_like(ctx: ExportContext, data: Value, fill_value: Value) -> Value:
    type_ = ctx.result_type()
    return ctx.spell(lambda x: relay.full(x, type_.shape, type_.dtype), fill_value)


def _constant(ctx: ExportContext, *, value: float) -> Value:
    """Return a constant of one value, of the type of the result."""
    type_ = ctx.result_type()
    return ctx.const(allocation.full(ctx.static_shape(Value("", type_)), value), type_.dtype)


for _name, _value in {"zeros": 0, "ones": 1}.items():
    OPS.exports(_name, ignored=("shape", "dtype"))(partial(_constant, value=_value))
