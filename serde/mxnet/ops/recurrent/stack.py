"""MXNet's stack of recurrent layers as an operator of the graph, while that is lowered.

The parameters are packed into their vector in Relay, so that those of a file are packed
before the graph is written; for this the graph must hold the stack itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Final

import serde.core.allocation as allocation
import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.mxnet.ops.recurrent.layer import GATES, Mode, import_rnn, joined_parts
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleGetItem
from serde.relay.ir.registry import Array, OpDef, set_type
from serde.walk.expansion.stacks import MergeStacks, is_given

__all__ = ["MERGE_STACKS", "STACK", "stack"]


def _stack_type(
    data: TensorType, parameters: TensorType, state: TensorType | None, cell: TensorType | None,
    *, mode: str, hidden_size: int, num_layers: int, bidirectional: bool,
    projection_size: int | None,
) -> tuple[TensorType, ...]:  # fmt: skip
    if data.rank != 3 or parameters.rank != 1:
        raise TypeInferenceError(f"expected sequences and a vector, found {data!r}, {parameters!r}")
    time, batch, _ = data.shape
    directions, output = 2 if bidirectional else 1, projection_size or hidden_size
    shapes = [(time, batch, directions * output), (directions * num_layers, batch, output)]
    if mode == "lstm":
        shapes.append((directions * num_layers, batch, hidden_size))
    return tuple(TensorType(shape, data.dtype) for shape in shapes)


def _stack(
    data: Array, parameters: Array, state: Array | None, cell: Array | None,
    *, mode: Mode, hidden_size: int, num_layers: int, bidirectional: bool,
    projection_size: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """The outputs of the last layer, and the final states of all layers and directions."""
    from serde.relay.run.interpreter import run
    from serde.walk.import_context import ImportContext

    rows = num_layers * (2 if bidirectional else 1)
    widths = [projection_size or hidden_size, hidden_size][: 2 if mode == "lstm" else 1]
    states = [
        allocation.zeros((rows, data.shape[1], width), data.dtype) if given is None else given
        for given, width in zip((state, cell), widths, strict=False)
    ]
    operands = [Constant(each) for each in (data, parameters, *states)]
    results = import_rnn(
        ImportContext(1), *operands, state_size=hidden_size, num_layers=num_layers, mode=mode,
        bidirectional=bidirectional, state_outputs=True, projection_size=projection_size,
    )  # fmt: skip
    return tuple(run(Function([], Tuple(results)), []))


STACK = OpDef("mxnet.rnn", _stack, _stack_type, ())
"""The operator, which is in no registry."""


def stack(
    data: Expr, parameters: Expr, state: Expr | None, cell: Expr | None, **attrs: AnyValue
) -> tuple[Expr, ...]:
    """Return outputs and final states of a stack of layers.

    Args:
        data: Sequences, (time, batch, input).
        parameters: MXNet's vector of all weights, then all biases.
        state: States before the first step, (layers times directions, batch, output), or None.
        cell: Those of an LSTM's cells, likewise, (layers times directions, batch, hidden).
        attrs: ``mode``, ``hidden_size``, ``num_layers``, ``bidirectional``, ``projection_size``.
    """
    states = [Tuple(()) if given is None else given for given in (state, cell)]
    node = set_type(Call(STACK, [data, parameters, *states], STACK.bind(attrs)))
    count = 3 if attrs["mode"] == "lstm" else 2
    results = [TupleGetItem(node, index) for index in range(count)]
    return tuple(results)


def _fits(_below: Call, above: Call) -> bool:
    """Whether the parameters can be told from the states before they are packed."""
    return is_given(above.args[1], STACK)


def _split_vector(vector: Expr, index: int, end: int) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """Return the pieces of a vector before and behind a place; those that it is joined of."""
    pieces = joined_parts(vector)
    at = 0
    for number, piece in enumerate(pieces):
        if at == index:
            return pieces[:number], pieces[number:]
        type_ = piece.type
        length = type_.shape[0] if isinstance(type_, TensorType) else None
        if not isinstance(length, int):
            break
        at += length
    before = relay.strided_slice(vector, [0], [index], [1], axes=[0])
    return [before], [relay.strided_slice(vector, [index], [end], [1], axes=[0])]


def _merge_chain(chain: Sequence[Call]) -> list[Expr]:
    """Return the results of one stack for several."""
    attrs = dict(chain[0].attrs)
    rows = 2 if attrs["bidirectional"] else 1
    weights: list[Expr] = []
    biases: list[Expr] = []
    for each in chain:
        vector = each.args[1]
        type_ = vector.type
        if not isinstance(type_, TensorType) or not isinstance(type_.shape[0], int):
            raise TypeInferenceError(f"expected a vector of fixed length, found {vector.type!r}")
        tail = each.attrs["num_layers"] * rows * 2 * GATES[attrs["mode"]] * attrs["hidden_size"]
        before, behind = _split_vector(vector, type_.shape[0] - tail, type_.shape[0])
        weights += before
        biases += behind
    states: list[Expr] = []
    for place in (2, 3):
        given = [each.args[place] for each in chain]
        absent = isinstance(given[0], Tuple)
        states.append(given[0] if absent else relay.concatenate(given, axis=0))
    attrs["num_layers"] = sum(each.attrs["num_layers"] for each in chain)
    vector = relay.concatenate([*weights, *biases], axis=0)
    result = set_type(
        Call(STACK, [chain[0].args[0], vector, *states], STACK.bind(attrs), span=chain[-1].span)
    )
    return [TupleGetItem(result, index) for index in range(3 if attrs["mode"] == "lstm" else 2)]


MERGE_STACKS: Final = MergeStacks(STACK, _fits, _merge_chain)
"""The pass that merges stacks of one layer into deeper ones."""
