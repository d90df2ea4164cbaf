"""What recurrent layers of MIL have in common: functions, gates, states and directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import dataclass, numpy_dtype
from serde.coreml.mlprogram.ops.table import Export, Value
from serde.relay.ir import Call, Expr, OpDef, TensorType, Tuple, TupleWrapper, call, tensor_type
from serde.relay.op.recurrent.gates import PARAMETERS, RecurrentLayer, count_directions

__all__ = [
    "FUNCTIONS", "Activation", "Direction", "Layer", "RecurrentAttributes", "RelayRecurrent",
    "bias_row", "biases", "build_layer", "emit_directions", "is_supported", "row_of",
    "stack_directions",
]  # fmt: skip

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

USUAL = {
    "serde.lstm": ("sigmoid", "tanh", "tanh"),
    "serde.gru": ("sigmoid", "tanh"),
    "serde.rnn": ("tanh",),
}


@dataclass(frozen=True, kw_only=True)
class RecurrentAttributes:
    """Attributes of MIL's layers of one state, which walk one way."""

    direction: Literal["forward", "reverse"] = "forward"
    output_sequence: bool = False
    activation: Activation = "tanh"


class RelayRecurrent(RecurrentLayer):
    """Attributes of Relay's recurrent layers."""

    def function_names(self, op: str) -> list[str]:
        """Return MIL's names of the functions of one direction."""
        usual = USUAL[op]
        return [NAMES[each] for each in (self.activations or usual)[: len(usual)]]


def reorder_gates(x: Expr, order: Sequence[int]) -> Expr:
    """Return the equal parts of the first axis in another order."""
    if tuple(order) == tuple(range(len(order))):
        return x
    parts = relay.split(x, len(order), axis=0)
    return relay.concatenate([parts[place] for place in order], axis=0)


def stack_directions(given: Sequence[Expr | None], order: Sequence[int]) -> Expr | None:
    """Return the weights of the directions with their gates in another order; None if none."""
    known = [each for each in given if each is not None]
    if not known:
        return None
    rows = [
        relay.zeros_like(known[0]) if each is None else reorder_gates(each, order) for each in given
    ]
    return relay.stack(rows, axis=0)


def biases(x: Expr | None, recurrent: Expr | None = None) -> Expr | None:
    """Return the biases of what enters and of the state, one after the other."""
    known = x if x is not None else recurrent
    if known is None:
        return None
    rows = [relay.zeros_like(known) if each is None else each for each in (x, recurrent)]
    return relay.concatenate(rows, axis=-1)


def _to_relay_state(x: Expr, directions: int) -> Expr:
    """Return a state (batch, directions * hidden) as (directions, batch, hidden)."""
    if directions == 1:
        return relay.expand_dims(x, 0)
    return relay.transpose(relay.reshape(x, [0, -4, directions, -1]), [1, 0, 2])


def _to_mil_results(
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


def build_layer(
    op: str,
    operands: Sequence[Expr | None],
    states: Sequence[Expr],
    *further: Expr | None,
    direction: Direction,
    output_sequence: bool,
    **attrs: AnyValue,
) -> list[Expr]:
    """Return the outputs and final states, as MIL has them, of a layer of Relay.

    Args:
        op: The operator.
        operands: The data, both weights and the biases.
        states: The first states as MIL has them.
        further: Operands after the states.
        direction: Where the layer walks.
        output_sequence: Whether all outputs are results, or the last one only.
        attrs: Its other attributes.
    """
    directions = count_directions(direction)
    first = [_to_relay_state(each, directions) for each in states]
    found = call(op, *operands, None, *first, *further, direction=direction, **attrs)
    every, *finals = TupleWrapper(found, 1 + len(states))
    return _to_mil_results(every, finals, directions, direction, output_sequence)


def _functions(node: Call) -> tuple[str, ...] | None:
    """Return MIL's names of the functions of each direction; None where MIL has none for one."""
    attrs = node.attrs
    directions = count_directions(attrs["direction"])
    usual = USUAL[node.op.name] if isinstance(node.op, OpDef) else ()
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


def is_supported(node: Call) -> bool:
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


class Layer:
    """The parts of a layer that is written, in the dtype that MIL computes it in."""

    def __init__(self, ctx: Export, data: Value, attrs: RelayRecurrent) -> None:
        self.ctx = ctx
        self.dtype = ctx.type(data).dtype
        self.hidden = attrs.hidden_size
        self.batch_first = attrs.layout == "NTC"
        self.direction = attrs.direction
        self.directions = count_directions(self.direction)
        half = self.dtype == "float16" and ctx.version < 17
        self.work = "float32" if half else self.dtype
        order = [1, 0, 2] if self.batch_first else None

        def entering(x: Expr) -> Expr:
            x = relay.cast(x, self.work) if half else x
            return x if order is None else relay.transpose(x, order)

        self.data = data if order is None and not half else ctx.spell(entering, data)

    def constant(self, build: Callable[..., Expr], *operands: Value | None) -> Value | None:
        """Return a constant made of weights; None where one is not there.

        Before iOS17 layers compute in float32: from iOS16 on weights of float16 are held so.
        """
        known = [each for each in operands if each is not None]
        if len(known) < len(operands):
            return None
        if self.work == self.dtype or not self.ctx.quantises:
            return self.ctx.spell(lambda *given: relay.cast(build(*given), self.work), *known)
        held = self.ctx.spell(lambda *given: relay.cast(build(*given), self.dtype), *known)
        type_ = TensorType(self.ctx.type(held).shape, self.work)
        return self.ctx.compressed("constexpr_cast", type_, source_val=held, output_dtype="fp32")

    def state(self, x: Value | None, numbers: Sequence[int]) -> Value:
        """Return the first states of some directions as MIL has them: (batch, all of them)."""
        width = len(numbers) * self.hidden
        if x is None:
            count = self.ctx.type(self.data).shape[1]
            if isinstance(count, int):
                return self.ctx.const(allocation.zeros((count, width), numpy_dtype(self.work)))
            zeros = relay.Constant(allocation.zeros((1, width), numpy_dtype(self.work)))
            return self.ctx.spell(lambda d: _zero_rows(d, zeros), self.data)
        axis = 1 if self.batch_first else 0

        def gather(state: Expr) -> Expr:
            rows = [
                relay.squeeze(relay.strided_slice(state, [n], [n + 1], [1], axes=[axis]), [axis])
                for n in numbers
            ]
            found = rows[0] if len(rows) == 1 else relay.concatenate(rows, axis=1)
            return relay.cast(found, self.work) if self.work != self.dtype else found

        return self.ctx.spell(gather, x)

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
    column = relay.take(relay.take(data, _FIRST, axis=0, mode="fast"), _FIRST, axis=1, mode="fast")
    # Nothing is greater than itself: 0 even of what is infinite or no number.
    nothing = relay.cast(relay.greater(column, column), tensor_type(data).dtype)
    return relay.add(relay.expand_dims(nothing, 1), zeros)


_FIRST = relay.const(np.int32(0))


def row_of(number: int, order: Sequence[int]) -> Callable[[Expr], Expr]:
    """Return what takes the weights of one direction, with their gates in another order."""

    def take(x: Expr) -> Expr:
        row = relay.squeeze(relay.strided_slice(x, [number], [number + 1], [1], axes=[0]), [0])
        return reorder_gates(row, order)

    return take


def bias_row(number: int, order: Sequence[int]) -> Callable[[Expr], Expr]:
    """Return what adds both biases of one direction."""

    def take(x: Expr) -> Expr:
        entering, recurrent = relay.split(row_of(number, (0,))(x), 2, axis=0)
        return reorder_gates(relay.add(entering, recurrent), order)

    return take


def emit_directions(
    ctx: Export, op: str, data: Value, weights: tuple[Value, Value, Value | None],
    initial_h: Value | None, order: Sequence[int], functions: dict[str, str], attrs: RelayRecurrent,
) -> list[Value]:  # fmt: skip
    """Write a layer of one state, an operation for each direction."""
    layer = Layer(ctx, data, attrs)
    found = []
    for number in range(layer.directions):
        backwards = layer.direction == "reverse" or number == 1
        found.append(
            ctx.emit_tuple(
                op,
                layer.types([number], 1),
                x=layer.data,
                initial_h=layer.state(initial_h, [number]),
                weight_ih=layer.constant(row_of(number, order), weights[0]),
                weight_hh=layer.constant(row_of(number, order), weights[1]),
                bias=layer.constant(bias_row(number, order), weights[2]),
                direction="reverse" if backwards else "forward",
                output_sequence=True,
                **functions,
            )
        )
    return layer.finish(found)
