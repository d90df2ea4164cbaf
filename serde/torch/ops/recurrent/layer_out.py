"""Recurrent layers as they are written: each becomes a stack of one layer, and stacks merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any as AnyValue
from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.relay.ir.types import TensorType
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.recurrent.stack import STACK, gates_in_order, stack
from serde.torch.ops.table import OPS
from serde.walk.expansion.recurrent import LAYERS, layer_expansion

_KINDS: Final = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnn_tanh": "nn.RNN", "rnn_relu": "nn.RNN"}


@OPS.exports(STACK)
def export_stack(
    ctx: ExportContext,
    data: Value,
    weights: tuple[Value, ...],
    state: Value | None,
    cell: Value | None,
    *,
    mode: str,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
    has_bias: bool,
    projection_size: int,
) -> tuple[Value, ...]:
    states = [each for each in (state, cell) if each is not None]
    given: AnyValue = tuple(states) if mode == "lstm" or not states else states[0]
    dropout = float(ctx.in_training().get("p", 0.0)) if num_layers > 1 else 0.0
    if not ctx.is_weight(*weights):
        if not states:
            rows = num_layers * (2 if bidirectional else 1)
            widths = (projection_size or hidden_size, hidden_size)[: 2 if mode == "lstm" else 1]
            begun = [_zeros(ctx, data, rows, width) for width in widths]
            given = tuple(begun) if mode == "lstm" else begun[0]
        return _call_function(ctx, mode, data, given, weights, has_bias, num_layers, bidirectional)
    names = _names(num_layers, 2 if bidirectional else 1, has_bias, bool(projection_size))
    options: dict[str, AnyValue] = {
        "num_layers": num_layers,
        "bias": has_bias,
        "dropout": dropout,
        "bidirectional": bidirectional,
        **({"nonlinearity": "relu"} if mode == "rnn_relu" else {}),
        **({"proj_size": projection_size} if projection_size else {}),
    }
    value, last = ctx.layer_states(
        _KINDS[mode],
        (data, *([given] if states else [])),
        dict(zip(names, weights, strict=True)),
        states=2 if mode == "lstm" else 1,
        input_size=ctx.static_lengths(weights[0], [1])[0],
        hidden_size=hidden_size,
        **options,
    )
    return (value, *last)


def _zeros(ctx: ExportContext, data: Value, rows: int, width: int) -> Value:
    """Return states before the first step, which functions want to be given."""
    return ctx.method(data, "new_zeros", [rows, ctx.size(data, 1), width])


def _names(layers: int, directions: int, has_bias: bool, projects: bool) -> Iterator[str]:
    """Yield the names of the parameters of PyTorch's layers."""
    kinds = ["weight_ih", "weight_hh"]
    kinds += ["bias_ih", "bias_hh"] if has_bias else []
    kinds += ["weight_hr"] if projects else []
    for level in range(layers):
        for suffix in ("", "_reverse")[:directions]:
            yield from (f"{kind}_l{level}{suffix}" for kind in kinds)


def _call_function(
    ctx: ExportContext,
    mode: str,
    data: Value,
    given: AnyValue,
    weights: tuple[Value, ...],
    has_bias: bool,
    num_layers: int,
    bidirectional: bool,
) -> tuple[Value, ...]:
    """Write the layers whose weights are computed, or shared with other layers."""
    hx = list(given) if isinstance(given, tuple) else given
    arguments = (data, hx, list(weights), has_bias, num_layers, 0.0, False, bidirectional, False)
    return ctx.call_tuple(f"torch.{mode}", *arguments, outputs=3 if mode == "lstm" else 2)


Weights = tuple[Expr, Expr, Expr | None, Expr | None]


def _stack_layer(
    data: Expr,
    weights: Weights,
    states: list[Expr | None],
    *,
    projection_size: int,
    **attrs: AnyValue,
) -> Sequence[Expr]:
    mode = attrs["mode"]
    parts = _split_weights(mode, *weights)
    if mode == "lstm" and states.count(None) == 1:
        place, directions = states.index(None), 1 + attrs["bidirectional"]
        states[place] = _zero_state(data, directions, place, attrs["hidden_size"], projection_size)
    attrs["has_bias"] = weights[2] is not None
    return stack(data, parts, *states, projection_size=projection_size, **attrs)


for _name in LAYERS:
    OPS.expands(_name)(layer_expansion(_name, _stack_layer))


def _zero_state(data: Expr, directions: int, place: int, hidden: int, projection: int) -> Expr:
    """Return the state that is absent while the other is not."""
    type_ = data.checked_type
    batch = type_.shape[1] if isinstance(type_, TensorType) else None
    if not isinstance(type_, TensorType) or not isinstance(batch, int):
        raise Unsupported("one of two initial states, for a batch of open length")
    width = hidden if place else projection or hidden
    return relay.zeros((directions, batch, width), type_.dtype)


def _split_weights(
    mode: str,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None,
    projection: Expr | None,
) -> list[Expr]:
    """Return the weights of each direction, in PyTorch's order of gates."""
    weights: list[Expr] = []
    for number in range(_length(input_weight, 0)):
        for each in (input_weight, recurrent_weight):
            weights.append(gates_in_order(_direction(each, number), mode))
        if bias is not None:
            own = _direction(bias, number)
            half = _length(bias, 1) // 2
            for begin in (0, half):
                part = relay.strided_slice(own, [begin], [begin + half], [1], axes=[0])
                weights.append(gates_in_order(part, mode))
        if projection is not None:
            weights.append(_direction(projection, number))
    return weights


def _direction(x: Expr, number: int) -> Expr:
    own = relay.strided_slice(x, [number], [number + 1], [1], axes=[0])
    return relay.squeeze(own, axis=[0])


def _length(x: Expr, axis: int) -> int:
    """Return a length of a weight.

    Raises:
        Unsupported: It is not fixed.
    """
    type_ = x.checked_type
    length = type_.shape[axis] if isinstance(type_, TensorType) else None
    if not isinstance(length, int):
        raise Unsupported(f"needs weights of fixed shape, found {type_!r}")
    return length
