"""Elements by index, and unique values."""

from __future__ import annotations

import numpy as np

import serde.relay as relay
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.index.gather import import_gather_nd
from serde.onnx.ops.table import MICROSOFT
from serde.relay.ir.expr import Expr
from serde.relay.ir.registry import call


@MICROSOFT.imports("GatherND")
def import_microsoft_gather_nd(ctx: ImportContext, data: Expr, indices: Expr) -> Expr:
    return import_gather_nd(ctx, data, indices)


@MICROSOFT.imports("Unique")
def import_unique(ctx: ImportContext, x: Expr) -> list[Expr]:
    """Values in the order of their first appearance, the index of each element's, and counts."""
    values, _, inverse, number, counts = relay.unique(x, is_sorted=False, return_counts=True)
    end = relay.cast(number, "int64")
    begin, step = (relay.Constant(np.array([each], np.int64)) for each in (0, 1))
    found, times = (
        call("dyn.strided_slice", each, begin, end, step, axes=(0,)) for each in (values, counts)
    )
    return [found, relay.cast(inverse, "int64"), relay.cast(times, "int64")]
