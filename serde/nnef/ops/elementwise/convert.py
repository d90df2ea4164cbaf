"""Conversions of elements, copies, and sums of many tensors."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.errors import Unsupported
from serde.nnef.export_context import ExportContext, Value, element_type
from serde.nnef.import_context import ImportContext
from serde.nnef.ops.table import OPS
from serde.relay.ir.expr import Expr
from serde.walk.pairs import reads

__all__: list[str] = []


@OPS.imports("cast")
def import_cast(ctx: ImportContext, input: Expr, *, dtype: str = "float32") -> Expr:
    """Types have no width: a cast to the type that there is changes nothing.

    Scalars become integers towards zero, and logical values where they are not 0.
    """
    have = ctx.type(input).dtype
    same = np.dtype(have).kind in "iu" and np.dtype(dtype).kind in "iu"
    return input if same or have == dtype else relay.cast(input, dtype)


@OPS.exports("cast", ignored=("dtype",))
def export_cast(ctx: ExportContext, data: Value) -> Value:
    have, wanted = ctx.type(data).dtype, ctx.result_type().dtype
    if data.data is not None:
        return ctx.const(data.data.astype(numpy_dtype(wanted)))
    kind = element_type(wanted)
    if element_type(have) != kind:
        return ctx.emit("cast", data, dtype=kind)
    if have != wanted and not np.can_cast(have, wanted) and (have, wanted) not in _INTEGERS:
        raise Unsupported(f"integers of NNEF have no width, so none cuts {have} to {wanted}")
    return data


_INTEGERS = frozenset((("int64", "int32"), ("uint64", "int64"), ("uint32", "int32")))
"""Casts that keep what integers of NNEF can hold, which Khronos' runtime has in 32 bits."""


@OPS.imports("copy_n")
def import_copy_n(ctx: ImportContext, x: Expr, *, times: int) -> list[Expr]:
    if times != ctx.outputs:
        raise Unsupported(f"times={times} for {ctx.outputs} results")
    return [x] * times


@OPS.imports("add_n")
def import_add_n(ctx: ImportContext, *x: Expr) -> Expr:
    """A list of none gives one 0."""
    if not x:
        return relay.zeros([1], ctx.scalar)
    total = x[-1]
    for place in allocation.iterations(len(x) - 1, "a sum of many tensors"):
        total = relay.add(*ctx.align(x[-2 - place], total))
    return total


OPS.pairs(reads("copy", "copy"))
