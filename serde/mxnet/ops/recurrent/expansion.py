"""Recurrent layers written: each becomes a stack of one layer, and stacks are merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any as AnyValue

import numpy as np

import serde.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.layout import fixed_shape, tensor_type
from serde.mxnet.ops.recurrent.layer import ORDER, Mode, in_order
from serde.mxnet.ops.recurrent.stack import STACK, stack
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Expr, Tuple
from serde.relay.ir.registry import get
from serde.relay.op.recurrent.gates import count_directions
from serde.walk.expansion.recurrent import LAYERS, find_mode


@OPS.exports(STACK)
def export_stack(
    ctx: ExportContext,
    data: Value,
    parameters: Value,
    state: Value | None,
    cell: Value | None,
    *,
    mode: Mode,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    projection_size: int | None,
) -> tuple[Value, ...]:
    """MXNet crashes on a projection unless the states are asked for."""
    rows = num_layers * (2 if bidirectional else 1)
    widths = [projection_size or hidden_size, hidden_size][: 2 if mode == "lstm" else 1]
    given = (state, cell)[: len(widths)]
    states = [
        _begun(ctx, data, rows, width) if each is None else each
        for each, width in zip(given, widths, strict=True)
    ]
    return ctx.emit_tuple(
        "RNN", data, parameters, *states, outputs=1 + len(states), mode=mode,
        state_size=hidden_size, num_layers=num_layers, bidirectional=bidirectional,
        projection_size=projection_size, state_outputs=True,
    )  # fmt: skip


def _begun(ctx: ExportContext, data: Value, rows: int, width: int) -> Value:
    """Return states of zero; MXNet finds the length of the batch from the data."""
    type_ = ctx.type(data)
    batch = type_.shape[1]
    if isinstance(batch, int):
        return ctx.const(allocation.zeros((rows, batch, width), type_.dtype))
    if ctx.np_shape:
        raise Unsupported("states of zero for a batch of open length, with scalars in the graph")
    return ctx.emit("_zeros", shape=(rows, 0, width), dtype=np.dtype(type_.dtype))


def _layer_expansion(name: str) -> Callable[..., Expr]:
    """Return what a recurrent layer of Relay is made of: a stack of one layer."""

    def expand_layer(
        data: Expr,
        input_weight: Expr,
        recurrent_weight: Expr,
        bias: Expr | None,
        sequence_lens: Expr | None,
        initial_h: Expr | None,
        initial_c: Expr | None = None,
        peephole: Expr | None = None,
        projection: Expr | None = None,
        **attrs: AnyValue,
    ) -> AnyValue:
        """MXNet ignores lengths on a processor; what its operator lacks is decomposed."""
        mode = find_mode(name, attrs)
        if mode is None or sequence_lens is not None or peephole is not None:
            operands = [data, input_weight, recurrent_weight, bias, sequence_lens, initial_h]
            if name == "serde.lstm":
                operands += [initial_c, peephole, projection]
            build = get(name).decompose
            if build is None:
                raise Unsupported("a layer that MXNet lacks")
            return build(*operands, **attrs)
        hidden, direction = attrs["hidden_size"], attrs["direction"]
        directions = count_directions(direction)
        batch_first = attrs["layout"] == "NTC"
        order = (1, 0, 2)
        if batch_first:
            data = relay.transpose(data, order)
        if direction == "reverse":
            data = relay.reverse(data, axis=0)
        states = [
            relay.transpose(each, order) if batch_first and each is not None else each
            for each in (initial_h, initial_c)
        ]
        vector = _pack_parameters(
            mode, directions, input_weight, recurrent_weight, bias, projection
        )
        output = hidden if projection is None else fixed_shape(projection)[1]
        every, *final = stack(
            data, vector, *states, mode=mode, hidden_size=hidden, num_layers=1,
            bidirectional=directions == 2, projection_size=None if projection is None else output,
        )  # fmt: skip
        if direction == "reverse":
            every = relay.reverse(every, axis=0)
        every = relay.transpose(relay.reshape(every, (0, 0, directions, output)), (0, 2, 1, 3))
        if batch_first:
            every = relay.transpose(every, (2, 0, 1, 3))
            final = [relay.transpose(each, order) for each in final]
        return Tuple([every, *final])

    return expand_layer


for _name in LAYERS:
    OPS.expands(_name)(_layer_expansion(_name))


def _pack_parameters(
    mode: str,
    directions: int,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None,
    projection: Expr | None,
) -> Expr:
    """Return MXNet's vector of the parameters of one layer."""
    order = sorted(range(len(ORDER[mode])), key=ORDER[mode].__getitem__)
    gates, hidden = len(order), fixed_shape(input_weight)[1] // len(order)
    pieces = []
    for number in range(directions):
        for matrices in (input_weight, recurrent_weight):
            own = relay.strided_slice(matrices, [number], [number + 1], [1], axes=[0])
            pieces.append(relay.reshape(in_order(own, order, 1), (-1,)))
        if projection is not None:
            own = relay.strided_slice(projection, [number], [number + 1], [1], axes=[0])
            pieces.append(relay.reshape(own, (-1,)))
    if bias is None:
        zeros = allocation.zeros(directions * 2 * gates * hidden, tensor_type(input_weight).dtype)
        return relay.concatenate([*pieces, relay.Constant(zeros)], axis=0)
    rows = in_order(relay.reshape(bias, (directions * 2, gates * hidden)), order, 1)
    for number in range(directions * 2):
        own = relay.strided_slice(rows, [number], [number + 1], [1], axes=[0])
        pieces.append(relay.reshape(own, (-1,)))
    return relay.concatenate(pieces, axis=0)
