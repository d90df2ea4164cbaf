"""Recurrent layers in simpler operators: one step after another, or a scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serde.errors import TypeInferenceError
from serde.relay.ir import Dim, Expr, TensorType, Tuple, TupleGetItem, Var, call, const, tensor_type
from serde.relay.op.control.body import close
from serde.relay.op.recurrent.gates import RecurrentLayer, count_directions

__all__ = [
    "UNROLLED", "StepBuilder", "dense", "dtype_of", "shape_of", "split_bias", "split_columns",
    "take_direction", "unroll",
]  # fmt: skip

StepBuilder = Callable[[int, Expr, tuple[Expr, ...]], tuple[Expr, ...]]
"""As a :data:`~serde.relay.op.recurrent.layer.Step`, of expressions."""

UNROLLED = 8
"""A layer of so many steps at most becomes one after another, a longer one a scan.

A scan is as large as two or three steps. It still is the slower of the two for a few of them,
since what runs graphs runs loops turn by turn, and can neither join operators of different turns
nor plan for their memory; from here on the size of what is unrolled weighs more, which grows
with the length.
"""


def take_direction(data: Expr, index: int) -> Expr:
    """Return what `data` has at `index` of its first axis."""
    return call("take", data, const(np.int32(index)), axis=0, mode="clip")


def split_columns(data: Expr, count: int) -> list[Expr]:
    """Return `count` equal parts of the last axis."""
    if count == 1:
        return [data]
    parts = call("split", data, indices_or_sections=count, axis=-1)
    return [TupleGetItem(parts, index) for index in range(count)]


def split_bias(bias: Expr | None) -> tuple[Expr, Expr] | None:
    """Return the biases of what enters and of the state."""
    if bias is None:
        return None
    entering, recurrent = split_columns(bias, 2)
    return entering, recurrent


def dense(data: Expr, weight: Expr) -> Expr:
    """Return `data` times the transposed `weight`."""
    return call("nn.dense", data, weight, units=tensor_type(weight).shape[0])


def dtype_of(x: Expr) -> str:
    """Return the dtype of a tensor."""
    return tensor_type(x).dtype


def shape_of(x: Expr) -> tuple[Dim, ...]:
    """Return the shape of a tensor."""
    return tensor_type(x).shape


def unroll(
    data: Expr, input_weight: Expr, bias: Expr | None, sequence_lens: Expr | None,
    states: Sequence[tuple[Expr | None, Dim]], step: StepBuilder, recurrent: RecurrentLayer,
) -> Expr:  # fmt: skip
    """Return the tuple of outputs and final states; arguments as of the kernels' ``walk``."""
    if recurrent.layout == "NTC":
        data = call("transpose", data, axes=(1, 0, 2))
        states = [
            (None if x is None else call("transpose", x, axes=(1, 0, 2)), width)
            for x, width in states
        ]
    length = tensor_type(data).shape[0]
    walked = []
    for number in range(count_directions(recurrent.direction)):
        entering = dense(data, take_direction(input_weight, number))
        if bias is not None:
            entering = call("add", entering, take_direction(bias, number))
        initial = tuple(
            _zeros(data, width) if x is None else take_direction(x, number) for x, width in states
        )
        walker = _Walker(
            number, step, recurrent.direction == "reverse" or number == 1, sequence_lens
        )
        if isinstance(length, int) and length <= UNROLLED:
            outputs, *last = walker.steps(entering, initial, length)
        else:
            outputs, *last = walker.scan(entering, initial)
        given = [x is not None for x, _ in states]
        walked.append((outputs, *walker.finish(last, given)))
    every, *final = (
        call("stack", each, axis=1 if index == 0 else 0)
        for index, each in enumerate(zip(*walked, strict=True))
    )
    if recurrent.layout == "NTC":
        every = call("transpose", every, axes=(2, 0, 1, 3))
        final = [call("transpose", x, axes=(1, 0, 2)) for x in final]
    return Tuple([every, *final])


def _zeros(data: Expr, width: Dim) -> Expr:
    """Return zeros for each sequence of `data`, whose second axis counts them."""
    count = tensor_type(data).shape[1]
    if isinstance(width, int) and isinstance(count, int):
        return call("zeros", shape=(count, width), dtype=tensor_type(data).dtype)
    if not isinstance(width, int):
        raise TypeInferenceError(f"a state of {width} elements cannot be decomposed")
    row = call("zeros_like", call("sum", data, axis=(0, 2)))
    return call("repeat", call("expand_dims", row, axis=1), repeats=width, axis=1)


class _Walker:
    """Walks one direction.

    Args:
        number: The direction's number.
        step: What happens at one place.
        backwards: Whether the last place comes first.
        sequence_lens: Length of each sequence, or None.
    """

    def __init__(
        self, number: int, step: StepBuilder, backwards: bool, sequence_lens: Expr | None
    ) -> None:
        self.number = number
        self.step = step
        self.backwards = backwards
        self.lengths = None if sequence_lens is None else call("cast", sequence_lens, dtype="int32")

    def steps(self, entering: Expr, states: tuple[Expr, ...], length: int) -> tuple[Expr, ...]:
        """Return outputs and final states of `length` steps."""
        outputs: list[Expr] = []
        for index in reversed(range(length)) if self.backwards else range(length):
            output, states = self._at(const(np.int32(index)), entering, states)
            outputs.append(output)
        if not outputs:
            return _none(states[0]), *states
        if self.backwards:
            outputs.reverse()
        return call("stack", outputs, axis=0), *states

    def scan(self, entering: Expr, states: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return outputs and final states of a loop over the steps.

        Whether a sequence still goes on depends on the step's number, which is a state then.
        """
        row = Var("row", TensorType(shape_of(entering)[1:], dtype_of(entering)))
        carried = [Var(f"state{index}", x.type) for index, x in enumerate(states)]
        start, place, following = list(states), Var("place", TensorType((1,), "int32")), []
        if self.lengths is not None:
            start.append(self._first(entering))
            following.append(call("add", place, const(np.int32(-1 if self.backwards else 1))))
            lengths = Var("lengths", self.lengths.type)
            output, later = self._step(place, row, tuple(carried), lengths)
            inner = [*carried, place, row, lengths]
        else:
            output, later = self._step(place, row, tuple(carried), None)
            inner = [*carried, row]
        body, captures = close(inner, [*later, *following, output])
        backwards = (True,) if self.backwards else ()
        walked = call(
            "serde.scan",
            tuple(start),
            (entering,),
            captures if self.lengths is None else (self.lengths, *captures),
            body=body,
            reverse=backwards,
            out_reverse=backwards,
        )
        finals = [TupleGetItem(walked, index) for index in range(len(states))]
        return TupleGetItem(walked, len(start)), *finals

    def _first(self, entering: Expr) -> Expr:
        """Return the number of the first step, a vector of one."""
        if not self.backwards:
            return const(np.zeros(1, np.int32))
        length = shape_of(entering)[0]
        if isinstance(length, int):
            return const(np.array([length - 1], np.int32))
        shape = call("shape_of", entering, dtype="int32")
        total = call("strided_slice", shape, begin=(0,), end=(1,), strides=(1,), axes=(0,))
        return call("subtract", total, const(np.ones(1, np.int32)))

    def finish(self, states: Sequence[Expr], given: Sequence[bool]) -> list[Expr]:
        """Return the final states, zeros for an empty sequence, where one was given at first."""
        if self.lengths is None:
            return list(states)
        begun = call("expand_dims", call("less", const(np.int32(0)), self.lengths), axis=1)
        return [
            call("where", begun, state, const(0.0, tensor_type(state).dtype)) if initial else state
            for state, initial in zip(states, given, strict=True)
        ]

    def _at(
        self, place: Expr, entering: Expr, states: tuple[Expr, ...]
    ) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the output at a place and the next states."""
        row = call("take", entering, place, axis=0, mode="clip")
        return self._step(place, row, states, self.lengths)

    def _step(
        self, place: Expr, row: Expr, states: tuple[Expr, ...], lengths: Expr | None
    ) -> tuple[Expr, tuple[Expr, ...]]:
        """Return the output for what enters at a place and the next states."""
        following = self.step(self.number, row, states)
        if lengths is None:
            return following[0], following
        inside = call("expand_dims", call("less", place, lengths), axis=1)
        zero = const(0.0, tensor_type(following[0]).dtype)
        pairs = zip(following, states, strict=True)
        kept = tuple(call("where", inside, new, old) for new, old in pairs)
        return call("where", inside, following[0], zero), kept


def _none(state: Expr) -> Expr:
    """Return no outputs at all, each of which would be like `state`."""
    row = call("expand_dims", state, axis=0)
    return call("strided_slice", row, begin=(0,), end=(0,), strides=(1,), axes=(0,))
