"""The loss of a sequence whose labels stand in order but at no known times."""

from __future__ import annotations

from typing import Literal

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, InRange, TensorType, call, ranges, relay_op, sample, tensor
from serde.relay.ir.expr import Expr, Function, Tuple, TupleGetItem, Var, const, tensor_type
from serde.relay.ir.shapes import join_dim, require_float
from serde.relay.ir.work import pairs
from serde.relay.op.activation import log_softmax

_NEVER = -1e30
"""Stands for the logarithm of 0: sums with ordinary logarithms leave it as it is."""


def _ctc_loss_type(
    data: TensorType,
    label: TensorType,
    data_lengths: TensorType | None,
    label_lengths: TensorType | None,
    *,
    blank: str,
) -> TensorType:
    require_float(data)
    if data.rank != 3 or label.rank != 2:
        raise TypeInferenceError(f"expected ranks 3 and 2, found {data!r} and {label!r}")
    batch = join_dim(data.shape[1], label.shape[0])
    for lengths in (data_lengths, label_lengths):
        if lengths is not None and lengths.rank != 1:
            raise TypeInferenceError(f"expected a vector of lengths, found {lengths!r}")
        batch = batch if lengths is None else join_dim(batch, lengths.shape[0])
    for operand in (label, data_lengths, label_lengths):
        if operand is not None and operand.dtype not in ("int32", "int64"):
            raise TypeInferenceError(f"expected int32 or int64, found {operand!r}")
    return TensorType((batch,), data.dtype)


def _logsumexp(terms: Expr) -> Expr:
    """Return the logarithm of the sum of exponentials along axis 1."""
    top = call("max", terms, axis=(1,), keepdims=True)
    total = call("sum", call("exp", call("subtract", terms, top)), axis=(1,))
    return call("add", call("log", total), call("squeeze", top, axis=(1,)))


def _shift_right(x: Expr, steps: int, value: Expr, width: int) -> Expr:
    """Return rows whose elements come `steps` later, with `value` before them."""
    wide = call("nn.pad", x, value, pad_width=((0, 0), (steps, 0)))
    return call("strided_slice", wide, begin=(0,), end=(width,), strides=(1,), axes=(1,))


def _states(label: Expr, count: int, empty: int) -> Expr:
    """Return the symbols of (batch, states): a blank before, between and after all labels."""
    blanks = call("full_like", label, const(empty, "int32"))
    pairs = call("reshape", call("stack", (blanks, label), axis=2), newshape=(0, 2 * count))
    return call("nn.pad", pairs, const(empty, "int32"), pad_width=((0, 0), (0, 1)))


def _step(
    state: Expr, rows: Expr, symbols: Expr, skip: Expr, ends: Expr | None, width: int
) -> Function:
    """Return what a time does: one of `width` states follows itself or one of the two before."""
    dtype = tensor_type(state).dtype
    row = TensorType(tensor_type(rows).shape[1:], dtype)
    time = Var("time", TensorType((1,), "int32"))
    alpha, emitted = Var("alpha", tensor_type(state)), Var("row", row)
    captured = [Var(n, tensor_type(x)) for n, x in (("symbols", symbols), ("skip", skip))]
    never = const(_NEVER, dtype)
    ways = [
        alpha,
        _shift_right(alpha, 1, never, width),
        call("add", _shift_right(alpha, 2, never, width), captured[1]),
    ]
    found = _logsumexp(call("stack", tuple(ways), axis=1))
    found = call("add", found, call("gather", emitted, captured[0], axis=1))
    if ends is not None:
        captured.append(Var("ends", tensor_type(ends)))
        found = call("where", call("less", time, captured[2]), found, alpha)
    later = call("add", time, const(np.int32(1)))
    return Function([alpha, time, emitted, *captured], Tuple([found, later]))


def _decompose_ctc_loss(
    data: Expr, label: Expr, data_lengths: Expr | None, label_lengths: Expr | None, *, blank: str
) -> Expr:
    """The forward variables of Graves (2006), one time after another, in logarithms."""
    (_, _, classes), result = tensor_type(data).shape, tensor_type(data).dtype
    dtype = "float32" if result == "float16" else result
    count = tensor_type(label).shape[1]
    if not isinstance(count, int) or not isinstance(classes, int):
        raise TypeInferenceError(f"{count} labels of {classes} classes cannot be decomposed")
    width, empty = 2 * count + 1, 0 if blank == "first" else classes - 1
    label = call("cast", label, dtype="int32")
    if label_lengths is None:
        after = call("equal", label, const(0 if blank == "first" else -1, "int32"))
        places = const(np.arange(count, dtype=np.int32))
        ends = call("where", after, places, const(np.int32(count)))
        lengths = call("min", ends, axis=(1,), keepdims=True)
    else:
        lengths = call("expand_dims", call("cast", label_lengths, dtype="int32"), axis=1)
    bounded = call("clip", label, a_min=0.0, a_max=float(classes - 1))
    symbols = _states(bounded, count, empty)
    same = call("equal", symbols, _shift_right(symbols, 2, const(np.int32(empty)), width))
    allowed = call("logical_not", call("logical_or", same, const(np.arange(width) % 2 == 0)))
    never, zero = const(_NEVER, dtype), const(0, dtype)
    skip = call("where", allowed, zero, never)
    first = const(np.where(np.arange(width) == 0, 0, _NEVER), dtype)
    state = call("where", call("less", symbols, const(np.int32(0))), never, first)
    rows = call("nn.log_softmax", call("cast", data, dtype=dtype), axis=2)
    captured = [symbols, skip]
    until = None
    if data_lengths is not None:
        until = call("expand_dims", call("cast", data_lengths, dtype="int32"), axis=1)
        captured.append(until)
    body = _step(state, rows, symbols, skip, until, width)
    start = const(np.zeros(1, np.int32))
    walked = call("serde.scan", (state, start), (rows,), tuple(captured), body=body)
    numbers = const(np.arange(width, dtype=np.int32))
    twice = call("multiply", lengths, const(np.int32(2)))
    last = call("equal", numbers, twice)
    before = call("equal", numbers, call("subtract", twice, const(np.int32(1))))
    final = call("where", call("logical_or", last, before), TupleGetItem(walked, 0), never)
    loss = call("negative", _logsumexp(final))
    loss = call("where", call("less", loss, const(-_NEVER / 2, dtype)), loss, zero)
    return call("cast", loss, dtype=result)


_LABELS = np.array([[1, 2, 2], [3, 0, 0]], np.int32)


@relay_op(
    "serde.ctc_loss",
    traits=(pairs(), InRange(ranges.label_lengths)),
    infer=_ctc_loss_type,
    decompose=_decompose_ctc_loss,
    samples=[
        sample((6, 2, 5), _LABELS),
        sample((6, 2, 5), _LABELS - 1, blank="last"),
        sample((6, 2, 5), _LABELS.astype(np.int64), np.array([5, 3], np.int32)),
        sample((6, 2, 5), _LABELS, None, np.array([2, 0], np.int32)),
        sample(
            (6, 2, 4),
            tensor((2, 3), "int32", low=1, high=3),
            np.array([1, 6], np.int64),
            np.array([3, 1], np.int64),
        ),
    ],
)
def ctc_loss(
    data: Array,
    label: Array,
    data_lengths: Array | None,
    label_lengths: Array | None,
    *,
    blank: Literal["first", "last"] = "first",
) -> Array:
    """The negative log likelihood of labels in order, blanks and repetitions left out.

    The sum over all ways to place them is that of Graves, "Connectionist Temporal
    Classification" (2006). A sequence too short for its labels has the loss 0.

    Args:
        data: Scores before the softmax: (time, batch, classes).
        label: Classes: (batch, labels). Without `label_lengths` they end at the first 0, or at
            the first -1 where the blank is last.
        data_lengths: Times of each sequence: (batch,); all if None.
        label_lengths: Labels of each sequence: (batch,).
        blank: Whether the first or the last class is the blank.

    Returns:
        (batch,).
    """
    rows = log_softmax(data.astype(np.float64), axis=2)
    losses = []
    for number, classes in enumerate(label):
        stops = np.flatnonzero(classes == (0 if blank == "first" else -1))
        count = stops[0] if len(stops) else len(classes)
        if label_lengths is not None:
            count = label_lengths[number]
        times = len(data) if data_lengths is None else data_lengths[number]
        kept = np.clip(classes[:count], 0, data.shape[2] - 1)
        losses.append(_loss(rows[:times, number], kept, 0 if blank == "first" else -1))
    return np.array(losses).astype(data.dtype)


def _loss(rows: Array, labels: Array, blank: int) -> float:
    """Return the loss of one sequence of (time, classes)."""
    symbols = np.full(2 * len(labels) + 1, blank)
    symbols[1::2] = labels
    skips = np.full(len(symbols), -np.inf)
    skips[3::2] = np.where(symbols[3::2] == symbols[1:-2:2], -np.inf, 0.0)
    alpha = np.where(np.arange(len(symbols)) == 0, 0.0, -np.inf)
    none = np.full(2, -np.inf)
    for row in rows:
        earlier = np.concatenate([none, alpha])
        ways = np.stack([alpha, earlier[1:-1], earlier[:-2] + skips])
        alpha = np.logaddexp.reduce(ways, axis=0) + row[symbols]
    likelihood = np.logaddexp.reduce(alpha[-2:])
    return float(-likelihood) if np.isfinite(likelihood) else 0.0
