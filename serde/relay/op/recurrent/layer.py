"""What recurrent layers have in common: types, and the walk along the sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Array, Dim, join_dim, require_float, require_same_dtype, widen
from serde.relay.ir.types import TensorType
from serde.relay.op.recurrent.gates import RecurrentLayer, count_directions

__all__ = [
    "Step", "complete", "completion", "layer_types", "relation", "require_shape", "split_bias",
    "walk",
]  # fmt: skip

Types = tuple[TensorType | None, ...]

Step = Callable[[int, Array, tuple[Array, ...]], tuple[Array, ...]]
"""Gets the number of a direction, one row of what enters the gates for each sequence, and the
states; returns the next states, of which the first is the output."""


def require_shape(
    name: str, type_: TensorType | None, shape: Sequence[Dim], like: TensorType
) -> None:
    """Refuse an operand that has another shape, or another dtype than `like`."""
    if type_ is None:
        return
    require_same_dtype(like, type_)
    shown = ", ".join(map(str, shape))
    fault = TypeInferenceError(f"operand {name}: expected shape ({shown}), found {type_!r}")
    if type_.rank != len(shape):
        raise fault
    for expected, found in zip(shape, type_.shape, strict=True):
        try:
            join_dim(expected, found)
        except TypeInferenceError:
            raise fault from None


def layer_types(
    data: TensorType, input_weight: TensorType, recurrent_weight: TensorType,
    bias: TensorType | None, sequence_lens: TensorType | None,
    states: Sequence[tuple[str, TensorType | None, Dim]], gates: int, recurrent: RecurrentLayer,
) -> tuple[TensorType, ...]:  # fmt: skip
    """Return the types of the outputs and of the final states, after checking the operands.

    Args:
        data: The sequences.
        input_weight: Weights of what enters.
        recurrent_weight: Weights of the first state.
        bias: Biases of both, one after the other.
        sequence_lens: Length of each sequence.
        states: Name, initial value and width of each state; the first is the output.
        gates: Number of gates.
        recurrent: The attributes.
    """
    require_float(data)
    hidden_size, layout = recurrent.hidden_size, recurrent.layout
    if data.rank != 3:
        raise TypeInferenceError(f"expected data of rank 3, found {data!r}")
    if hidden_size < 1:
        raise TypeInferenceError(f"hidden_size {hidden_size} is not positive")
    time, batch = (0, 1) if layout == "TNC" else (1, 0)
    length, count, width = data.shape[time], data.shape[batch], data.shape[2]
    directions, output = count_directions(recurrent.direction), states[0][2]
    rows = gates * hidden_size
    require_shape("input_weight", input_weight, (directions, rows, width), data)
    require_shape("recurrent_weight", recurrent_weight, (directions, rows, output), data)
    require_shape("bias", bias, (directions, 2 * rows), data)
    if sequence_lens is not None:
        if not sequence_lens.dtype.startswith(("int", "uint")) or sequence_lens.rank != 1:
            raise TypeInferenceError(
                f"operand sequence_lens: expected a vector of integers, found {sequence_lens!r}"
            )
        count = join_dim(count, sequence_lens.shape[0])
    for name, state, size in states:
        shape = _state_shape(directions, count, size, layout)
        require_shape(name, state, shape, data)
        if state is not None:
            count = join_dim(count, state.shape[1 if layout == "TNC" else 0])
    outputs = (length, directions, count) if layout == "TNC" else (count, length, directions)
    return (
        TensorType((*outputs, output), data.dtype),
        *(
            TensorType(_state_shape(directions, count, size, layout), data.dtype)
            for _, _, size in states
        ),
    )


def split_bias(bias: Array | None) -> tuple[Array, Array] | None:
    """Return the biases of what enters and of the state, in at least float32."""
    if bias is None:
        return None
    entering, recurrent = np.split(widen(bias), 2, axis=1)
    return entering, recurrent


def _state_shape(directions: Dim, count: Dim, size: Dim, layout: str) -> tuple[Dim, ...]:
    return (directions, count, size) if layout == "TNC" else (count, directions, size)


def complete(given: Types, gates: int, hidden_size: int, output: Dim, direction: str) -> Types:
    """Return the types of all operands, those of weights and bias derived from the data."""
    data = given[0]
    if not isinstance(data, TensorType) or data.rank != 3:
        return given
    directions, rows = count_directions(direction), gates * hidden_size
    shapes = ((directions, rows, data.shape[2]), (directions, rows, output), (directions, 2 * rows))
    derived = [TensorType(shape, data.dtype) for shape in shapes]
    known = (data, *derived, *given[4:])
    return tuple(own if own is not None else new for own, new in zip(given, known, strict=True))


def relation(gates: int, defaults: Sequence[str]) -> Callable[..., tuple[TensorType, ...]]:
    """Return the type relation of a layer whose only state is its output.

    Args:
        gates: Number of gates.
        defaults: The functions of one direction.
    """

    def infer(
        data: TensorType, input_weight: TensorType, recurrent_weight: TensorType,
        bias: TensorType | None, sequence_lens: TensorType | None, initial_h: TensorType | None,
        *, recurrent: RecurrentLayer, **_: AnyValue,
    ) -> tuple[TensorType, ...]:  # fmt: skip
        recurrent.gates(defaults)
        states = [("initial_h", initial_h, recurrent.hidden_size)]
        operands = (data, input_weight, recurrent_weight, bias, sequence_lens)
        return layer_types(*operands, states, gates, recurrent)

    return infer


def completion(gates: int) -> Callable[..., Types]:
    """Return what derives the types of the weights and the bias of such a layer."""

    def derive(*given: TensorType | None, hidden_size: int, **attrs: AnyValue) -> Types:
        return complete(given, gates, hidden_size, hidden_size, attrs["direction"])

    return derive


def walk(
    data: Array, input_weight: Array, bias: Array | None, sequence_lens: Array | None,
    states: Sequence[tuple[Array | None, int]], step: Step, recurrent: RecurrentLayer,
) -> tuple[Array, ...]:  # fmt: skip
    """Return the outputs at every place and the final states.

    A sequence that is shorter than the longest keeps its state beyond its end, from
    whichever side it is walked, and its outputs there are zero. Of an empty sequence the final
    states are zero too, as ONNX Runtime has it.

    Args:
        data: The sequences.
        input_weight: Weights of what enters.
        bias: Its biases, of at least float32; None for zeros.
        sequence_lens: Length of each sequence; None if all are full.
        states: Initial value, None for zeros, and width of each state.
        step: What happens at one place, in at least float32.
        recurrent: Which directions are walked, and the order of the axes.
    """
    batch_first = recurrent.layout == "NTC"
    sequences = widen(np.swapaxes(data, 0, 1) if batch_first else data)
    length, count = sequences.shape[:2]
    every: list[Array] = []
    final: list[tuple[Array, ...]] = []
    for number in range(count_directions(recurrent.direction)):
        backwards = recurrent.direction == "reverse" or number == 1
        entering = sequences @ widen(input_weight[number]).T
        if bias is not None:
            entering = entering + bias[number]
        current = tuple(
            np.zeros((count, width), sequences.dtype)
            if given is None
            else widen(given[:, number] if batch_first else given[number])
            for given, width in states
        )
        outputs = np.zeros((length, count, states[0][1]), sequences.dtype)
        for index in reversed(range(length)) if backwards else range(length):
            following = step(number, entering[index], current)
            if sequence_lens is None:
                outputs[index], current = following[0], following
                continue
            inside = (index < sequence_lens)[:, np.newaxis]
            outputs[index] = np.where(inside, following[0], 0)
            pairs = zip(following, current, strict=True)
            current = tuple(np.where(inside, new, old) for new, old in pairs)
        if sequence_lens is not None:
            begun = (sequence_lens > 0)[:, np.newaxis]
            current = tuple(np.where(begun, state, 0) for state in current)
        every.append(outputs)
        final.append(current)
    results = [np.stack(every, axis=1)]
    results += [np.stack(each) for each in zip(*final, strict=True)]
    if batch_first:
        results = [results[0].transpose(2, 0, 1, 3), *(x.swapaxes(0, 1) for x in results[1:])]
    return tuple(result.astype(data.dtype) for result in results)
