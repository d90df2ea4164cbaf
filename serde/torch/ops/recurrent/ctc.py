"""The loss of a sequence whose labels stand in order but at no known times."""

from __future__ import annotations

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.torch.ops.reduce.loss import MEAN, NONE, Reduction
from serde.torch.ops.table import OPS, Import


def _ctc_loss(
    ctx: Import, scores: Expr, targets: Expr, times: Expr, counts: Expr, blank: int,
    reduction: Reduction, zero_infinity: bool,
) -> Expr:  # fmt: skip
    """Relay takes the softmax itself and has the blank first; what it gives for no way is zero."""
    dtype, single = ctx.dtype(scores), ctx.type(scores).rank == 2
    if single:
        scores = relay.expand_dims(scores, axis=1)
    times, counts = (relay.reshape(relay.cast(x, "int32"), (-1,)) for x in (times, counts))
    labels = relay.cast(_as_rows(ctx, targets, counts, scores), "int32")
    (classes,) = ctx.static_lengths(scores, [2])
    data = scores
    if not 0 <= blank < classes:
        raise Unsupported(f"class {blank} of {classes} is the blank")
    if blank:
        others = np.delete(allocation.arange(classes), blank)
        order = np.concatenate([[blank], others])
        data = relay.take(scores, relay.const(order, "int64"), axis=2, mode="fast")
        below = relay.less(labels, relay.const(np.int32(blank)))
        shifted = relay.add(labels, relay.const(np.int32(1)))
        labels = relay.where(below, shifted, labels)
    loss: Expr = call("serde.ctc_loss", data, labels, times, counts, blank="first")
    loss = relay.subtract(loss, _normalizer(ctx, scores, times))
    never = ctx.scalar(0 if zero_infinity else np.inf, dtype)
    loss = relay.where(_is_reachable(ctx, labels, times, counts), loss, never)
    if reduction == NONE:
        return relay.squeeze(loss, axis=[0]) if single else loss
    if reduction != MEAN:
        return relay.sum(loss)
    least = relay.maximum(counts, relay.const(np.int32(1)))
    return relay.mean(relay.divide(loss, relay.cast(least, dtype)))


def _as_rows(ctx: Import, targets: Expr, counts: Expr, scores: Expr) -> Expr:
    """Return labels as (batch, labels); without a batch axis they stand behind each other."""
    if ctx.type(targets).rank == 2:
        return targets
    (batch,) = ctx.static_lengths(scores, [1])
    (total,) = ctx.static_lengths(targets, [0])
    if batch == 1:
        return relay.expand_dims(targets, axis=0)
    known = ctx.known(ctx.fold(counts))
    most = total if known is None else int(known.max(initial=0))
    ends = relay.cumsum(counts, axis=0)
    starts = relay.expand_dims(relay.subtract(ends, counts), axis=1)
    places = relay.add(starts, relay.const(allocation.arange(max(most, 1), dtype=np.int32)[None]))
    last = relay.const(np.int32(max(total - 1, 0)))
    return relay.take(targets, relay.minimum(places, last), axis=0, mode="fast")


def _normalizer(ctx: Import, scores: Expr, times: Expr) -> Expr:
    """Return what scores lack of being logarithms of probabilities, summed over the times."""
    total = call("serde.logsumexp", scores, axis=[2])
    kept = relay.sequence_mask(total, times, mask_value=0.0, axis=0)
    return relay.sum(kept, axis=[0])


def _is_reachable(ctx: Import, labels: Expr, times: Expr, counts: Expr) -> Expr:
    """Return whether there are times enough for the labels, and for a blank between equal ones."""
    (most,) = ctx.static_lengths(labels, [1])
    needed = counts
    if most > 1:
        one, two = (
            relay.strided_slice(labels, begin=[b], end=[e], strides=[1], axes=[1])
            for b, e in ((0, most - 1), (1, most))
        )
        inside = relay.less(
            relay.const(allocation.arange(1, most, dtype=np.int32)[None]),
            relay.expand_dims(counts, 1),
        )
        repeats = relay.logical_and(relay.equal(one, two), inside)
        needed = relay.add(counts, relay.sum(relay.cast(repeats, "int32"), axis=[1]))
    return relay.less_equal(needed, times)


@OPS.imports("aten::ctc_loss.Tensor")
def import_ctc_loss(
    ctx: Import, log_probs: Expr, targets: Expr, input_lengths: Expr, target_lengths: Expr,
    *, blank: int = 0, reduction: Reduction = 1, zero_infinity: bool = False,
) -> Expr:  # fmt: skip
    return _ctc_loss(
        ctx, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity
    )


@OPS.imports("aten::ctc_loss.IntList")
def import_ctc_loss_of_lists(
    ctx: Import, log_probs: Expr, targets: Expr,
    *, input_lengths: tuple[int, ...], target_lengths: tuple[int, ...], blank: int = 0,
    reduction: Reduction = 1, zero_infinity: bool = False,
) -> Expr:  # fmt: skip
    times, counts = (ctx.shape_vector(each) for each in (input_lengths, target_lengths))
    return _ctc_loss(ctx, log_probs, targets, times, counts, blank, reduction, zero_infinity)
