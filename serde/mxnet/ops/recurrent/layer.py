"""Recurrent layers: MXNet has a whole stack of them, and their weights in one vector.

The vector holds the weights of every layer and direction, of what enters and then of the
state (and then of the projection); after all weights the biases in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any as AnyValue, Literal, TypeGuard

import serde.relay as relay
from serde.core.allocation import iterations
from serde.errors import Unsupported
from serde.mxnet.ops.table import OPS
from serde.relay.ir import Call, Expr, Tuple, TupleGetItem, call, get
from serde.walk.import_context import ImportContext

__all__ = ["GATES", "ORDER", "Mode", "import_rnn", "in_order", "joined_parts"]

Mode = Literal["rnn_relu", "rnn_tanh", "lstm", "gru"]

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
"""How many gates a mode has."""

ORDER = {"rnn_relu": (0,), "rnn_tanh": (0,), "lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
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


def joined_parts(vector: Expr) -> Sequence[Expr]:
    """Return what a vector is joined from; of another vector, nothing."""
    if not isinstance(vector, Call) or vector.op is not get("concatenate"):
        return ()
    joined = vector.args[0]
    return joined.fields if isinstance(joined, Tuple) else ()


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
        """Return the next piece in a shape."""
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
        """Refuse a vector that has more."""
        if self._at != self._length:
            raise Unsupported(f"{self._length} parameters where the layers have {self._at}")


def _is_reshape(node: Expr) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.op is get("reshape")


@OPS.imports("RNN", ignored=("p",))
def import_rnn(
    ctx: ImportContext, data: Expr, parameters: Expr, *states: Expr, state_size: int,
    num_layers: int, mode: Mode, bidirectional: bool = False, state_outputs: bool = False,
    projection_size: int | None = None, lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None, lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
) -> tuple[Expr, ...]:  # fmt: skip
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
    ctx.ranked(data, 3)
    width = ctx.static_lengths(data, (2,))[0]
    if state_size < 1:
        raise Unsupported(f"state_size={state_size}")
    iterations(num_layers, f"num_layers={num_layers}")
    widths = [width, *[directions * output] * (num_layers - 1)]
    order, sizes = ORDER[mode], (state_size, output, projection_size)
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
        transposed = relay.transpose(results[0], (0, 2, 1, 3))
        data = relay.reshape(transposed, (0, 0, -3))
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
    begin = [None if ctx.ranked(state, 3).shape[1] == 0 else state for state in given[:count]]
    if not use_sequence_length:
        return begin, None
    return begin, relay.cast(given[-1], "int32")


def _rows(state: Expr | None, begin: int, end: int) -> Expr | None:
    if state is None:
        return None
    return relay.strided_slice(state, [begin], [end], [1], axes=[0])


def in_order(parts: Expr, order: Sequence[int], axis: int = 0) -> Expr:
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
        own = [in_order(matrix, order) for matrix in own]
        if projection is not None:
            own.append(pieces.take(projection, hidden))
        matrices.append(own)
    return [relay.stack(each, axis=0) for each in zip(*matrices, strict=True)]


def _biases(pieces: _Vector, hidden: int, directions: int, order: Sequence[int]) -> Expr:
    rows = []
    for _ in range(directions):
        own = [in_order(pieces.take(len(order) * hidden), order) for _ in range(2)]
        rows.append(relay.concatenate(own, axis=0))
    return relay.stack(rows, axis=0)
