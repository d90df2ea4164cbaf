"""Recurrent layers of NeuralNetworks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.mil_layers import KERNELS
from support.nn_table import Array, layer, weights

GATES = ("input", "forget", "output", "block")


def function_name(p: Any) -> str:
    names = {"sigmoidHard": "hard_sigmoid"}
    kind = p.WhichOneof("NonlinearityType")
    return names.get(kind, kind)


def gate_weights(params: Any, message: Any, entering: int, size: int) -> dict[str, Any]:
    """Return the weights of one direction as MIL's kernel takes them."""

    def joined(what: str, shape: tuple[int, ...]) -> Array:
        names = [f"{g}{'Input' if g == 'block' else 'Gate'}{what}" for g in GATES]
        return np.concatenate([weights(getattr(message, name), shape) for name in names])

    found: dict[str, Any] = {
        "weight_ih": joined("WeightMatrix", (size, entering)),
        "weight_hh": joined("RecursionMatrix", (size, size)),
    }
    if params.hasBiasVectors:
        found["bias"] = joined("BiasVector", (size,))
    if params.hasPeepholeVectors:
        names = [f"{g}GatePeepholeVector" for g in GATES[:3]]
        found["peephole"] = np.concatenate([weights(getattr(message, n), (size,)) for n in names])
    return found


def five(x: Array, axis: int | None = None) -> Array:
    return x[..., None, None] if axis is None else x[None, ..., None, None]


@layer("uniDirectionalLSTM")
def uni_lstm(xs: Sequence[Array], p: Any) -> list[Array]:
    assert not p.reverseInput
    own = gate_weights(p.params, p.weightParams, p.inputVectorSize, p.outputVectorSize)
    kinds = [function_name(each) for each in p.activations]
    names = ("recurrent_activation", "cell_activation", "activation")
    found = KERNELS["lstm"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], xs[2][0, ..., 0, 0], **own,
        **dict(zip(names, kinds, strict=True)), output_sequence=True,
        clip=p.params.cellClipThreshold,
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0), five(found[2], 0)]


@layer("biDirectionalLSTM")
def bi_lstm(xs: Sequence[Array], p: Any) -> list[Array]:
    sizes = p.inputVectorSize, p.outputVectorSize
    one, two = (gate_weights(p.params, each, *sizes) for each in p.weightParams)
    kinds = [function_name(each) for each in p.activationsForwardLSTM]
    names = ("recurrent_activation", "cell_activation", "activation")
    states = [np.concatenate([xs[i][0, ..., 0, 0], xs[i + 2][0, ..., 0, 0]], 1) for i in (1, 2)]
    found = KERNELS["lstm"](
        xs[0][..., 0, 0], *states, **one, **{f"{name}_back": w for name, w in two.items()},
        **dict(zip(names, kinds, strict=True)), output_sequence=True, direction="bidirectional",
        clip=p.params.cellClipThreshold,
    )  # fmt: skip
    (h, h_back), (c, c_back) = (np.split(each, 2, 1) for each in found[1:])
    return [five(found[0]), *(five(each, 0) for each in (h, c, h_back, c_back))]


@layer("gru")
def gru(xs: Sequence[Array], p: Any) -> list[Array]:
    size, entering = p.outputVectorSize, p.inputVectorSize

    def joined(what: str, shape: tuple[int, ...]) -> Array:
        names = [f"{gate}Gate{what}" for gate in ("reset", "output", "update")]
        return np.concatenate([weights(getattr(p, name), shape) for name in names])

    found = KERNELS["gru"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], joined("WeightMatrix", (size, entering)),
        joined("RecursionMatrix", (size, size)),
        joined("BiasVector", (size,)) if p.hasBiasVectors else None, output_sequence=True,
        recurrent_activation=function_name(p.activations[0]),
        activation=function_name(p.activations[1]),
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0)]


@layer("simpleRecurrent")
def simple_recurrent(xs: Sequence[Array], p: Any) -> list[Array]:
    size, entering = p.outputVectorSize, p.inputVectorSize
    found = KERNELS["rnn"](
        xs[0][..., 0, 0], xs[1][0, ..., 0, 0], weights(p.weightMatrix, (size, entering)),
        weights(p.recursionMatrix, (size, size)),
        weights(p.biasVector, (size,)) if p.hasBiasVector else None, output_sequence=True,
        activation=function_name(p.activation),
    )  # fmt: skip
    return [five(found[0]), five(found[1], 0)]
