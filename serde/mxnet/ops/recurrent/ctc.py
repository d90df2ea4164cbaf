"""The loss of a sequence whose labels stand in order but at no known times."""

from __future__ import annotations

from typing import Literal

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.import_context import ImportContext
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, Tuple
from serde.relay.ir.registry import call
from serde.walk.takes import Takes, dtypes


@OPS.imports("CTCLoss")
def import_ctc_loss(
    ctx: ImportContext,
    data: Expr,
    label: Expr,
    *lengths: Expr,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: Literal["first", "last"] = "first",
) -> Expr:
    """Labels and lengths may be floats. The second output is the gradient, which nothing reads."""
    if len(lengths) != use_data_lengths + use_label_lengths:
        raise Unsupported(f"{len(lengths)} inputs of lengths")
    if ctx.outputs > 1:
        raise Unsupported("the gradient as an output")
    whole = [relay.cast(each, "int32") for each in (label, *lengths)]
    given = iter(whole[1:])
    times = next(given) if use_data_lengths else None
    counts = next(given) if use_label_lengths else None
    return call("serde.ctc_loss", data, whole[0], times, counts, blank=blank_label)


def _has_form(node: Call) -> bool:
    """MXNet 1.9.1 crashes on lengths of labels without those of data."""
    _, _, times, counts = node.args
    return isinstance(counts, Tuple) or not isinstance(times, Tuple)


@OPS.exports("serde.ctc_loss", takes=Takes(data=dtypes("float32")), when=_has_form)
def export_ctc_loss(
    ctx: ExportContext,
    data: Value,
    label: Value,
    data_lengths: Value | None,
    label_lengths: Value | None,
    *,
    blank: Literal["first", "last"],
) -> Value:
    given = [ctx.cast(x, "float32") for x in (label, data_lengths, label_lengths) if x is not None]
    return ctx.emit(
        "CTCLoss",
        data,
        *given,
        use_data_lengths=data_lengths is not None,
        use_label_lengths=label_lengths is not None,
        blank_label=blank,
    )
