"""Losses of sequences: of labels at unknown times, and of events of a Hawkes process."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.shape.create import axis_indices
from serde.mxnet.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, Function, Tuple, TupleGetItem, Var, call
from serde.walk.takes import Takes, dtypes


@OPS.imports("CTCLoss")
def import_ctc_loss(
    ctx: Import,
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
    ctx: Export,
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


@OPS.imports("_contrib_hawkesll")
def import_hawkesll(
    ctx: Import, lda: Expr, alpha: Expr, beta: Expr, state: Expr, lags: Expr, marks: Expr,
    valid_length: Expr, max_time: Expr,
) -> tuple[Expr, Expr]:  # fmt: skip
    """One event after another, of all samples at once; those behind a sample's end do nothing."""
    none = relay.zeros_like(max_time)
    carried = [state, relay.zeros_like(state), none, none, relay.const(np.int32(0))]
    until = relay.expand_dims(valid_length, 1)
    captured = [lda, alpha, beta, axis_indices(ctx, lda, 1), until]
    body = _event(ctx, carried, [none, relay.cast(none, "int32")], captured)
    walked = call("serde.scan", carried, [lags, marks], captured, body=body, axes=(1, 1))
    final, last, likelihood = (TupleGetItem(walked, index) for index in (0, 1, 3))
    since = relay.subtract(relay.expand_dims(max_time, 1), last)
    kept = relay.exp(relay.negative(relay.multiply(beta, since)))
    rest = _count_expected(ctx, lda, alpha, final, since, kept)
    return relay.subtract(likelihood, relay.sum(rest, axis=1)), relay.multiply(kept, final)


def _count_expected(
    ctx: Import, lda: Expr, alpha: Expr, state: Expr, since: Expr, kept: Expr
) -> Expr:
    """Return how many events of each kind are expected since its last one."""
    one = relay.const(1, ctx.type(state).dtype)
    excited = relay.multiply(relay.multiply(alpha, state), relay.subtract(one, kept))
    return relay.add(relay.multiply(lda, since), excited)


def _event(ctx: Import, carried: list[Expr], slices: list[Expr], captured: list[Expr]) -> Function:
    """Return what an event does to states, last times of kinds, time, likelihood and number."""
    dtype = ctx.type(carried[0]).dtype
    given = [Var(f"x{i}", ctx.type(x)) for i, x in enumerate((*carried, *slices, *captured))]
    state, last, time, likelihood, number, lag, mark, lda, alpha, beta, kinds, until = given
    one, zero = relay.const(1, dtype), relay.const(0, dtype)
    before = relay.less(relay.cast(number, dtype), until)
    happens = relay.logical_and(relay.equal(kinds, relay.expand_dims(mark, 1)), before)
    now = relay.add(time, lag)
    since = relay.subtract(relay.expand_dims(now, 1), last)
    kept = relay.exp(relay.negative(relay.multiply(beta, since)))
    excited = relay.multiply(relay.multiply(relay.multiply(alpha, beta), state), kept)
    gain = relay.subtract(
        relay.log(relay.add(lda, excited)), _count_expected(ctx, lda, alpha, state, since, kept)
    )
    added = relay.sum(relay.where(happens, gain, zero), axis=1)
    results = [
        relay.where(happens, relay.add(one, relay.multiply(state, kept)), state),
        relay.where(happens, relay.expand_dims(now, 1), last),
        now,
        relay.add(likelihood, added),
        relay.add(number, relay.const(np.int32(1))),
    ]
    return Function(given, Tuple(results))
