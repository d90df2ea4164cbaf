"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.coreml.builder import Value
from serde.coreml.context import ImportContext as Ctx
from serde.coreml.exporter import ExportContext as Out
from serde.coreml.ops.table import OPS
from serde.relay.expansion.tensors import tensor_type
from serde.relay.expr import Call, Expr, Tuple, TupleWrapper
from serde.relay.op.recurrent.gates import PARAMETERS, count_directions
from serde.relay.registry import OpDef, call
from serde.relay.types import TensorType
from serde.weights import numpy_dtype

Direction = Literal["forward", "reverse", "bidirectional"]
Activation = Literal[
    "hard_sigmoid", "linear", "relu", "scaled_tanh", "sigmoid", "sigmoid_hard", "tanh"
]

FUNCTIONS = {
    "hard_sigmoid": "hard_sigmoid",
    "sigmoid_hard": "hard_sigmoid",
    "linear": "affine",
    "relu": "relu",
    "scaled_tanh": "tanh",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}
"""Relay's function by MIL's name; all have the usual parameters, which make one tanh the other."""

NAMES = {
    "affine": "linear",
    "hard_sigmoid": "hard_sigmoid",
    "relu": "relu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
}
"""MIL's name by Relay's function."""

_LSTM_GATES = (0, 2, 1, 3)
"""Input, output, forget and cell gate where MIL has input, forget, output, cell; its own inverse."""

_GRU_GATES = (2, 0, 1)
"""Update, reset and hidden gate where MIL has reset, hidden, update."""

_GRU_BACK = (1, 2, 0)
"""The inverse of that order."""

_USUAL = {
    "serde.lstm": ("sigmoid", "tanh", "tanh"),
    "serde.gru": ("sigmoid", "tanh"),
    "serde.rnn": ("tanh",),
}


def _ordered(x: Expr, order: Sequence[int]) -> Expr:
    """Return the equal parts of the first axis in another order."""
    if tuple(order) == tuple(range(len(order))):
        return x
    parts = relay.split(x, len(order), axis=0)
    return relay.concatenate([parts[place] for place in order], axis=0)


def _stacked(given: Sequence[Expr | None], order: Sequence[int]) -> Expr | None:
    """Return the weights of the directions with their gates in another order; None if none."""
    known = [each for each in given if each is not None]
    if not known:
        return None
    rows = [relay.zeros_like(known[0]) if each is None else _ordered(each, order) for each in given]
    return relay.stack(rows, axis=0)


def _biases(x: Expr | None, recurrent: Expr | None = None) -> Expr | None:
    """Return the biases of what enters and of the state, one after the other."""
    if x is None and recurrent is None:
        return None
    known = x if x is not None else recurrent
    rows = [relay.zeros_like(known) if each is None else each for each in (x, recurrent)]
    return relay.concatenate(rows, axis=-1)


def _states(x: Expr, directions: int) -> Expr:
    """Return states (batch, directions * hidden) as (directions, batch, hidden)."""
    if directions == 1:
        return relay.expand_dims(x, 0)
    return relay.transpose(relay.reshape(x, [0, -4, directions, -1]), [1, 0, 2])


def _results(
    every: Expr, finals: Sequence[Expr], directions: int, direction: str, output_sequence: bool
) -> list[Expr]:
    """Return the outputs and final states of a layer as MIL has them.

    Steps of a layer that walks backwards come out in the order in which they were walked.
    """
    flat = []
    for final in finals:
        if directions == 1:
            flat.append(relay.squeeze(final, [0]))
        else:
            flat.append(relay.reshape(relay.transpose(final, [1, 0, 2]), [0, -3]))
    if not output_sequence:
        return [relay.expand_dims(flat[0], 0), *flat]
    if directions == 1:
        result = relay.squeeze(every, [1])
    else:
        result = relay.reshape(relay.transpose(every, [0, 2, 1, 3]), [0, 0, -3])
    if direction == "reverse":
        result = relay.reverse(result, axis=0)
    return [result, *flat]


@OPS.imports("lstm", since=(1, 17))
def import_lstm(
    ctx: Ctx,
    x: Expr,
    initial_h: Expr,
    initial_c: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    peephole: Expr | None = None,
    weight_ih_back: Expr | None = None,
    weight_hh_back: Expr | None = None,
    bias_back: Expr | None = None,
    peephole_back: Expr | None = None,
    *,
    direction: Direction = "forward",
    output_sequence: bool = False,
    recurrent_activation: Activation = "sigmoid",
    cell_activation: Activation = "tanh",
    activation: Activation = "tanh",
    clip: float | None = None,
) -> list[Expr]:
    """Gates go input, forget, output, cell; the bound is one of the cell."""
    directions = count_directions(direction)
    hidden = ctx.static_shape(weight_hh)[1]
    pairs = [(weight_ih, weight_ih_back), (weight_hh, weight_hh_back), (bias, bias_back)]
    weights = [_stacked(pair[:directions], _LSTM_GATES) for pair in pairs]
    holes = _stacked((peephole, peephole_back)[:directions], (0, 2, 1))
    functions = tuple(
        FUNCTIONS[each] for each in (recurrent_activation, cell_activation, activation)
    )
    every, *finals = TupleWrapper(
        call(
            "serde.lstm",
            x,
            weights[0],
            weights[1],
            _biases(weights[2]),
            None,
            _states(initial_h, directions),
            _states(initial_c, directions),
            holes,
            None,
            hidden_size=hidden,
            direction=direction,
            activations=functions * directions,
            cell_clip=None if clip is None else (-clip, clip),
        ),
        3,
    )
    return _results(every, finals, directions, direction, output_sequence)


@OPS.imports("gru", since=(1, 17, 18))
def import_gru(
    ctx: Ctx,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    input_bias: Expr | None = None,
    *,
    direction: Literal["forward", "reverse"] = "forward",
    output_sequence: bool = False,
    recurrent_activation: Activation = "sigmoid",
    activation: Activation = "tanh",
    reset_after: bool = False,
) -> list[Expr]:
    """Gates go reset, hidden, update; where the reset comes last, the bias is the state's."""
    hidden = ctx.static_shape(weight_hh)[1]
    entering = _stacked([input_bias], _GRU_GATES)
    recurrent = _stacked([bias], _GRU_GATES)
    every, *finals = TupleWrapper(
        call(
            "serde.gru",
            x,
            _stacked([weight_ih], _GRU_GATES),
            _stacked([weight_hh], _GRU_GATES),
            _biases(entering, recurrent),
            None,
            _states(initial_h, 1),
            hidden_size=hidden,
            direction=direction,
            activations=(FUNCTIONS[recurrent_activation], FUNCTIONS[activation]),
            linear_before_reset=reset_after,
        ),
        2,
    )
    return _results(every, finals, 1, direction, output_sequence)


@OPS.imports("rnn", since=(1, 17))
def import_rnn(
    ctx: Ctx,
    x: Expr,
    initial_h: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias: Expr | None = None,
    *,
    direction: Literal["forward", "reverse"] = "forward",
    output_sequence: bool = False,
    activation: Activation = "tanh",
) -> list[Expr]:
    hidden = ctx.static_shape(weight_hh)[1]
    every, *finals = TupleWrapper(
        call(
            "serde.rnn",
            x,
            relay.expand_dims(weight_ih, 0),
            relay.expand_dims(weight_hh, 0),
            _biases(None if bias is None else relay.expand_dims(bias, 0)),
            None,
            _states(initial_h, 1),
            hidden_size=hidden,
            direction=direction,
            activations=(FUNCTIONS[activation],),
        ),
        2,
    )
    return _results(every, finals, 1, direction, output_sequence)


def _functions(node: Call) -> tuple[str, ...] | None:
    """Return MIL's names of the functions of each direction; None where MIL has none for one."""
    attrs = node.attrs
    directions = count_directions(attrs["direction"])
    usual = _USUAL[node.op.name] if isinstance(node.op, OpDef) else ()
    given = tuple(attrs["activations"]) or usual * directions
    if given != given[: len(usual)] * directions:
        return None
    for values, place in ((attrs["activation_alpha"], 0), (attrs["activation_beta"], 1)):
        for name, value in zip(given, values, strict=False):
            own = PARAMETERS.get(name, ())
            if place < len(own) and own[place] != value:
                return None
    names = [NAMES.get(name) for name in given[: len(usual)]]
    return tuple(name for name in names if name is not None) if all(names) else None


def _says(node: Call) -> bool:
    """Whether MIL has a layer: of whole sequences, with its functions and bounds."""
    attrs = node.attrs
    type_ = node.args[0].type
    bounds = attrs.get("cell_clip")
    bounded = bounds is not None and bounds[0] != -bounds[1]
    lengths = node.args[4]
    missing = isinstance(lengths, Tuple) and not lengths.fields
    projected = len(node.args) > 8 and not (
        isinstance(node.args[8], Tuple) and not node.args[8].fields
    )
    return (
        isinstance(type_, TensorType)
        and type_.dtype in ("float16", "float32")
        and missing
        and not projected
        and not bounded
        and attrs["clip"] is None
        and not attrs.get("input_forget", False)
        and not (attrs.get("linear_before_reset", False))
        and _functions(node) is not None
    )


class _Layer:
    """The parts of a layer that is written, in the dtype that MIL computes it in."""

    def __init__(self, ctx: Out, data: Value, attrs: dict[str, AnyValue]) -> None:
        self.ctx = ctx
        self.dtype = ctx.type(data).dtype
        self.hidden: int = attrs["hidden_size"]
        self.batch_first = attrs["layout"] == "NTC"
        self.direction: Direction = attrs["direction"]
        self.directions = count_directions(self.direction)
        half = self.dtype == "float16" and ctx.version < 17
        self.work = "float32" if half else self.dtype
        order = [1, 0, 2] if self.batch_first else None

        def entering(x: Expr) -> Expr:
            x = relay.cast(x, self.work) if half else x
            return x if order is None else relay.transpose(x, order)

        self.data = data if order is None and not half else ctx.spell(entering, data)

    def constant(self, build: Callable[..., Expr], *operands: Value | None) -> Value | None:
        """Return a constant made of weights; None where one is not there."""
        known = [each for each in operands if each is not None]
        if len(known) < len(operands):
            return None
        return self.ctx.spell(lambda *given: relay.cast(build(*given), self.work), *known)

    def state(self, x: Value | None, numbers: Sequence[int]) -> Value:
        """Return the first states of some directions as MIL has them: (batch, all of them)."""
        width = len(numbers) * self.hidden
        if x is None:
            count = self.ctx.type(self.data).shape[1]
            if isinstance(count, int):
                return self.ctx.const(np.zeros((count, width), numpy_dtype(self.work)))
            zeros = relay.const(np.zeros((1, width), numpy_dtype(self.work)))
            return self.ctx.spell(lambda d: _zero_rows(d, zeros), self.data)
        axis = 1 if self.batch_first else 0

        def gathered(state: Expr) -> Expr:
            rows = [
                relay.squeeze(relay.strided_slice(state, [n], [n + 1], [1], axes=[axis]), [axis])
                for n in numbers
            ]
            found = rows[0] if len(rows) == 1 else relay.concatenate(rows, axis=1)
            return relay.cast(found, self.work) if self.work != self.dtype else found

        return self.ctx.spell(gathered, x)

    def types(self, numbers: Sequence[int], states: int) -> list[TensorType]:
        """Return the types of what MIL's operator gives."""
        length, count, _ = self.ctx.type(self.data).shape
        width = len(numbers) * self.hidden
        state = TensorType((count, width), self.work)
        return [TensorType((length, count, width), self.work), *[state] * states]

    def finish(self, found: Sequence[Sequence[Value]]) -> list[Value]:
        """Return outputs and final states as Relay has them, of one or both directions each."""
        every, *finals = zip(*found, strict=True)
        return [
            self.ctx.spell(self._outputs, *every),
            *(self.ctx.spell(self._final, *each) for each in finals),
        ]

    def _outputs(self, *parts: Expr) -> Expr:
        rows = []
        for number, part in enumerate(parts):
            backwards = self.direction == "reverse" or number == 1
            rows.append(relay.reverse(part, axis=0) if backwards else part)
        if len(rows) == 1 and self.directions == 2:
            rows = list(relay.split(rows[0], 2, axis=2))
        axis = 2 if self.batch_first else 1
        if self.batch_first:
            rows = [relay.transpose(row, [1, 0, 2]) for row in rows]
        result = relay.stack(rows, axis=axis) if len(rows) > 1 else relay.expand_dims(rows[0], axis)
        return relay.cast(result, self.dtype) if self.work != self.dtype else result

    def _final(self, *parts: Expr) -> Expr:
        rows = list(parts)
        if len(rows) == 1 and self.directions == 2:
            rows = list(relay.split(rows[0], 2, axis=1))
        axis = 1 if self.batch_first else 0
        result = relay.stack(rows, axis=axis) if len(rows) > 1 else relay.expand_dims(rows[0], axis)
        return relay.cast(result, self.dtype) if self.work != self.dtype else result


def _zero_rows(data: Expr, zeros: Expr) -> Expr:
    """Return rows of zeros, as many as there are sequences."""
    nothing = relay.const(np.zeros((), numpy_dtype(tensor_type(data).dtype)))
    column = relay.multiply(relay.sum(data, axis=(0, 2)), nothing)
    return relay.add(relay.expand_dims(column, 1), zeros)


def _row(number: int, order: Sequence[int]) -> Callable[[Expr], Expr]:
    """Return what takes the weights of one direction, with their gates in another order."""

    def taken(x: Expr) -> Expr:
        row = relay.squeeze(relay.strided_slice(x, [number], [number + 1], [1], axes=[0]), [0])
        return _ordered(row, order)

    return taken


def _bias_row(number: int, order: Sequence[int]) -> Callable[[Expr], Expr]:
    """Return what adds both biases of one direction."""

    def taken(x: Expr) -> Expr:
        entering, recurrent = relay.split(_row(number, (0,))(x), 2, axis=0)
        return _ordered(relay.add(entering, recurrent), order)

    return taken


@OPS.exports("serde.lstm", when=_says)
def export_lstm(
    ctx: Out,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    initial_c: Value | None = None,
    peephole: Value | None = None,
    projection: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: AnyValue,
    layout: str,
    input_forget: bool,
    cell_clip: tuple[float, float] | None,
) -> list[Value]:
    attrs = {"hidden_size": hidden_size, "direction": direction, "layout": layout}
    layer = _Layer(ctx, data, attrs)
    numbers = range(layer.directions)
    names = [NAMES[each] for each in activations[:3] or _USUAL["serde.lstm"]]
    inputs: dict[str, AnyValue] = {}
    for number, suffix in zip(numbers, ("", "_back"), strict=False):
        inputs |= {
            f"weight_ih{suffix}": layer.constant(_row(number, _LSTM_GATES), input_weight),
            f"weight_hh{suffix}": layer.constant(_row(number, _LSTM_GATES), recurrent_weight),
            f"bias{suffix}": layer.constant(_bias_row(number, _LSTM_GATES), bias),
            f"peephole{suffix}": layer.constant(_row(number, (0, 2, 1)), peephole),
        }
    found = ctx.emit_tuple(
        "lstm",
        layer.types(numbers, 2),
        x=layer.data,
        initial_h=layer.state(initial_h, numbers),
        initial_c=layer.state(initial_c, numbers),
        **inputs,
        direction=direction,
        output_sequence=True,
        recurrent_activation=names[0],
        cell_activation=names[1],
        activation=names[2],
        clip=None if cell_clip is None else ctx.const(cell_clip[1], layer.work),
    )
    return layer.finish([found])


@OPS.exports("serde.gru", when=_says)
def export_gru(
    ctx: Out,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: AnyValue,
    layout: str,
    linear_before_reset: bool,
) -> list[Value]:
    """MIL walks one way; where the reset comes last, its runtime is not as its documents say."""
    names = [NAMES[each] for each in activations[:2] or _USUAL["serde.gru"]]
    functions = {"recurrent_activation": names[0], "activation": names[1]}
    attrs = {"hidden_size": hidden_size, "direction": direction, "layout": layout}
    weights = (input_weight, recurrent_weight, bias)
    return _each_way(ctx, "gru", data, weights, initial_h, _GRU_BACK, functions, attrs)


@OPS.exports("serde.rnn", when=_says)
def export_rnn(
    ctx: Out,
    data: Value,
    input_weight: Value,
    recurrent_weight: Value,
    bias: Value | None = None,
    sequence_lens: Value | None = None,
    initial_h: Value | None = None,
    *,
    hidden_size: int,
    direction: Direction,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: AnyValue,
    layout: str,
) -> list[Value]:
    name = NAMES[(activations or _USUAL["serde.rnn"])[0]]
    functions = {"activation": "sigmoid_hard" if name == "hard_sigmoid" else name}
    attrs = {"hidden_size": hidden_size, "direction": direction, "layout": layout}
    weights = (input_weight, recurrent_weight, bias)
    return _each_way(ctx, "rnn", data, weights, initial_h, (0,), functions, attrs)


def _each_way(
    ctx: Out,
    op: str,
    data: Value,
    weights: tuple[Value, Value, Value | None],
    initial_h: Value | None,
    order: Sequence[int],
    functions: dict[str, str],
    attrs: dict[str, AnyValue],
) -> list[Value]:
    """Write a layer of one state, an operation for each direction."""
    layer = _Layer(ctx, data, attrs)
    found = []
    for number in range(layer.directions):
        backwards = layer.direction == "reverse" or number == 1
        found.append(
            ctx.emit_tuple(
                op,
                layer.types([number], 1),
                x=layer.data,
                initial_h=layer.state(initial_h, [number]),
                weight_ih=layer.constant(_row(number, order), weights[0]),
                weight_hh=layer.constant(_row(number, order), weights[1]),
                bias=layer.constant(_bias_row(number, order), weights[2]),
                direction="reverse" if backwards else "forward",
                output_sequence=True,
                **functions,
            )
        )
    return layer.finish(found)
