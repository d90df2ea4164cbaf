"""Recurrent layers.

ONNX's own layout of batch before time came with version 14, and ONNX Runtime runs it on no
processor; so the axes are exchanged around the layer instead, which every version can say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import as_dtype
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, TupleGetItem, call
from serde.relay.op.recurrent.gates import PARAMETERS, Direction, RecurrentLayer, count_directions
from serde.walk.takes import Takes

_ACTIVATIONS = {
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "relu": "Relu",
    "affine": "Affine",
    "leaky_relu": "LeakyRelu",
    "thresholded_relu": "ThresholdedRelu",
    "scaled_tanh": "ScaledTanh",
    "hard_sigmoid": "HardSigmoid",
    "elu": "Elu",
    "softsign": "Softsign",
    "softplus": "Softplus",
}


_RELAY_ACTIVATIONS = {name.lower(): relay_name for relay_name, name in _ACTIVATIONS.items()}
"""Names of functions are spelled in any case."""


class RelayLayer(RecurrentLayer):
    """Attributes of Relay's recurrent layers."""

    def to_onnx(self, defaults: Sequence[str]) -> dict[str, AnyValue]:
        """Return the attributes of ONNX, whose layers have the functions `defaults`."""
        named = self._activations(defaults) if self.activations else {}
        return {
            "hidden_size": self.hidden_size,
            "direction": self.direction,
            "clip": self.clip,
            **named,
        }

    def _activations(self, defaults: Sequence[str]) -> dict[str, AnyValue]:
        """ONNX lists alphas and betas of those functions alone that have one."""
        gates = [gate for each in self.gates(defaults) for gate in each]
        counts = [len(PARAMETERS.get(gate.name, ())) for gate in gates]
        pairs = list(zip(gates, counts, strict=True))
        return {
            "activations": [_ACTIVATIONS[gate.name] for gate in gates],
            "activation_alpha": [gate.alpha for gate, count in pairs if count] or None,
            "activation_beta": [gate.beta for gate, count in pairs if count > 1] or None,
        }

    def time_first(self, ctx: Export, x: Value | None) -> Value | None:
        """Return data or a state with the axis that ONNX has first in front."""
        if x is None or self.layout == "TNC":
            return x
        return ctx.emit("Transpose", x, perm=[1, 0, 2])

    def emit(
        self,
        ctx: Export,
        op: str,
        defaults: Sequence[str],
        operands: Sequence[Value | None],
        states: Sequence[Value | None],
        *behind: Value | None,
        **attributes: AnyValue,
    ) -> tuple[Value, ...]:
        """Write a layer of data, two weights, a bias and lengths, then states, then the rest."""
        x, w, r, b, lengths = operands
        data = self.time_first(ctx, x)
        counts = None if lengths is None else as_dtype(ctx, lengths, "int32")
        given = data, w, r, b, counts, *(self.time_first(ctx, each) for each in states), *behind
        options = {**attributes, **self.to_onnx(defaults)}
        return self.restore(ctx, ctx.emit_tuple(op, *given, outputs=1 + len(states), **options))

    def restore(self, ctx: Export, results: Sequence[Value]) -> tuple[Value, ...]:
        """Return outputs and last states of ONNX in the layer's own layout."""
        if self.layout == "TNC":
            return tuple(results)
        outputs = ctx.emit("Transpose", results[0], perm=[2, 0, 1, 3])
        return (outputs, *(ctx.emit("Transpose", x, perm=[1, 0, 2]) for x in results[1:]))


@dataclass(frozen=True, kw_only=True)
class LayerAttributes:
    """Attributes that the recurrent layers of ONNX share."""

    hidden_size: int | None = None
    direction: Direction = "forward"
    activations: tuple[str, ...] = ()
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float | None = None
    layout: bool = False

    def to_relay(self, ctx: Import, r: Expr, defaults: Sequence[str]) -> dict[str, AnyValue]:
        """Return the attributes of Relay; the weights `r` know the length of the state, too."""
        size = self.hidden_size
        return {
            **self._activations(defaults),
            "hidden_size": ctx.static_lengths(r, [2])[0] if size is None else size,
            "direction": self.direction,
            "clip": self.clip,
            "layout": "NTC" if self.layout else "TNC",
        }

    def _activations(self, defaults: Sequence[str]) -> dict[str, AnyValue]:
        """Return the functions with a pair of parameters each; ONNX lists only those that exist."""
        alphas, betas = self.activation_alpha, self.activation_beta
        unknown = [name for name in self.activations if name.lower() not in _RELAY_ACTIVATIONS]
        if unknown:
            raise Unsupported(f"activation {unknown[0]!r} is unknown")
        names = [_RELAY_ACTIVATIONS[name.lower()] for name in self.activations]
        usual = list(defaults) * count_directions(self.direction)
        every = names or usual
        counts = [len(PARAMETERS.get(name, ())) for name in every]
        for what, given, least in (("alphas", alphas, 1), ("betas", betas, 2)):
            takers = sum(count >= least for count in counts)
            if len(given) > takers:
                raise Unsupported(f"{len(given)} {what} for {takers} functions that take one")
        found: dict[str, AnyValue] = {"activations": () if every == usual else tuple(every)}
        if not alphas and not betas:
            return found
        first, second = iter(alphas), iter(betas)
        pairs = []
        for name in every:
            own = PARAMETERS.get(name, ())
            alpha = next(first, own[0]) if own else 0.0
            beta = next(second, own[1]) if len(own) > 1 else 0.0
            pairs.append((alpha, beta))
        found["activation_alpha"] = tuple(alpha for alpha, _ in pairs)
        found["activation_beta"] = tuple(beta for _, beta in pairs)
        return found


_LSTM = ("sigmoid", "tanh", "tanh")
_GRU = ("sigmoid", "tanh")
_RNN = ("tanh",)


@OPS.exports("serde.lstm", takes=Takes(projection=None, cell_clip=None))
def export_lstm(
    ctx: Export, x: Value, w: Value, r: Value, b: Value | None, sequence_lens: Value | None,
    initial_h: Value | None, initial_c: Value | None, p: Value | None, projection: Value | None,
    *, layer: RelayLayer, input_forget: bool,
) -> tuple[Value, ...]:  # fmt: skip
    operands, states = (x, w, r, b, sequence_lens), (initial_h, initial_c)
    forget = int(input_forget) or None
    return layer.emit(ctx, "LSTM", _LSTM, operands, states, p, input_forget=forget)


@OPS.imports("LSTM", since=(1, 7, 14, 22), ignored=("output_sequence",))
def import_lstm(
    ctx: Import, x: Expr, w: Expr, r: Expr, b: Expr | None = None,
    sequence_lens: Expr | None = None, initial_h: Expr | None = None, initial_c: Expr | None = None,
    p: Expr | None = None,
    *, layer: LayerAttributes, input_forget: bool = False,
) -> list[Expr]:  # fmt: skip
    operands = (x, w, r, b, sequence_lens, initial_h, initial_c, p)
    attrs = layer.to_relay(ctx, r, _LSTM)
    found = call("serde.lstm", *operands, input_forget=input_forget, **attrs)
    return [TupleGetItem(found, index) for index in range(3)]


@OPS.exports("serde.gru")
def export_gru(
    ctx: Export, x: Value, w: Value, r: Value, b: Value | None, sequence_lens: Value | None,
    initial_h: Value | None,
    *, layer: RelayLayer, linear_before_reset: bool,
) -> tuple[Value, ...]:  # fmt: skip
    operands, last = (x, w, r, b, sequence_lens), int(linear_before_reset) or None
    return layer.emit(ctx, "GRU", _GRU, operands, [initial_h], linear_before_reset=last)


@OPS.imports("GRU", since=(1, 3, 7, 14, 22), ignored=("output_sequence",))
def import_gru(
    ctx: Import, x: Expr, w: Expr, r: Expr, b: Expr | None = None,
    sequence_lens: Expr | None = None, initial_h: Expr | None = None,
    *, layer: LayerAttributes, linear_before_reset: bool = False,
) -> list[Expr]:  # fmt: skip
    operands = (x, w, r, b, sequence_lens, initial_h)
    attrs = layer.to_relay(ctx, r, _GRU)
    found = call("serde.gru", *operands, linear_before_reset=linear_before_reset, **attrs)
    return [TupleGetItem(found, index) for index in range(2)]


@OPS.exports("serde.rnn")
def export_rnn(
    ctx: Export, x: Value, w: Value, r: Value, b: Value | None, sequence_lens: Value | None,
    initial_h: Value | None,
    *, layer: RelayLayer,
) -> tuple[Value, ...]:  # fmt: skip
    return layer.emit(ctx, "RNN", _RNN, (x, w, r, b, sequence_lens), [initial_h])


@OPS.imports("RNN", since=(1, 7, 14, 22), ignored=("output_sequence",))
def import_rnn(
    ctx: Import, x: Expr, w: Expr, r: Expr, b: Expr | None = None,
    sequence_lens: Expr | None = None, initial_h: Expr | None = None,
    *, layer: LayerAttributes,
) -> list[Expr]:  # fmt: skip
    """Outputs that nothing reads need not be declared, so ``output_sequence`` says nothing."""
    operands = (x, w, r, b, sequence_lens, initial_h)
    found = call("serde.rnn", *operands, **layer.to_relay(ctx, r, _RNN))
    return [TupleGetItem(found, index) for index in range(2)]
