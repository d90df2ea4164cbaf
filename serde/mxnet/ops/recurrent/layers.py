"""Recurrent layers: MXNet has a whole stack of them, and their weights in one vector.

The vector holds the weights of every layer and direction, of what enters and then of the
state (and then of the projection); after all weights the biases in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any as AnyValue
from typing import TypeGuard

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.mxnet.builder import Value
from serde.mxnet.export_context import ExportContext
from serde.mxnet.ops.layout import fixed_shape, tensor_type
from serde.mxnet.ops.recurrent.stack import STACK, Mode, joined_parts, stack
from serde.mxnet.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, Tuple, TupleGetItem
from serde.relay.ir.registry import call, get
from serde.relay.op.recurrent.gates import count_directions
from serde.walk.import_context import ImportContext

_ORDER = {"rnn_relu": (0,), "rnn_tanh": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""Where MXNet has the gates that Relay's operators list: input, forget, cell and output of an
LSTM; reset, update and hidden of a GRU."""

_OPERATOR = {
    "rnn_relu": "serde.rnn",
    "rnn_tanh": "serde.rnn",
    "lstm": "serde.lstm",
    "gru": "serde.gru",
}


@OPS.imports("_rnn_param_concat")
def import_rnn_param_concat(
    ctx: ImportContext, *data: Expr, num_args: int = 0, dim: int = 1
) -> Expr:
    return relay.concatenate(data, axis=dim)


class _Vector:
    """Cuts pieces off a vector of parameters.

    A piece that was joined into the vector as it is, which is how Gluon makes the vector, is
    taken from there, so that a weight depends on nothing but itself.
    """

    def __init__(self, ctx: ImportContext, data: Expr) -> None:
        self._ctx = ctx
        self._data = data
        self._length = ctx.static_shape(data)[0]
        self._at = 0
        self._joined: dict[int, Expr] = {}
        begin = 0
        for part in joined_parts(data):
            self._joined[begin] = part
            begin += ctx.static_shape(part)[0]

    def take(self, *shape: int) -> Expr:
        """Return the next piece in a shape.

        Raises:
            Unsupported: The vector is at its end.
        """
        size = math.prod(shape)
        begin, self._at = self._at, self._at + size
        if self._at > self._length:
            raise Unsupported(f"{self._length} parameters are less than the layers have")
        piece = self._joined.get(begin)
        if piece is None or self._ctx.static_shape(piece) != (size,):
            piece = relay.strided_slice(self._data, [begin], [self._at], [1])
        elif _is_reshape(piece) and self._ctx.type(piece.args[0]).shape == shape:
            return piece.args[0]
        return relay.reshape(piece, shape)

    def finish(self) -> None:
        """Refuse a vector that has more.

        Raises:
            Unsupported: It has.
        """
        if self._at != self._length:
            raise Unsupported(f"{self._length} parameters where the layers have {self._at}")


def _is_reshape(node: Expr) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op is get("reshape")


@OPS.imports("RNN", ignored=("p",))
def import_rnn(
    ctx: ImportContext,
    data: Expr,
    parameters: Expr,
    *states: Expr,
    state_size: int,
    num_layers: int,
    mode: Mode,
    bidirectional: bool = False,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
) -> tuple[Expr, ...]:
    """Outputs of the directions are joined; states of layers and directions share an axis."""
    if projection_size is not None and mode != "lstm":
        raise Unsupported(f"projection_size={projection_size} of mode {mode}")
    begin, lengths = _states(ctx, states, mode, use_sequence_length)
    attrs = {
        **_functions(mode, bidirectional),
        "hidden_size": state_size,
        "direction": "bidirectional" if bidirectional else "forward",
    }
    bounds = _bounds(mode, lstm_state_clip_min, lstm_state_clip_max, lstm_state_clip_nan)
    if bounds is not None:
        attrs["cell_clip"] = bounds
    directions, output = 2 if bidirectional else 1, projection_size or state_size
    pieces = _Vector(ctx, parameters)
    width = ctx.static_lengths(data, (2,))[0]
    widths = [width, *[directions * output] * (num_layers - 1)]
    order, sizes = _ORDER[mode], (state_size, output, projection_size)
    weights = [_weights(pieces, each, sizes, directions, order) for each in widths]
    biases = [_biases(pieces, state_size, directions, order) for _ in widths]
    pieces.finish()
    finals: list[list[Expr]] = []
    for level, (matrices, bias) in enumerate(zip(weights, biases, strict=True)):
        first = level * directions
        initial = [_rows(state, first, first + directions) for state in begin]
        operands = [data, *matrices[:2], bias, lengths, *initial]
        if mode == "lstm":
            operands += [None, *matrices[2:]]
        layer = call(_OPERATOR[mode], *operands, **attrs)
        results = [TupleGetItem(layer, index) for index in range(3 if mode == "lstm" else 2)]
        turned = relay.transpose(results[0], (0, 2, 1, 3))
        data = relay.reshape(turned, (0, 0, -3))
        finals.append(list(results[1:]))
    if not state_outputs:
        return (data,)
    joined = (relay.concatenate(each, axis=0) for each in zip(*finals, strict=True))
    return (data, *joined)


def _functions(mode: Mode, bidirectional: bool) -> dict[str, AnyValue]:
    if mode == "rnn_relu":
        return {"activations": ("relu",) * (2 if bidirectional else 1)}
    return {"linear_before_reset": True} if mode == "gru" else {}


def _bounds(
    mode: Mode, low: float | None, high: float | None, stops_nan: bool
) -> tuple[float, float] | None:
    """Return the bounds of the cell, which come both or not at all."""
    if low is None and high is None:
        return None
    if mode != "lstm" or low is None or high is None:
        raise Unsupported(f"lstm_state_clip from {low} to {high} of mode {mode}")
    if stops_nan:
        raise Unsupported("lstm_state_clip_nan=True has no counterpart")
    return low, high


def _states(
    ctx: ImportContext, given: Sequence[Expr], mode: Mode, use_sequence_length: bool
) -> tuple[list[Expr | None], Expr | None]:
    """Return the initial states and the lengths, which are the last input.

    A state whose batch is of length 0 is zeros whose shape MXNet finds from the data.
    """
    count = 2 if mode == "lstm" else 1
    if len(given) != count + use_sequence_length:
        raise Unsupported(f"expected {count + use_sequence_length} states, found {len(given)}")
    begin = [None if ctx.type(state).shape[1] == 0 else state for state in given[:count]]
    if not use_sequence_length:
        return begin, None
    return begin, relay.cast(given[-1], "int32")


def _rows(state: Expr | None, begin: int, end: int) -> Expr | None:
    if state is None:
        return None
    return relay.strided_slice(state, [begin], [end], [1], axes=[0])


def _in_order(parts: Expr, order: Sequence[int], axis: int = 0) -> Expr:
    """Return the gates along an axis as Relay's operators list them."""
    if len(order) == 1:
        return parts
    gates = list(relay.split(parts, len(order), axis=axis))
    return relay.concatenate([gates[index] for index in order], axis=axis)


def _weights(
    pieces: _Vector,
    width: int,
    sizes: tuple[int, int, int | None],
    directions: int,
    order: Sequence[int],
) -> list[Expr]:
    """Return the weights of what enters, of the state, and of the projection if there is one."""
    hidden, output, projection = sizes
    rows = len(order) * hidden
    matrices: list[list[Expr]] = []
    for _ in range(directions):
        own = [pieces.take(rows, length) for length in (width, output)]
        own = [_in_order(matrix, order) for matrix in own]
        if projection is not None:
            own.append(pieces.take(projection, hidden))
        matrices.append(own)
    return [relay.stack(each, axis=0) for each in zip(*matrices, strict=True)]


def _biases(pieces: _Vector, hidden: int, directions: int, order: Sequence[int]) -> Expr:
    rows = []
    for _ in range(directions):
        own = [_in_order(pieces.take(len(order) * hidden), order) for _ in range(2)]
        rows.append(relay.concatenate(own, axis=0))
    return relay.stack(rows, axis=0)


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
        return ctx.const(np.zeros((rows, batch, width), type_.dtype))
    if ctx.np_shape:
        raise Unsupported("states of zero for a batch of open length, with scalars in the graph")
    return ctx.emit("_zeros", shape=(rows, 0, width), dtype=np.dtype(type_.dtype))


_PLAIN: dict[str, AnyValue] = {
    "activation_alpha": (),
    "activation_beta": (),
    "clip": None,
    "cell_clip": None,
    "input_forget": False,
    "linear_before_reset": True,
}
"""Attributes of a layer as MXNet has it; on a processor it ignores bounds of the cell."""

_FUNCTIONS = {
    ("serde.lstm", ("sigmoid", "tanh", "tanh")): "lstm",
    ("serde.gru", ("sigmoid", "tanh")): "gru",
    ("serde.rnn", ("tanh",)): "rnn_tanh",
    ("serde.rnn", ("relu",)): "rnn_relu",
}

_USUAL = {
    "serde.lstm": ("sigmoid", "tanh", "tanh"),
    "serde.gru": ("sigmoid", "tanh"),
    "serde.rnn": ("tanh",),
}


def _mode(name: str, attrs: AnyValue) -> str | None:
    """Return MXNet's mode for a layer; None if it has none."""
    if any(attrs.get(key, value) != value for key, value in _PLAIN.items()):
        return None
    usual = _USUAL[name]
    given = attrs["activations"] or usual * count_directions(attrs["direction"])
    if given != given[: len(usual)] * count_directions(attrs["direction"]):
        return None
    return _FUNCTIONS.get((name, given[: len(usual)]))


def _layer_expansion(name: str) -> Callable[..., Expr]:
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
        """MXNet ignores lengths on a processor; what its operator lacks is spelled out."""
        mode = _mode(name, attrs)
        if mode is None or sequence_lens is not None or peephole is not None:
            operands = [data, input_weight, recurrent_weight, bias, sequence_lens, initial_h]
            if name == "serde.lstm":
                operands += [initial_c, peephole, projection]
            spelled = get(name).decompose
            if spelled is None:
                raise Unsupported("a layer that MXNet lacks")
            return spelled(*operands, **attrs)
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
        vector = _packed(mode, directions, input_weight, recurrent_weight, bias, projection)
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


for _name in _USUAL:
    OPS.expands(_name)(_layer_expansion(_name))


def _packed(
    mode: str,
    directions: int,
    input_weight: Expr,
    recurrent_weight: Expr,
    bias: Expr | None,
    projection: Expr | None,
) -> Expr:
    """Return MXNet's vector of the parameters of one layer."""
    order = sorted(range(len(_ORDER[mode])), key=_ORDER[mode].__getitem__)
    gates, hidden = len(order), fixed_shape(input_weight)[1] // len(order)
    pieces = []
    for number in range(directions):
        for matrices in (input_weight, recurrent_weight):
            own = relay.strided_slice(matrices, [number], [number + 1], [1], axes=[0])
            pieces.append(relay.reshape(_in_order(own, order, 1), (-1,)))
        if projection is not None:
            own = relay.strided_slice(projection, [number], [number + 1], [1], axes=[0])
            pieces.append(relay.reshape(own, (-1,)))
    if bias is None:
        zeros = np.zeros(directions * 2 * gates * hidden, tensor_type(input_weight).dtype)
        return relay.concatenate([*pieces, relay.Constant(zeros)], axis=0)
    rows = _in_order(relay.reshape(bias, (directions * 2, gates * hidden)), order, 1)
    for number in range(directions * 2):
        own = relay.strided_slice(rows, [number], [number + 1], [1], axes=[0])
        pieces.append(relay.reshape(own, (-1,)))
    return relay.concatenate(pieces, axis=0)
