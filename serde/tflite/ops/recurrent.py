"""Recurrent layers, whose states are variable tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import serde.relay as relay
from serde.core.allocation import zeros
from serde.errors import Unsupported
from serde.relay.ir import (
    Expr,
    Function,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    call,
    infer_function,
)
from serde.tflite.ops.table import OPS, Import

Layout = Literal["TNC", "NTC"]

_TANH = 4
"""The activation of cells."""

_GATES = (0, 3, 1, 2)
"""Relay's gates (input, output, forget, cell) in TFLite's order (input, forget, cell, output)."""


def _stacked(ctx: Import, gates: Sequence[Expr | None]) -> Expr:
    """Return what gates have, stacked in Relay's order, for one direction.

    Without an input gate it is one less the forget gate: the sigmoid of what is negative there.
    """
    forget = gates[1]
    first = gates[0]
    if first is None and forget is not None:
        first = relay.negative(forget)
    found = [each for each in (first, *gates[1:]) if each is not None]
    if len(found) < len(_GATES):
        raise Unsupported("a gate that is left out")
    parts = [found[i] for i in _GATES]
    return relay.expand_dims(relay.concatenate(parts, axis=0), axis=0)


@OPS.imports("UNIDIRECTIONAL_SEQUENCE_LSTM", ignored=("asymmetric_quantize_inputs",))
def import_sequence_lstm(
    ctx: Import,
    x: Expr,
    *operands: Expr | None,
    fused_activation_function: int = 0,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    time_major: bool = False,
    diagonal_recurrent_tensors: bool = False,
) -> Expr:
    """Operands are those of :func:`_layer`; the states are the last of the first nineteen."""
    if diagonal_recurrent_tensors:
        raise Unsupported("recurrent weights that are diagonals")
    layout: Layout = "TNC" if time_major else "NTC"
    clips = (fused_activation_function, cell_clip, proj_clip)
    found, state, cell = _layer(ctx, x, operands, layout, *clips)
    ctx.update(18, state)
    ctx.update(19, cell)
    return found


@OPS.imports("LSTM", ignored=("asymmetric_quantize_inputs",))
def import_lstm(
    ctx: Import,
    x: Expr,
    *operands: Expr | None,
    fused_activation_function: int = 0,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    kernel_type: int = 0,
) -> Sequence[Expr]:
    """One step of the same."""
    if kernel_type != 0:
        raise Unsupported("an LSTM of the basic kind")
    clips = (fused_activation_function, cell_clip, proj_clip)
    step = relay.expand_dims(x, axis=0)
    found, state, cell = _layer(ctx, step, operands, "TNC", *clips)
    ctx.update(18, state)
    ctx.update(19, cell)
    return [relay.squeeze(found, axis=[0])]


def _layer(
    ctx: Import,
    x: Expr,
    operands: Sequence[Expr | None],
    layout: Layout,
    activation: int,
    cell_clip: float,
    proj_clip: float,
) -> tuple[Expr, Expr, Expr]:
    """Return the outputs of all steps, and the states behind the last.

    Operands are weights of the input (4), of the state (4), peepholes (3), biases (4), the
    projection and its bias, the output state, the cell state, and factors of norms (4).
    """
    given = [*operands, *([None] * (23 - len(operands)))]
    weights, recurrent, peepholes, biases = given[:4], given[4:8], given[8:11], given[11:15]
    projection, projection_bias, state, cell = given[15:19]
    if activation != _TANH or state is None or cell is None:
        raise Unsupported("an LSTM without tanh, or without a state")
    normed = any(each is not None for each in given[19:])
    if (
        normed
        or proj_clip
        or projection_bias is not None
        or len({x is None for x in peepholes}) > 1
    ):
        return _spelled(ctx, x, given, 0 if layout == "TNC" else 1, (cell_clip, proj_clip))
    hidden = ctx.static_shape(cell, 2)[1]
    dtype = ctx.type(cell).dtype
    bias = _stacked(ctx, biases)
    second = ctx.const(zeros((1, 4 * hidden)), dtype)
    order = [each for each in (peepholes[0], peepholes[2], peepholes[1]) if each is not None]
    holes = relay.expand_dims(relay.concatenate(order, axis=0), axis=0) if order else None
    found = relay.serde.lstm(
        x,
        _stacked(ctx, weights),
        _stacked(ctx, recurrent),
        relay.concatenate([bias, second], axis=1),
        None,
        _direction(state, layout),
        _direction(cell, layout),
        holes,
        None if projection is None else relay.expand_dims(projection, axis=0),
        hidden_size=hidden,
        layout=layout,
        cell_clip=(-cell_clip, cell_clip) if cell_clip else None,
    )
    axis = 1 if layout == "TNC" else 2
    steps, last, last_cell = found
    where = 0 if layout == "TNC" else 1
    return (
        relay.squeeze(steps, axis=[axis]),
        relay.squeeze(last, axis=[where]),
        relay.squeeze(last_cell, axis=[where]),
    )


def _spelled(
    ctx: Import, x: Expr, given: Sequence[Expr | None], axis: int, clips: tuple[float, float]
) -> tuple[Expr, Expr, Expr]:
    """Return the same of a layer that Relay has not whole, written out as what each step does."""
    state, cell = (each for each in given[17:19] if each is not None)
    known = {i: each for i, each in enumerate(given) if each is not None and i not in (17, 18)}
    inner = {i: Var(f"operand{i}", ctx.type(each)) for i, each in known.items()}
    type_ = ctx.type(x)
    row = Var("row", TensorType((*type_.shape[:axis], *type_.shape[axis + 1 :]), type_.dtype))
    before = Var("state", ctx.type(state)), Var("cell", ctx.type(cell))
    later, next_cell = _step(ctx, row, *before, inner, clips)
    body = infer_function(
        Function([*before, row, *inner.values()], Tuple([later, next_cell, later]))
    )
    found = call(
        "serde.scan", [state, cell], [x], list(known.values()), body=body, axes=(axis,),
        out_axes=(axis,),
    )  # fmt: skip
    return TupleGetItem(found, 2), TupleGetItem(found, 0), TupleGetItem(found, 1)


_EPSILON = 1e-8
"""What LiteRT adds to the variance of a gate."""


def _step(
    ctx: Import,
    row: Expr,
    state: Expr,
    cell: Expr,
    given: Mapping[int, Expr],
    clips: tuple[float, float],
) -> tuple[Expr, Expr]:
    """Return the output and the cell behind a step; operands go by their places."""

    def gate(number: int, memory: Expr, peephole: int = -1) -> Expr:
        total = relay.add(
            relay.nn.dense(row, given[number]), relay.nn.dense(state, given[4 + number])
        )
        if peephole in given:
            total = relay.add(total, relay.multiply(memory, given[peephole]))
        if 19 + number in given:
            level = relay.subtract(total, relay.mean(total, axis=[1], keepdims=True))
            spread = relay.mean(relay.multiply(level, level), axis=[1], keepdims=True)
            root = relay.rsqrt(relay.add(spread, ctx.const(_EPSILON, "float32")))
            total = relay.multiply(relay.multiply(level, root), given[19 + number])
        return relay.add(total, given[11 + number]) if 11 + number in given else total

    def clipped(value: Expr, limit: float) -> Expr:
        return relay.clip(value, -limit, limit) if limit else value

    keep = relay.sigmoid(gate(1, cell, 9))
    own = 0 in given
    enter = (
        relay.sigmoid(gate(0, cell, 8)) if own else relay.subtract(ctx.const(1, "float32"), keep)
    )
    new = relay.tanh(gate(2, cell))
    later = relay.add(relay.multiply(keep, cell), relay.multiply(enter, new))
    later = clipped(later, clips[0])
    found = relay.multiply(relay.sigmoid(gate(3, later, 10)), relay.tanh(later))
    if 15 in given:
        found = relay.nn.dense(found, given[15])
        found = relay.add(found, given[16]) if 16 in given else found
        found = clipped(found, clips[1])
    return found, later


def _direction(state: Expr, layout: Layout) -> Expr:
    return relay.expand_dims(state, axis=0 if layout == "TNC" else 1)


@OPS.imports("SVDF", ignored=("asymmetric_quantize_inputs",))
def import_svdf(
    ctx: Import,
    x: Expr,
    feature: Expr,
    time: Expr,
    bias: Expr | None,
    state: Expr,
    *,
    rank: int = 0,
    fused_activation_function: int = 0,
) -> Expr:
    """Features are filtered along time; the state holds those of the steps before."""
    filters, steps = ctx.static_shape(time, 2)
    batch = ctx.static_shape(state, 2)[0]
    kept = relay.reshape(state, (batch, filters, steps))
    older = relay.strided_slice(kept, [1], [steps], axes=[2])
    new = relay.expand_dims(relay.nn.dense(x, feature), axis=2)
    window = relay.concatenate([older, new], axis=2)
    ctx.update(4, relay.reshape(window, (batch, filters * steps)))
    sums = relay.sum(relay.multiply(window, time), axis=[2])
    found = relay.sum(relay.reshape(sums, (batch, filters // rank, rank)), axis=[2])
    if bias is not None:
        found = relay.nn.bias_add(found, bias, axis=-1)
    return ctx.activated(found, fused_activation_function)


@OPS.imports("BIDIRECTIONAL_SEQUENCE_LSTM", ignored=("asymmetric_quantize_inputs",))
def import_bidirectional_lstm(
    ctx: Import,
    x: Expr,
    *operands: Expr | None,
    fused_activation_function: int = 0,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    merge_outputs: bool = False,
    time_major: bool = True,
) -> Sequence[Expr]:
    """Seventeen operands for each direction, then two states for each."""
    given = [*operands, *([None] * (47 - len(operands)))]
    if any(each is not None for each in given[38:]):
        raise Unsupported("an auxiliary input")
    layout: Layout = "TNC" if time_major else "NTC"
    clips = (fused_activation_function, cell_clip, proj_clip)
    axis = 0 if time_major else 1
    outputs = []
    for number, first in enumerate((0, 17)):
        states = given[34 + 2 * number : 36 + 2 * number]
        entering = relay.reverse(x, axis=axis) if number else x
        parts = [*given[first : first + 17], *states]
        found, state, cell = _layer(ctx, entering, parts, layout, *clips)
        ctx.update(35 + 2 * number, state)
        ctx.update(36 + 2 * number, cell)
        outputs.append(relay.reverse(found, axis=axis) if number else found)
    return [relay.concatenate(outputs, axis=2)] if merge_outputs else outputs


_PLAIN: dict[int, Literal["affine", "relu", "tanh"]] = {0: "affine", 1: "relu", 4: "tanh"}
"""Activations of plain recurrent layers."""


def _plain(
    ctx: Import,
    x: Expr,
    weights: Expr,
    recurrent: Expr,
    bias: Expr,
    state: Expr,
    function: int,
    layout: Layout,
) -> tuple[Expr, Expr]:
    """Return the outputs of all steps, and the state behind the last."""
    if function not in _PLAIN:
        raise Unsupported(f"a recurrent layer of the activation {function}")
    hidden = ctx.static_shape(state, 2)[1]
    both = relay.concatenate([bias, ctx.const(zeros(hidden), ctx.type(bias).dtype)], axis=0)
    steps, last = relay.serde.rnn(
        x,
        relay.expand_dims(weights, axis=0),
        relay.expand_dims(recurrent, axis=0),
        relay.expand_dims(both, axis=0),
        None,
        _direction(state, layout),
        hidden_size=hidden,
        layout=layout,
        activations=(_PLAIN[function],),
        activation_alpha=(1.0,) if function == 0 else (),
        activation_beta=(0.0,) if function == 0 else (),
    )
    axis, where = (1, 0) if layout == "TNC" else (2, 1)
    return relay.squeeze(steps, axis=[axis]), relay.squeeze(last, axis=[where])


@OPS.imports("RNN", ignored=("asymmetric_quantize_inputs",))
def import_rnn(
    ctx: Import,
    x: Expr,
    weights: Expr,
    recurrent: Expr,
    bias: Expr,
    state: Expr,
    *,
    fused_activation_function: int = 0,
) -> Expr:
    step, function = relay.expand_dims(x, axis=0), fused_activation_function
    found, last = _plain(ctx, step, weights, recurrent, bias, state, function, "TNC")
    ctx.update(4, last)
    return relay.squeeze(found, axis=[0])


@OPS.imports("UNIDIRECTIONAL_SEQUENCE_RNN", ignored=("asymmetric_quantize_inputs",))
def import_sequence_rnn(
    ctx: Import,
    x: Expr,
    weights: Expr,
    recurrent: Expr,
    bias: Expr,
    state: Expr,
    *,
    time_major: bool = False,
    fused_activation_function: int = 0,
) -> Expr:
    layout: Layout = "TNC" if time_major else "NTC"
    parts = (x, weights, recurrent, bias, state, fused_activation_function, layout)
    found, last = _plain(ctx, *parts)
    ctx.update(4, last)
    return found


@OPS.imports("BIDIRECTIONAL_SEQUENCE_RNN", ignored=("asymmetric_quantize_inputs",))
def import_bidirectional_rnn(
    ctx: Import,
    x: Expr,
    *operands: Expr | None,
    time_major: bool = False,
    fused_activation_function: int = 0,
    merge_outputs: bool = False,
) -> Sequence[Expr]:
    """Four operands for each direction: both weights, the bias and the state."""
    known = [each for each in operands if each is not None]
    if len(known) != 8 or list(operands[:8]) != known:
        raise Unsupported("an auxiliary input, or an operand that is left out")
    layout: Layout = "TNC" if time_major else "NTC"
    axis, outputs = 0 if time_major else 1, []
    for number in range(2):
        entering = relay.reverse(x, axis=axis) if number else x
        weights, recurrent, bias, state = known[4 * number : 4 * number + 4]
        parts = (entering, weights, recurrent, bias, state, fused_activation_function, layout)
        found, last = _plain(ctx, *parts)
        ctx.update(4 + 4 * number, last)
        outputs.append(relay.reverse(found, axis=axis) if number else found)
    return [relay.concatenate(outputs, axis=2)] if merge_outputs else outputs
