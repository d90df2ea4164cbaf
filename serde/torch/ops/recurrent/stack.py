"""PyTorch's stack of recurrent layers as an operator of the graph, while that is lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.errors import TypeInferenceError
from serde.relay.ir import Call, Constant, Expr, Function, TensorType, Tuple, TupleGetItem, children
from serde.relay.ir.registry import Array, OpDef, call, infer_call
from serde.walk.expansion.stacks import MergeStacks

__all__ = ["MERGE_STACKS", "ORDER", "STACK", "gates_in_order", "stack"]

ORDER: Final = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}
"""Which of the gates that Relay lists PyTorch has first, second and so on.

Relay has input, output, forget and cell of an LSTM, PyTorch input, forget, cell and output; of
a GRU update, reset and hidden, PyTorch reset, update and hidden.
"""


def _stack_type(
    data: TensorType, weights: Sequence[TensorType], state: TensorType | None,
    cell: TensorType | None,
    *, mode: str, hidden_size: int, num_layers: int, bidirectional: bool, has_bias: bool,
    projection_size: int,
) -> tuple[TensorType, ...]:  # fmt: skip
    if data.rank != 3:
        raise TypeInferenceError(f"expected sequences, found {data!r}")
    time, batch, _ = data.shape
    directions, output = 2 if bidirectional else 1, projection_size or hidden_size
    shapes = [(time, batch, directions * output), (directions * num_layers, batch, output)]
    if mode == "lstm":
        shapes.append((directions * num_layers, batch, hidden_size))
    return tuple(TensorType(shape, data.dtype) for shape in shapes)


def _stack(
    data: Array, weights: tuple[Array, ...], state: Array | None, cell: Array | None,
    *, mode: str, hidden_size: int, num_layers: int, bidirectional: bool, has_bias: bool,
    projection_size: int,
) -> tuple[Array, ...]:  # fmt: skip
    """The outputs of the last layer, and the final states of all layers and directions.

    Args:
        data: Sequences, (time, batch, input).
        weights: Of each layer and direction ``weight_ih``, ``weight_hh``, ``bias_ih`` and
            ``bias_hh`` if there are biases, and ``weight_hr`` if there are projections.
        state: States before the first step, (layers times directions, batch, output).
        cell: Those of an LSTM's cells, likewise, (layers times directions, batch, hidden).
        mode: ``lstm``, ``gru``, ``rnn_tanh`` or ``rnn_relu``.
        hidden_size: Elements of a state.
        num_layers: How many layers there are.
        bidirectional: Whether each goes along the sequence and against it.
        has_bias: Whether there are biases.
        projection_size: Elements of an LSTM's output; 0 where they are its hidden elements.
    """
    from serde.relay.run.interpreter import run

    directions = 2 if bidirectional else 1
    each = len(weights) // (num_layers * directions)
    back = np.argsort(ORDER[mode])
    attrs: dict[str, AnyValue] = {
        "hidden_size": hidden_size,
        "direction": "bidirectional" if bidirectional else "forward",
        **({"linear_before_reset": True} if mode == "gru" else {}),
        **({"activations": ("relu",) * directions} if mode == "rnn_relu" else {}),
    }
    x: Expr = Constant(data)
    finals: list[list[Expr]] = []
    for level in range(num_layers):
        begin = level * directions
        groups = [weights[each * (begin + i) : each * (begin + i + 1)] for i in range(directions)]

        def joined(place: int, groups: Sequence[Sequence[Array]] = groups) -> Array:
            gates = [np.split(group[place], len(back)) for group in groups]
            return np.stack([np.concatenate([own[i] for i in back]) for own in gates])

        bias = np.concatenate([joined(2), joined(3)], axis=1) if has_bias else None
        operands: list[AnyValue] = [x, joined(0), joined(1), bias, None]
        for given in (state, cell) if mode == "lstm" else (state,):
            operands.append(None if given is None else given[begin : begin + directions])
        if mode == "lstm":
            operands.append(None)
            operands.append(np.stack([g[-1] for g in groups]) if projection_size else None)
        made = [Constant(v) if isinstance(v, np.ndarray) else v for v in operands]
        layer = call(f"serde.{mode.partition('_')[0]}", *made, **attrs)
        results = [TupleGetItem(layer, place) for place in range(3 if mode == "lstm" else 2)]
        x = relay.reshape(relay.transpose(results[0], (0, 2, 1, 3)), (0, 0, -3))
        finals.append(list(results[1:]))
    whole = [x, *(relay.concatenate(group, axis=0) for group in zip(*finals, strict=True))]
    return tuple(run(Function([], Tuple(whole)), []))


STACK: Final = OpDef("torch.rnn", _stack, _stack_type, ())
"""The operator, which is in no registry."""


def stack(
    data: Expr, weights: Sequence[Expr], state: Expr | None, cell: Expr | None, **attrs: AnyValue
) -> list[Expr]:
    """Return outputs and final states of a stack of layers; see the operator."""
    states = [Tuple(()) if given is None else given for given in (state, cell)]
    node = Call(STACK, [data, Tuple(list(weights)), *states], STACK.bind(attrs))
    return _results(node)


def _results(node: Call) -> list[Expr]:
    node.type = infer_call(node)
    count = 3 if node.attrs["mode"] == "lstm" else 2
    return [TupleGetItem(node, index) for index in range(count)]


def gates_in_order(parts: Expr, mode: str) -> Expr:
    """Return the gates along the first axis as PyTorch lists them."""
    order = ORDER[mode]
    if len(order) == 1:
        return parts
    gates = list(relay.split(parts, len(order), axis=0))
    return relay.concatenate([gates[index] for index in order], axis=0)


def _fits(below: Call, above: Call) -> bool:
    """Whether both are of one node of the source: only these may drop out in between alike."""
    names = [each.span.source_name if each.span is not None else "" for each in (below, above)]
    return names[0] == names[1] and below.attrs["has_bias"] == above.attrs["has_bias"]


def _merge_chain(chain: Sequence[Call]) -> list[Expr]:
    """Return the results of one stack for several."""
    weights = [weight for each in chain for weight in children(each.args[1])]
    states: list[Expr] = []
    for place in (2, 3):
        given = [each.args[place] for each in chain]
        absent = isinstance(given[0], Tuple)
        states.append(given[0] if absent else relay.concatenate(given, axis=0))
    attrs: Mapping[str, AnyValue] = {
        **chain[0].attrs,
        "num_layers": sum(each.attrs["num_layers"] for each in chain),
    }
    operands = [chain[0].args[0], Tuple(weights), *states]
    return _results(Call(STACK, operands, STACK.bind(attrs), span=chain[-1].span))


MERGE_STACKS: Final = MergeStacks(STACK, _fits, _merge_chain)
"""The pass that merges stacks of one layer into deeper ones."""
