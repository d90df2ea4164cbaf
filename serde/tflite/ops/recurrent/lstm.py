"""Long short-term memory, whose states are variable tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import serde.relay as relay
from serde.core.allocation import zeros
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, Function, Tuple, TupleGetItem, Var, call, infer_function
from serde.relay.ir.types import TensorType
from serde.relay.op.recurrent.gates import RecurrentLayer
from serde.tflite.ops.recurrent.layer import (
    TANH,
    Layout,
    are_fused,
    cut,
    direction_of,
    in_both_directions,
    joined,
    state_of,
    written,
)
from serde.tflite.ops.table import OPS, Export, Import, Value

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
    ctx: Import, x: Expr, *operands: Expr | None, fused_activation_function: int = 0,
    cell_clip: float = 0.0, proj_clip: float = 0.0, time_major: bool = False,
    diagonal_recurrent_tensors: bool = False,
) -> Expr:  # fmt: skip
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
    ctx: Import, x: Expr, operands: Sequence[Expr | None], layout: Layout, activation: int,
    cell_clip: float, proj_clip: float,
) -> tuple[Expr, Expr, Expr]:  # fmt: skip
    """Return the outputs of all steps, and the states behind the last.

    Operands are weights of the input (4), of the state (4), peepholes (3), biases (4), the
    projection and its bias, the output state, the cell state, and factors of norms (4).
    """
    given = [*operands, *([None] * (23 - len(operands)))]
    weights, recurrent, peepholes, biases = given[:4], given[4:8], given[8:11], given[11:15]
    projection, projection_bias, state, cell = given[15:19]
    if activation != TANH or state is None or cell is None:
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
        x, _stacked(ctx, weights), _stacked(ctx, recurrent),
        relay.concatenate([bias, second], axis=1), None, direction_of(state, layout),
        direction_of(cell, layout), holes,
        None if projection is None else relay.expand_dims(projection, axis=0), hidden_size=hidden,
        layout=layout, cell_clip=(-cell_clip, cell_clip) if cell_clip else None,
    )  # fmt: skip
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


@OPS.imports("BIDIRECTIONAL_SEQUENCE_LSTM", ignored=("asymmetric_quantize_inputs",))
def import_bidirectional_lstm(
    ctx: Import, x: Expr, *operands: Expr | None, fused_activation_function: int = 0,
    cell_clip: float = 0.0, proj_clip: float = 0.0, merge_outputs: bool = False,
    time_major: bool = True,
) -> Sequence[Expr]:  # fmt: skip
    """Seventeen operands for each direction, then two states for each."""
    given = [*operands, *([None] * (47 - len(operands)))]
    if any(each is not None for each in given[38:]):
        raise Unsupported("an auxiliary input")
    layout: Layout = "TNC" if time_major else "NTC"
    clips = (fused_activation_function, cell_clip, proj_clip)

    def run(number: int, entering: Expr) -> Expr:
        states = given[34 + 2 * number : 36 + 2 * number]
        parts = [*given[17 * number : 17 * number + 17], *states]
        found, state, cell = _layer(ctx, entering, parts, layout, *clips)
        ctx.update(35 + 2 * number, state)
        ctx.update(36 + 2 * number, cell)
        return found

    return in_both_directions(x, layout, merge_outputs, run)


def _is_lstm(node: Call) -> bool:
    low, high = node.attrs["cell_clip"] or (0.0, 0.0)
    plain = low == -high and not node.attrs["input_forget"] and node.attrs["cell_clip"] != (0, 0)
    return plain and are_fused(node, ("sigmoid", "tanh", "tanh"))


_PARTS = (0, 2, 3, 1)
"""TFLite's gates (input, forget, cell, output) in Relay's order (input, output, forget, cell)."""


@OPS.exports("serde.lstm", when=_is_lstm)
def export_lstm(
    ctx: Export, data: Value, input_weight: Value, recurrent_weight: Value, bias: Value | None,
    sequence_lens: Value | None, initial_h: Value | None, initial_c: Value | None,
    peephole: Value | None, projection: Value | None,
    *, layer: RecurrentLayer, input_forget: bool, cell_clip: tuple[float, float] | None,
) -> tuple[Value, ...]:  # fmt: skip
    """The states are variable tensors, which the graph sets before each layer."""
    size = layer.hidden_size
    options = {
        "fused_activation_function": TANH,
        "cell_clip": 0.0 if cell_clip is None else cell_clip[1],
    }
    columns: list[list[Value]] = [[], [], []]
    for number in range(ctx.static_shape(input_weight)[0]):
        weights = [
            cut(ctx, each, number, i, size=size)
            for each in (input_weight, recurrent_weight)
            for i in _PARTS
        ]
        holes = [cut(ctx, peephole, number, i, size=size) for i in (0, 2, 1)]
        biases = [cut(ctx, bias, number, i, 4 + i, size=size) for i in _PARTS]
        blank = ctx.const(zeros(size), "float32")
        width = size if projection is None else ctx.static_shape(projection)[1]
        last = cut(ctx, projection, number, 0, size=width)
        state = state_of(ctx, initial_h, number, layer, width)
        cell = state_of(ctx, initial_c, number, layer, size)
        rest = [*weights, *holes, *(each or blank for each in biases), last, None, state, cell]
        op = "UNIDIRECTIONAL_SEQUENCE_LSTM"
        steps, last = written(ctx, op, data, rest, layer, number, width, **options)
        found = steps, last, ctx.spell(_behind, cell, last)
        for column, each in zip(columns, found, strict=True):
            column.append(each)
    return joined(ctx, layer, *columns)


def _behind(state: Expr, result: Expr) -> Expr:
    """Return a state, read behind what gives a result: plus nothing times that."""
    nothing = relay.multiply(
        relay.strided_slice(result, [0], [1], axes=[1]), relay.const(np.float32(0))
    )
    return relay.add(state, nothing)
