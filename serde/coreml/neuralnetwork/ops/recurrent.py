"""Recurrent layers, whose data are (sequence, batch, channel, 1, 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.ops.recurrent.layer import RecurrentAttributes
from serde.coreml.neuralnetwork.layers import Parameter, value_weight
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, Var
from serde.relay.run.computed import ComputedWeight

CLIP = 50.0
"""Bound on the magnitude of what activations are applied to."""

NAMES = {
    "linear": "affine",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "ReLU": "relu",
    "scaledTanh": "scaled_tanh",
    "sigmoidHard": "hard_sigmoid",
}
"""Functions of gates: Relay's."""

PARAMETERS = {"linear": (1.0, 0.0), "scaledTanh": (1.7159, 2 / 3), "sigmoidHard": (0.2, 0.5)}
"""Alpha and beta where none are written; of the last two functions there are no others."""

GATES = ("input", "output", "forget", "block")
"""Gates in Relay's order."""


def _functions(parts: Sequence[MessageView], count: int) -> dict[str, AnyValue]:
    if len(parts) != count:
        raise Unsupported(f"expected {count} functions, found {len(parts)}")
    kinds = [part.kind() for part in parts]
    unknown = [kind for kind in kinds if kind not in NAMES]
    if unknown:
        raise Unsupported(f"function {unknown[0] or 'unknown'} in a recurrent layer")
    values = [_parameters(part, kind) for part, kind in zip(parts, kinds, strict=True)]
    return {
        "activations": tuple(NAMES[kind] for kind in kinds),
        "activation_alpha": tuple(alpha for alpha, _ in values),
        "activation_beta": tuple(beta for _, beta in values),
    }


def _parameters(part: MessageView, kind: str) -> tuple[float, float]:
    known = PARAMETERS.get(kind, (0.0, 0.0))
    fields = part.submessage(kind).fields()
    if not fields or kind not in PARAMETERS:
        return known
    found = float(fields.get("alpha", 0)), float(fields.get("beta", 0))
    if kind != "linear" and any(abs(a - b) > 1e-2 for a, b in zip(found, known, strict=True)):
        raise Unsupported(f"{kind} with alpha={found[0]}, beta={found[1]} in a recurrent layer")
    return found


def _concatenate_gates(parts: Sequence[Expr]) -> Expr:
    """Return the parameters of gates one after the other, for one direction."""
    return relay.expand_dims(relay.concatenate(list(parts), axis=0), axis=0)


def _drop_spatial(x: Expr) -> Expr:
    return relay.squeeze(x, axis=[3, 4])


def _add_spatial(x: Expr) -> Expr:
    """Return (sequence, batch, channel) with height and width."""
    return relay.expand_dims(x, axis=3, num_newaxis=2)


def _outputs(found: Expr, last: Expr, sequence: bool) -> Expr:
    """Return the results of one direction at every step, or after the last one."""
    return _add_spatial(relay.squeeze(found, axis=[1]) if sequence else last)


@LAYERS.imports("simpleRecurrent")
def import_simple_recurrent(
    ctx: Import, x: Expr, h: Expr | None = None,
    *, input_vector_size: int = 0, output_vector_size: int = 0,
    activation: MessageView | None = None, sequence_output: bool = False,
    has_bias_vector: bool = False, weight_matrix: MessageView | None = None,
    recursion_matrix: MessageView | None = None, bias_vector: MessageView | None = None,
    reverse_input: bool = False,
) -> list[Expr]:  # fmt: skip
    """The state may be (batch, channel, 1, 1, 1), as coremltools writes it."""
    size = output_vector_size
    bias = None
    if has_bias_vector:
        none = relay.const(allocation.zeros(size, np.float32))
        bias = _concatenate_gates([ctx.weight(bias_vector, (size,)), none])
    found = relay.serde.rnn(
        _drop_spatial(x),
        _concatenate_gates([ctx.weight(weight_matrix, (size, input_vector_size))]),
        _concatenate_gates([ctx.weight(recursion_matrix, (size, size))]),
        bias,
        None,
        None if h is None else relay.reshape(h, (1, -1, size)),
        hidden_size=size,
        direction="reverse" if reverse_input else "forward",
        clip=CLIP,
        **_functions([] if activation is None else [activation], 1),
    )
    return [_outputs(found[0], found[1], sequence_output), _add_spatial(found[1])]


@LAYERS.imports("gru")
def import_gru(
    ctx: Import, x: Expr, h: Expr | None = None,
    *, input_vector_size: int = 0, output_vector_size: int = 0,
    activations: tuple[MessageView, ...] = (), sequence_output: bool = False,
    has_bias_vectors: bool = False, update_gate_weight_matrix: MessageView | None = None,
    reset_gate_weight_matrix: MessageView | None = None,
    output_gate_weight_matrix: MessageView | None = None,
    update_gate_recursion_matrix: MessageView | None = None,
    reset_gate_recursion_matrix: MessageView | None = None,
    output_gate_recursion_matrix: MessageView | None = None,
    update_gate_bias_vector: MessageView | None = None,
    reset_gate_bias_vector: MessageView | None = None,
    output_gate_bias_vector: MessageView | None = None, reverse_input: bool = False,
) -> list[Expr]:  # fmt: skip
    """The reset gate acts on the state, not on what the weights make of it."""
    size = output_vector_size
    inward = update_gate_weight_matrix, reset_gate_weight_matrix, output_gate_weight_matrix
    around = (
        update_gate_recursion_matrix,
        reset_gate_recursion_matrix,
        output_gate_recursion_matrix,
    )
    bias = None
    if has_bias_vectors:
        parts = update_gate_bias_vector, reset_gate_bias_vector, output_gate_bias_vector
        none = relay.const(allocation.zeros(3 * size, np.float32))
        bias = _concatenate_gates([*(ctx.weight(each, (size,)) for each in parts), none])
    found = relay.serde.gru(
        _drop_spatial(x),
        _concatenate_gates([ctx.weight(each, (size, input_vector_size)) for each in inward]),
        _concatenate_gates([ctx.weight(each, (size, size)) for each in around]),
        bias,
        None,
        None if h is None else _drop_spatial(h),
        hidden_size=size,
        direction="reverse" if reverse_input else "forward",
        clip=CLIP,
        **_functions(activations, 2),
    )
    return [_outputs(found[0], found[1], sequence_output), _add_spatial(found[1])]


@dataclass(frozen=True, kw_only=True)
class LstmAttributes:
    """Attributes of long short-term memories of one direction and of both."""

    input_vector_size: int = 0
    output_vector_size: int = 0
    params: MessageView | None = None


def _lstm(
    ctx: Import, x: Expr, h: Expr | None, c: Expr | None, lstm: LstmAttributes,
    functions: Sequence[MessageView], weights: MessageView | None,
    *, reverse: bool,
) -> list[Expr]:  # fmt: skip
    """Return the results of one direction: of every step or the last one, and both states."""
    if lstm.params is None or weights is None:
        raise Unsupported("its parameters are missing")
    entering, size = lstm.input_vector_size, lstm.output_vector_size
    options = lstm.params.message

    def gates(what: str, shape: tuple[int, ...]) -> list[Expr]:
        names = [f"{gate}{'Input' if gate == 'block' else 'Gate'}{what}" for gate in GATES]
        return [ctx.weight(weights.submessage(name), shape) for name in names]

    bias = holes = None
    if options.hasBiasVectors or options.forgetBias:
        zeros: Expr = relay.const(allocation.zeros(size, np.float32))
        vectors = gates("BiasVector", (size,)) if options.hasBiasVectors else [zeros] * 4
        if options.forgetBias:
            vectors[2] = relay.add(vectors[2], relay.const(allocation.ones(size, np.float32)))
        bias = _concatenate_gates([*vectors, relay.const(allocation.zeros(4 * size, np.float32))])
    if options.hasPeepholeVectors:
        names = [f"{gate}GatePeepholeVector" for gate in GATES[:3]]
        holes = _concatenate_gates(
            [ctx.weight(weights.submessage(name), (size,)) for name in names]
        )
    limit = float(options.cellClipThreshold) or CLIP
    found = relay.serde.lstm(
        _drop_spatial(x), _concatenate_gates(gates("WeightMatrix", (size, entering))),
        _concatenate_gates(gates("RecursionMatrix", (size, size))), bias, None,
        None if h is None else _drop_spatial(h), None if c is None else _drop_spatial(c), holes,
        None, hidden_size=size, direction="reverse" if reverse else "forward", clip=CLIP,
        input_forget=bool(options.coupledInputAndForgetGate), cell_clip=(-limit, limit),
        **_functions(functions, 3),
    )  # fmt: skip
    return [
        _outputs(found[0], found[1], bool(options.sequenceOutput)),
        _add_spatial(found[1]),
        _add_spatial(found[2]),
    ]


@LAYERS.imports("uniDirectionalLSTM")
def import_uni_directional_lstm(
    ctx: Import, x: Expr, h: Expr | None = None, c: Expr | None = None,
    *, lstm: LstmAttributes, activations: tuple[MessageView, ...] = (),
    weight_params: MessageView | None = None, reverse_input: bool = False,
) -> list[Expr]:  # fmt: skip
    return _lstm(ctx, x, h, c, lstm, activations, weight_params, reverse=reverse_input)


@LAYERS.imports("biDirectionalLSTM")
def import_bi_directional_lstm(
    ctx: Import, x: Expr, h: Expr | None = None, c: Expr | None = None,
    h_reverse: Expr | None = None, c_reverse: Expr | None = None,
    *, lstm: LstmAttributes, activations_forward_lstm: tuple[MessageView, ...] = (),
    activations_backward_lstm: tuple[MessageView, ...] = (),
    weight_params: tuple[MessageView, ...] = (),
) -> list[Expr]:  # fmt: skip
    """Both directions lie side by side in the channels."""
    if len(weight_params) != 2:
        raise Unsupported(f"expected weights of 2 directions, found {len(weight_params)}")
    first, second = weight_params
    one = _lstm(ctx, x, h, c, lstm, activations_forward_lstm, first, reverse=False)
    other = _lstm(
        ctx, x, h_reverse, c_reverse, lstm, activations_backward_lstm, second, reverse=True
    )
    return [relay.concatenate([one[0], other[0]], axis=2), *one[1:], *other[1:]]


FUNCTIONS = {
    "hard_sigmoid": "sigmoidHard",
    "linear": "linear",
    "relu": "ReLU",
    "scaled_tanh": "scaledTanh",
    "sigmoid": "sigmoid",
    "sigmoid_hard": "sigmoidHard",
    "tanh": "tanh",
}
"""MIL's functions, and those of layers."""

UNBOUNDED = float(np.finfo(np.float32).max)
"""A bound of the cell that is none."""

STEP_GATES = ("input", "forget", "output", "block")
"""Gates in MIL's order."""


def _function(name: str) -> dict[str, AnyValue]:
    kind = FUNCTIONS[name]
    return {kind: dict(zip(("alpha", "beta"), PARAMETERS.get(kind, ()), strict=False))}


def _weight_fields(ih: Value, hh: Value, bias: Value | None) -> list[tuple[str, Value]]:
    """Return the weights of gates that there are, by the ends of the names of their fields."""
    found = [("weight_matrix", ih), ("recursion_matrix", hh)]
    return found if bias is None else [*found, ("bias_vector", bias)]


def _split_gates(value: Value, count: int) -> list[Parameter]:
    """Return the equal parts of the first axis of a weight."""
    whole = value_weight(value)
    size = whole.shape[0] // count
    rows = Var("rows", TensorType(whole.shape, whole.dtype))
    return [
        Parameter(
            ComputedWeight(
                relay.strided_slice(rows, [part * size], [(part + 1) * size], axes=[0]),
                {rows: whole},
            )
        )
        for part in range(count)
    ]


def _expand_axes(ctx: Export, x: Value, axes: list[int]) -> Value:
    """Return steps or a state with the axes that layers have: five."""
    return ctx.layer("expandDims", x, of=_five_axes_type(x.type, axes), axes=axes)


def _reverse_steps(ctx: Export, x: Value, direction: str) -> Value:
    """Return steps as a layer walks: in what order one that goes backwards has them is unknown."""
    if direction != "reverse":
        return x
    return ctx.layer("reverse", x, of=x.type, reverse_dim=[True, False, False])


STEPS, STATE = [3, 4], [0, 3, 4]
"""Axes that steps (step, sequence, channel) and states (sequence, channel) lack."""


def _five_axes_type(type_: TensorType, axes: list[int]) -> TensorType:
    rest = iter(type_.shape)
    return TensorType([1 if axis in axes else next(rest) for axis in range(5)], type_.dtype)


def _emit_simple(
    ctx: Export, kind: str, x: Value, h: Value, direction: str, fields: dict[str, AnyValue]
) -> list[Value]:
    """Append a layer of one state and one direction."""
    inputs = [
        _expand_axes(ctx, _reverse_steps(ctx, x, direction), STEPS),
        _expand_axes(ctx, h, STATE),
    ]
    types = [_five_axes_type(ctx.types[0], STEPS), _five_axes_type(ctx.types[1], STATE)]
    every, last = ctx.layers(kind, inputs, types, sequence_output=True, **fields)
    return [
        ctx.layer("squeeze", every, of=ctx.types[0], axes=STEPS),
        ctx.layer("squeeze", last, of=ctx.types[1], axes=STATE),
    ]


@LAYERS.exports("rnn")
def export_rnn(
    ctx: Export, x: Value, initial_h: Value, weight_ih: Value, weight_hh: Value,
    bias: Value | None = None,
    *, recurrent: RecurrentAttributes,
) -> list[Value]:  # fmt: skip
    """Its functions and weights are fields of their own."""
    size, entering = ctx.static_shape(weight_ih, 2)
    fields = {
        "input_vector_size": entering,
        "output_vector_size": size,
        "activation": _function(recurrent.activation),
        "has_bias_vector": bias is not None,
        "weight_matrix": ctx.parameter(weight_ih),
        "recursion_matrix": ctx.parameter(weight_hh),
        "bias_vector": None if bias is None else ctx.parameter(bias),
    }
    return _emit_simple(ctx, "simpleRecurrent", x, initial_h, recurrent.direction, fields)


@LAYERS.exports("gru")
def export_gru(
    ctx: Export, x: Value, initial_h: Value, weight_ih: Value, weight_hh: Value,
    bias: Value | None = None,
    *, recurrent: RecurrentAttributes, recurrent_activation: str = "sigmoid",
) -> list[Value]:  # fmt: skip
    """Each gate has weights of its own, which lie one after the other in MIL."""
    size, entering = ctx.static_shape(weight_hh)[1], ctx.static_shape(weight_ih)[1]
    fields: dict[str, AnyValue] = {
        "activations": [_function(recurrent_activation), _function(recurrent.activation)],
        "has_bias_vectors": bias is not None,
    }
    fields |= {"input_vector_size": entering, "output_vector_size": size}
    for what, value in _weight_fields(weight_ih, weight_hh, bias):
        for gate, part in zip(("reset", "output", "update"), _split_gates(value, 3), strict=True):
            fields[f"{gate}_gate_{what}"] = part
    return _emit_simple(ctx, "gru", x, initial_h, recurrent.direction, fields)


def _step_weights(
    weight_ih: Value, weight_hh: Value, bias: Value | None, peephole: Value | None
) -> dict[str, AnyValue]:
    """Return the weights of one direction of a long short-term memory."""
    fields: dict[str, AnyValue] = {}
    for what, value in _weight_fields(weight_ih, weight_hh, bias):
        for gate, part in zip(STEP_GATES, _split_gates(value, 4), strict=True):
            fields[f"{gate}_{'input' if gate == 'block' else 'gate'}_{what}"] = part
    if peephole is not None:
        for gate, part in zip(STEP_GATES, _split_gates(peephole, 3), strict=False):
            fields[f"{gate}_gate_peephole_vector"] = part
    return fields


@LAYERS.exports("lstm")
def export_lstm(
    ctx: Export, x: Value, initial_h: Value, initial_c: Value, weight_ih: Value, weight_hh: Value,
    bias: Value | None = None, peephole: Value | None = None, weight_ih_back: Value | None = None,
    weight_hh_back: Value | None = None, bias_back: Value | None = None,
    peephole_back: Value | None = None,
    *, direction: str = "forward", output_sequence: bool = False,
    recurrent_activation: str = "sigmoid", cell_activation: str = "tanh", activation: str = "tanh",
    clip: float | None = None,
) -> list[Value]:  # fmt: skip
    """States of both directions lie side by side in MIL, and are tensors of their own here."""
    size, entering = ctx.static_shape(weight_hh)[1], ctx.static_shape(weight_ih)[1]
    functions = [_function(each) for each in (recurrent_activation, cell_activation, activation)]
    params = {
        "sequence_output": True,
        "has_bias_vectors": bias is not None,
        "has_peephole_vectors": peephole is not None,
        "cell_clip_threshold": UNBOUNDED if clip is None else clip,
    }
    sizes = {"input_vector_size": entering, "output_vector_size": size}
    weights = _step_weights(weight_ih, weight_hh, bias, peephole)
    data = _expand_axes(ctx, _reverse_steps(ctx, x, direction), STEPS)
    states = [initial_h, initial_c]
    every = _five_axes_type(ctx.types[0], STEPS)
    if weight_ih_back is None or weight_hh_back is None:
        inputs = [data, *(_expand_axes(ctx, each, STATE) for each in states)]
        types = [every, *(_five_axes_type(each, STATE) for each in ctx.types[1:])]
        found = ctx.layers(
            "uniDirectionalLSTM", inputs, types, activations=functions, params=params,
            weight_params=weights, **sizes,
        )  # fmt: skip
        return [
            ctx.layer("squeeze", each, of=type_, axes=axes)
            for each, type_, axes in zip(found, ctx.types, (STEPS, STATE, STATE), strict=True)
        ]
    half = TensorType((initial_h.type.shape[0], size), x.type.dtype)
    halves = [ctx.layers("splitND", [each], [half, half], axis=1, num_splits=2) for each in states]
    ends = [_expand_axes(ctx, halves[i][way], STATE) for way in (0, 1) for i in (0, 1)]
    back = _step_weights(weight_ih_back, weight_hh_back, bias_back, peephole_back)
    found = ctx.layers(
        "biDirectionalLSTM", [data, *ends], [every, *[_five_axes_type(half, STATE)] * 4],
        activations_forward_lstm=functions, activations_backward_lstm=functions, params=params,
        weight_params=[weights, back], **sizes,
    )  # fmt: skip
    h, c, *back_ends = (ctx.layer("squeeze", each, of=half, axes=STATE) for each in found[1:])
    pairs = zip((h, c), back_ends, ctx.types[1:], strict=True)
    sides = [ctx.layer("concatND", *ends, of=type_, axis=1) for *ends, type_ in pairs]
    return [ctx.layer("squeeze", found[0], of=ctx.types[0], axes=STEPS), *sides]
