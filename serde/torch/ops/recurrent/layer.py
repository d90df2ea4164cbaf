"""Stacks of recurrent layers, and their single steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, TupleGetItem, call
from serde.torch.ops.recurrent.stack import STACK, gates_in_order, stack
from serde.torch.ops.table import OPS, Export, Import, Value
from serde.walk.expansion.recurrent import LAYERS, layer_expansion

__all__ = ["MODES", "Mode", "Stack", "run_stack"]


@dataclass(frozen=True)
class Mode:
    """A kind of layer.

    Attributes:
        op: The operator of Relay.
        order: Where PyTorch has the gates that Relay lists.
        states: How many states there are.
        attributes: Those of the operator that it always has, for one direction.
    """

    op: str
    order: tuple[int, ...]
    states: int = 1
    attributes: tuple[tuple[str, AnyValue], ...] = ()


MODES: Final = {
    "lstm": Mode("serde.lstm", (0, 3, 1, 2), states=2),
    "gru": Mode("serde.gru", (1, 0, 2), attributes=(("linear_before_reset", True),)),
    "rnn_tanh": Mode("serde.rnn", (0,)),
    "rnn_relu": Mode("serde.rnn", (0,), attributes=(("activations", ("relu",)),)),
}
"""PyTorch has input, forget, cell and output of an LSTM; reset, update and new of a GRU."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Attributes of a stack of layers."""

    params: tuple[Expr, ...]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool

    @property
    def directions(self) -> int:
        """How many directions each layer has."""
        return 2 if self.bidirectional else 1

    def layers(self) -> list[list[tuple[Expr, ...]]]:
        """Return the parameters of each direction of each layer."""
        if self.dropout and self.train and self.num_layers > 1:
            raise Unsupported("dropout of a module in training", hint="call its eval() before")
        if self.num_layers < 1:
            raise Unsupported(f"{self.num_layers} layers")
        groups = self.num_layers * self.directions
        each, rest = divmod(len(self.params), groups)
        plain = 4 if self.has_biases else 2
        if rest or each not in (plain, plain + 1):
            raise Unsupported(f"{len(self.params)} parameters for {groups} layers and directions")
        rows = [self.params[each * i : each * (i + 1)] for i in range(groups)]
        pairs = range(0, groups, self.directions)
        return [rows[first : first + self.directions] for first in pairs]


def run_stack(
    ctx: Import,
    mode: Mode,
    stack: Stack,
    x: Expr,
    states: Sequence[Expr],
    lengths: Expr | None = None,
) -> tuple[Expr, ...]:
    """Return outputs and last states of layers, time first.

    Args:
        ctx: The context.
        mode: The kind of layer.
        stack: The layers.
        x: (time, batch, input).
        states: The first states, (layers times directions, batch, hidden).
        lengths: Length of each sequence, of int32.
    """
    finals: list[list[Expr]] = []
    count = stack.directions
    for level, rows in enumerate(stack.layers()):
        weights = _read_weights(ctx, mode, rows, stack.has_biases)
        first = level * count
        own = [ctx.fold(_rows(ctx, each, first, first + count)) for each in states]
        operands = [x, *weights[:3], lengths, *own]
        if mode.op == "serde.lstm":
            operands += [None, weights[3]]
        layer = call(mode.op, *operands, **_attributes(ctx, mode, stack, rows[0][1]))
        every, *final = (TupleGetItem(layer, index) for index in range(1 + mode.states))
        x = _join_directions(every, count)
        finals.append(list[Expr](final))
    if len(finals) == 1:
        return (x, *finals[0])
    return (x, *(relay.concatenate(each, axis=0) for each in zip(*finals, strict=True)))


def _attributes(ctx: Import, mode: Mode, stack: Stack, recurrent: Expr) -> dict[str, AnyValue]:
    """Return the attributes of a layer whose weights of the state are given."""
    (rows,) = ctx.static_lengths(recurrent, [0])
    given = {
        name: value * stack.directions if isinstance(value, tuple) else value
        for name, value in mode.attributes
    }
    return {
        **given,
        "hidden_size": rows // len(mode.order),
        "direction": "bidirectional" if stack.bidirectional else "forward",
    }


def _join_directions(x: Expr, count: int) -> Expr:
    """Return (time, directions, batch, hidden) as (time, batch, directions times hidden)."""
    if count == 1:
        return relay.squeeze(x, axis=[1])
    return relay.reshape(relay.transpose(x, (0, 2, 1, 3)), (0, 0, -3))


def _rows(ctx: Import, x: Expr, begin: int, end: int) -> Expr:
    if ctx.type(x).shape[0] == end - begin:
        return x
    return relay.strided_slice(x, [begin], [end], [1], axes=[0])


def in_order(parts: Expr, order: Sequence[int]) -> Expr:
    """Return the gates along the first axis as Relay's operators list them."""
    if len(order) == 1:
        return parts
    gates = list(relay.split(parts, len(order), axis=0))
    return relay.concatenate([gates[index] for index in order], axis=0)


def _read_weights(
    ctx: Import, mode: Mode, rows: Sequence[tuple[Expr, ...]], has_biases: bool
) -> list[Expr | None]:
    """Return weights of input and state, bias and projection of one layer, by direction."""

    def join(parts: Sequence[Expr]) -> Expr:
        return relay.stack(parts, axis=0)

    found: list[Expr | None] = [
        join([in_order(row[place], mode.order) for row in rows]) for place in (0, 1)
    ]
    if has_biases:
        pairs = [[in_order(each, mode.order) for each in row[2:4]] for row in rows]
        found.append(join([relay.concatenate(pair, axis=0) for pair in pairs]))
    else:
        found.append(None)
    plain = 4 if has_biases else 2
    found.append(join([row[plain] for row in rows]) if len(rows[0]) > plain else None)
    return found


def _over_sequences(
    ctx: Import, mode: Mode, stack: Stack, x: Expr, states: Sequence[Expr], batch_first: bool
) -> tuple[Expr, ...]:
    """Return what a stack gives for sequences, which may lack the batch axis."""
    batched = ctx.type(x).rank == 3
    if not batched:
        x, states = relay.expand_dims(x, axis=1), [relay.expand_dims(s, axis=1) for s in states]
    elif batch_first:
        x = relay.transpose(x, (1, 0, 2))
    every, *final = run_stack(ctx, mode, stack, x, states)
    if not batched:
        return tuple(relay.squeeze(each, axis=[1]) for each in (every, *final))
    return (relay.transpose(every, (1, 0, 2)) if batch_first else every, *final)


@OPS.imports("aten::lstm.input")
def import_lstm(
    ctx: Import, input: Expr, *, hx: tuple[Expr, ...], stack: Stack, batch_first: bool
) -> tuple[Expr, ...]:
    return _over_sequences(ctx, MODES["lstm"], stack, input, hx, batch_first)


def _import_layers(
    ctx: Import, input: Expr, hx: Expr, *, mode: Mode, stack: Stack, batch_first: bool
) -> tuple[Expr, ...]:
    return _over_sequences(ctx, mode, stack, input, [hx], batch_first)


for _name in ("gru", "rnn_tanh", "rnn_relu"):
    OPS.imports(f"aten::{_name}.input")(partial(_import_layers, mode=MODES[_name]))

_KINDS: Final = {"lstm": "nn.LSTM", "gru": "nn.GRU", "rnn_tanh": "nn.RNN", "rnn_relu": "nn.RNN"}


@OPS.exports(STACK)
def export_stack(
    ctx: Export, data: Value, weights: tuple[Value, ...], state: Value | None, cell: Value | None,
    *, mode: str, hidden_size: int, num_layers: int, bidirectional: bool, has_bias: bool,
    projection_size: int,
) -> tuple[Value, ...]:  # fmt: skip
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


def _zeros(ctx: Export, data: Value, rows: int, width: int) -> Value:
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
    ctx: Export, mode: str, data: Value, given: AnyValue, weights: tuple[Value, ...],
    has_bias: bool, num_layers: int, bidirectional: bool,
) -> tuple[Value, ...]:  # fmt: skip
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
    """Return a length of a weight."""
    type_ = x.checked_type
    length = type_.shape[axis] if isinstance(type_, TensorType) else None
    if not isinstance(length, int):
        raise Unsupported(f"needs weights of fixed shape, found {type_!r}")
    return length


def _step(
    ctx: Import,
    mode: Mode,
    x: Expr,
    states: Sequence[Expr],
    weights: tuple[Expr, Expr],
    biases: tuple[Expr | None, Expr | None],
) -> tuple[Expr, ...]:
    """Return the states after one step, which is a layer over one time."""
    given = tuple(each for each in biases if each is not None)
    stack = Stack(
        params=(*weights, *given),
        has_biases=bool(given),
        num_layers=1,
        dropout=0.0,
        train=False,
        bidirectional=False,
    )
    batched = ctx.type(x).rank == 2
    rows = [each if batched else relay.expand_dims(each, axis=0) for each in (x, *states)]
    first, *begin = (relay.expand_dims(each, axis=0) for each in rows)
    _, *final = run_stack(ctx, mode, stack, first, begin)
    return tuple(relay.squeeze(each, axis=[0] if batched else [0, 1]) for each in final)


@OPS.imports("aten::lstm_cell")
def import_lstm_cell(
    ctx: Import, input: Expr, w_ih: Expr, w_hh: Expr, b_ih: Expr | None = None,
    b_hh: Expr | None = None,
    *, hx: tuple[Expr, ...],
) -> tuple[Expr, ...]:  # fmt: skip
    return _step(ctx, MODES["lstm"], input, hx, (w_ih, w_hh), (b_ih, b_hh))


def _make_cell(mode: Mode) -> Callable[..., Expr]:
    def import_cell(
        ctx: Import, input: Expr, hx: Expr, w_ih: Expr, w_hh: Expr, b_ih: Expr | None = None,
        b_hh: Expr | None = None,
    ) -> Expr:  # fmt: skip
        return _step(ctx, mode, input, [hx], (w_ih, w_hh), (b_ih, b_hh))[0]

    return import_cell


for _name in ("gru", "rnn_tanh", "rnn_relu"):
    OPS.imports(f"aten::{_name}_cell")(_make_cell(MODES[_name]))
