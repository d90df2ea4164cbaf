"""Recurrent layers written: each becomes a stack of one layer, and stacks are merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.ops.recurrent.layer import ORDER, Mode, in_order
from serde.mxnet.ops.recurrent.stack import STACK, stack
from serde.mxnet.ops.table import OPS, Export, Value
from serde.relay.ir.expr import Expr, tensor_type
from serde.walk.expansion.recurrent import LAYERS, layer_expansion
from serde.walk.expansion.tensors import fixed_shape


@OPS.exports(STACK)
def export_stack(
    ctx: Export, data: Value, parameters: Value, state: Value | None, cell: Value | None,
    *, mode: Mode, hidden_size: int, num_layers: int, bidirectional: bool,
    projection_size: int | None,
) -> tuple[Value, ...]:  # fmt: skip
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


def _begun(ctx: Export, data: Value, rows: int, width: int) -> Value:
    """Return states of zero; MXNet finds the length of the batch from the data."""
    type_ = ctx.type(data)
    batch = type_.shape[1]
    if isinstance(batch, int):
        return ctx.const(allocation.zeros((rows, batch, width), type_.dtype))
    if ctx.np_shape:
        raise Unsupported("states of zero for a batch of open length, with scalars in the graph")
    return ctx.emit("_zeros", shape=(rows, 0, width), dtype=np.dtype(type_.dtype))


Weights = tuple[Expr, Expr, Expr | None, Expr | None]


def _stack_layer(
    data: Expr,
    weights: Weights,
    states: Sequence[Expr | None],
    *,
    projection_size: int,
    **attrs: AnyValue,
) -> Sequence[Expr]:
    """MXNet ignores lengths on a processor; its layers have a projection or None."""
    vector = _pack_parameters(attrs["mode"], 1 + attrs["bidirectional"], *weights)
    return stack(data, vector, *states, projection_size=projection_size or None, **attrs)


for _name in LAYERS:
    OPS.expands(_name)(layer_expansion(_name, _stack_layer))


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
