"""Recurrent layers.

ONNX's own layout of batch before time came with version 14, and ONNX Runtime runs it on no
processor; so the axes are exchanged around the layer instead, which every version can say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

from serde.errors import Unsupported
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.elementwise.convert import cast
from serde.onnx.ops.table import OPS
from serde.relay.ir.expr import Call, Expr, Tuple, TupleGetItem
from serde.relay.ir.registry import call
from serde.relay.op.recurrent.gates import PARAMETERS, Direction, count_directions, read_gates

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


def _list_activations(
    defaults: Sequence[str],
    direction: str,
    activations: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
) -> dict[str, AnyValue]:
    """ONNX lists alphas and betas of those functions alone that have one."""
    if not activations:
        return {}
    directions = read_gates(
        defaults,
        direction=direction,
        activations=activations,
        activation_alpha=alphas,
        activation_beta=betas,
        clip=None,
    )
    gates = [gate for each in directions for gate in each]
    counts = [len(PARAMETERS.get(gate.name, ())) for gate in gates]
    return {
        "activations": [_ACTIVATIONS[gate.name] for gate in gates],
        "activation_alpha": [g.alpha for g, n in zip(gates, counts, strict=True) if n] or None,
        "activation_beta": [g.beta for g, n in zip(gates, counts, strict=True) if n > 1] or None,
    }


def _to_time_first(ctx: ExportContext, x: Value | None, layout: str) -> Value | None:
    if x is None or layout == "TNC":
        return x
    return ctx.emit("Transpose", x, perm=[1, 0, 2])


def _cast_lengths(ctx: ExportContext, x: Value | None) -> Value | None:
    if x is None or ctx.type(x).dtype == "int32":
        return x
    return cast(ctx, x, "int32")


def _restore_layout(ctx: ExportContext, results: Sequence[Value], layout: str) -> tuple[Value, ...]:
    if layout == "TNC":
        return tuple(results)
    outputs = ctx.emit("Transpose", results[0], perm=[2, 0, 1, 3])
    return (outputs, *(ctx.emit("Transpose", x, perm=[1, 0, 2]) for x in results[1:]))


def _has_no_projection(node: Call) -> bool:
    """ONNX has neither a projection nor bounds of the cell."""
    projection = node.args[8]
    return node.attrs["cell_clip"] is None and isinstance(projection, Tuple)


@OPS.exports("serde.lstm", when=_has_no_projection)
def export_lstm(
    ctx: ExportContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    initial_c: Value | None,
    p: Value | None,
    projection: Value | None,
    *,
    hidden_size: int,
    direction: str,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: float | None,
    layout: str,
    input_forget: bool,
) -> tuple[Value, ...]:
    defaults = ("sigmoid", "tanh", "tanh")
    results = ctx.emit_tuple(
        "LSTM",
        _to_time_first(ctx, x, layout),
        w,
        r,
        b,
        _cast_lengths(ctx, sequence_lens),
        _to_time_first(ctx, initial_h, layout),
        _to_time_first(ctx, initial_c, layout),
        p,
        outputs=3,
        hidden_size=hidden_size,
        direction=direction,
        clip=clip,
        input_forget=int(input_forget) or None,
        **_list_activations(defaults, direction, activations, activation_alpha, activation_beta),
    )
    return _restore_layout(ctx, results, layout)


@OPS.imports("LSTM", since=(1, 7, 14, 22), ignored=("output_sequence",))
def import_lstm(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    initial_c: Expr | None = None,
    p: Expr | None = None,
    *,
    hidden_size: int | None = None,
    direction: Direction = "forward",
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float | None = None,
    layout: bool = False,
    input_forget: bool = False,
) -> list[Expr]:
    functions = _read_activations(
        ("sigmoid", "tanh", "tanh"), direction, activations, activation_alpha, activation_beta
    )
    found = call(
        "serde.lstm",
        x,
        w,
        r,
        b,
        sequence_lens,
        initial_h,
        initial_c,
        p,
        hidden_size=_read_hidden_size(ctx, r, hidden_size),
        direction=direction,
        clip=clip,
        layout=_layout_of(layout),
        input_forget=input_forget,
        **functions,
    )
    return _unpack(found, 3)


@OPS.exports("serde.gru")
def export_gru(
    ctx: ExportContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    *,
    hidden_size: int,
    direction: str,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: float | None,
    layout: str,
    linear_before_reset: bool,
) -> tuple[Value, ...]:
    defaults = ("sigmoid", "tanh")
    results = ctx.emit_tuple(
        "GRU",
        _to_time_first(ctx, x, layout),
        w,
        r,
        b,
        _cast_lengths(ctx, sequence_lens),
        _to_time_first(ctx, initial_h, layout),
        outputs=2,
        hidden_size=hidden_size,
        direction=direction,
        clip=clip,
        linear_before_reset=int(linear_before_reset) or None,
        **_list_activations(defaults, direction, activations, activation_alpha, activation_beta),
    )
    return _restore_layout(ctx, results, layout)


@OPS.imports("GRU", since=(1, 3, 7, 14, 22), ignored=("output_sequence",))
def import_gru(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    *,
    hidden_size: int | None = None,
    direction: Direction = "forward",
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float | None = None,
    layout: bool = False,
    linear_before_reset: bool = False,
) -> list[Expr]:
    functions = _read_activations(
        ("sigmoid", "tanh"), direction, activations, activation_alpha, activation_beta
    )
    found = call(
        "serde.gru",
        x,
        w,
        r,
        b,
        sequence_lens,
        initial_h,
        hidden_size=_read_hidden_size(ctx, r, hidden_size),
        direction=direction,
        clip=clip,
        layout=_layout_of(layout),
        linear_before_reset=linear_before_reset,
        **functions,
    )
    return _unpack(found, 2)


@OPS.exports("serde.rnn")
def export_rnn(
    ctx: ExportContext,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    sequence_lens: Value | None,
    initial_h: Value | None,
    *,
    hidden_size: int,
    direction: str,
    activations: tuple[str, ...],
    activation_alpha: tuple[float, ...],
    activation_beta: tuple[float, ...],
    clip: float | None,
    layout: str,
) -> tuple[Value, ...]:
    results = ctx.emit_tuple(
        "RNN",
        _to_time_first(ctx, x, layout),
        w,
        r,
        b,
        _cast_lengths(ctx, sequence_lens),
        _to_time_first(ctx, initial_h, layout),
        outputs=2,
        hidden_size=hidden_size,
        direction=direction,
        clip=clip,
        **_list_activations(("tanh",), direction, activations, activation_alpha, activation_beta),
    )
    return _restore_layout(ctx, results, layout)


@OPS.imports("RNN", since=(1, 7, 14, 22), ignored=("output_sequence",))
def import_rnn(
    ctx: ImportContext,
    x: Expr,
    w: Expr,
    r: Expr,
    b: Expr | None = None,
    sequence_lens: Expr | None = None,
    initial_h: Expr | None = None,
    *,
    hidden_size: int | None = None,
    direction: Direction = "forward",
    activations: tuple[str, ...] = (),
    activation_alpha: tuple[float, ...] = (),
    activation_beta: tuple[float, ...] = (),
    clip: float | None = None,
    layout: bool = False,
) -> list[Expr]:
    """Outputs that nothing reads need not be declared, so ``output_sequence`` says nothing."""
    functions = _read_activations(
        ("tanh",), direction, activations, activation_alpha, activation_beta
    )
    found = call(
        "serde.rnn",
        x,
        w,
        r,
        b,
        sequence_lens,
        initial_h,
        hidden_size=_read_hidden_size(ctx, r, hidden_size),
        direction=direction,
        clip=clip,
        layout=_layout_of(layout),
        **functions,
    )
    return _unpack(found, 2)


_RELAY_ACTIVATIONS = {name.lower(): relay_name for relay_name, name in _ACTIVATIONS.items()}
"""Names of functions are spelled in any case."""


def _read_activations(
    defaults: Sequence[str],
    direction: str,
    activations: Sequence[str],
    alphas: Sequence[float],
    betas: Sequence[float],
) -> dict[str, AnyValue]:
    """Return the functions with a pair of parameters each; ONNX lists only those that exist.

    Raises:
        Unsupported: A function is unknown, or there are more parameters than functions take.
    """
    unknown = [name for name in activations if name.lower() not in _RELAY_ACTIVATIONS]
    if unknown:
        raise Unsupported(f"activation {unknown[0]!r} is unknown")
    names = [_RELAY_ACTIVATIONS[name.lower()] for name in activations]
    usual = list(defaults) * count_directions(direction)
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


def _read_hidden_size(ctx: ImportContext, r: Expr, declared: int | None) -> int:
    """Return the length of the state, which the weights know too."""
    return ctx.static_lengths(r, [2])[0] if declared is None else declared


def _layout_of(batch_first: bool) -> str:
    return "NTC" if batch_first else "TNC"


def _unpack(layer: Expr, count: int) -> list[Expr]:
    return [TupleGetItem(layer, index) for index in range(count)]
