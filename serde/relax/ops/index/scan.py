"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any as AnyValue

from serde.relax.ops.shape.reshape import flatten
from serde.relax.ops.table import OPS, Export, Value
from serde.relax.precision import NARROW
from serde.walk.pairs import reads


def _export_scan(
    ctx: Export, data: Value, *, op: str, axis: int | None, dtype: AnyValue, exclusive: bool
) -> Value:
    """Narrow numbers are added up in float32, as the kernel does."""
    given = flatten(ctx, data) if axis is None else data
    along = 0 if axis is None else axis % ctx.type(data).rank
    own = ctx.result_type().dtype
    wide = "float32" if own in NARROW else own
    if ctx.type(given).dtype != wide:
        given = ctx.emit("astype", given, wide)
    lengths = ctx.extents(given)
    if all(isinstance(each, int) and each for each in lengths):
        made = ctx.emit(op, given, along, exclusive=exclusive)
    else:
        made = ctx.emit_te(_make_scan(ctx, op, along, exclusive), given)
    return made if own == wide else ctx.emit("astype", made, own)


def _make_scan(ctx: Export, op: str, axis: int, exclusive: bool) -> Callable[[AnyValue], AnyValue]:
    """Return what computes a scan of an axis that may have no entries."""
    framework = ctx.framework
    tir, statements = framework.tir, framework.statements

    def scan(x: AnyValue) -> AnyValue:
        dtype = str(x.dtype)
        length = x.shape[axis]
        one = tir.IntImm("int64", 1)
        before, after = (prod(part, start=one) for part in (x.shape[:axis], x.shape[axis + 1 :]))

        def write(given: AnyValue, out: AnyValue) -> None:
            with statements.serial(0, before * after) as row:
                start = tir.floordiv(row, after) * length * after + tir.floormod(row, after)
                total = framework.cell(dtype)
                total[0] = tir.const(0 if op == "cumsum" else 1, dtype)
                with statements.serial(0, length) as step:
                    place = start + step * after
                    if exclusive:
                        out[place] = total[0]
                    each = given[place]
                    total[0] = total[0] + each if op == "cumsum" else total[0] * each
                    if not exclusive:
                        out[place] = total[0]

        return framework.extern(op, [x], [x.shape], [dtype], write)[0]

    return scan


OPS.exports("cumsum")(partial(_export_scan, op="cumsum"))
OPS.exports("cumprod")(partial(_export_scan, op="cumprod"))
OPS.pairs(
    *(reads(f"relax.{op}", op, "exclusive", axis=None, dtype=None) for op in ("cumsum", "cumprod"))
)
