"""Modes of recurrent layers, in frameworks that have cuDNN's form of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, Tuple, get
from serde.relay.op.recurrent.gates import count_directions
from serde.walk.expansion.tensors import fixed_shape

__all__ = ["LAYERS", "layer_expansion"]

LAYERS: Final[Mapping[str, tuple[str, ...]]] = {
    "serde.lstm": ("sigmoid", "tanh", "tanh"),
    "serde.gru": ("sigmoid", "tanh"),
    "serde.rnn": ("tanh",),
}
"""Relay's layers with the activations that they have where nothing is said."""

_PLAIN: Final[Mapping[str, AnyValue]] = {
    "activation_alpha": (),
    "activation_beta": (),
    "clip": None,
    "cell_clip": None,
    "input_forget": False,
    "linear_before_reset": True,
}
"""Attributes of a layer as the frameworks have it; on a processor MXNet ignores bounds of cells."""

_MODES: Final = {
    ("serde.lstm", ("sigmoid", "tanh", "tanh")): "lstm",
    ("serde.gru", ("sigmoid", "tanh")): "gru",
    ("serde.rnn", ("tanh",)): "rnn_tanh",
    ("serde.rnn", ("relu",)): "rnn_relu",
}


def _find_mode(name: str, attrs: Mapping[str, AnyValue]) -> str | None:
    """Return what the frameworks call the mode of a layer; None if they have none."""
    if any(attrs.get(key, value) != value for key, value in _PLAIN.items()):
        return None
    usual = LAYERS[name]
    count = count_directions(attrs["direction"])
    given = attrs["activations"] or usual * count
    if given != given[: len(usual)] * count:
        return None
    return _MODES.get((name, given[: len(usual)]))


def layer_expansion(name: str, stack: Callable[..., Sequence[Expr]]) -> Callable[..., Expr]:
    """Return what a recurrent layer of Relay is made of: a stack of one layer.

    What the frameworks' layers lack, lengths of sequences among it, is decomposed.

    Args:
        name: The layer.
        stack: Gets sequences, (time, batch, input), the weights of both matrices, of the biases
            and of a projection, both states and, by name, ``mode``, ``hidden_size``,
            ``num_layers``, ``bidirectional`` and ``projection_size``, 0 without a projection;
            returns outputs, (time, batch, directions * output), and final states.
    """

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
        mode = _find_mode(name, attrs)
        if mode is None or sequence_lens is not None or peephole is not None:
            operands = [data, input_weight, recurrent_weight, bias, sequence_lens, initial_h]
            if name == "serde.lstm":
                operands += [initial_c, peephole, projection]
            build = get(name).decompose
            if build is None:
                raise Unsupported("a layer that the target lacks")
            return build(*operands, **attrs)
        hidden, direction = attrs["hidden_size"], attrs["direction"]
        directions = count_directions(direction)
        batch_first, order = attrs["layout"] == "NTC", (1, 0, 2)
        if batch_first:
            data = relay.transpose(data, order)
        if direction == "reverse":
            data = relay.reverse(data, axis=0)
        states = [
            relay.transpose(each, order) if batch_first and each is not None else each
            for each in (initial_h, initial_c)
        ]
        weights = (input_weight, recurrent_weight, bias, projection)
        output = 0 if projection is None else fixed_shape(projection)[1]
        every, *final = stack(
            data, weights, states, mode=mode, hidden_size=hidden, num_layers=1,
            bidirectional=directions == 2, projection_size=output,
        )  # fmt: skip
        if direction == "reverse":
            every = relay.reverse(every, axis=0)
        parts = relay.reshape(every, (0, 0, directions, output or hidden))
        every = relay.transpose(parts, (0, 2, 1, 3))
        if batch_first:
            every = relay.transpose(every, (2, 0, 1, 3))
            final = [relay.transpose(each, order) for each in final]
        return Tuple([every, *final])

    return expand_layer
