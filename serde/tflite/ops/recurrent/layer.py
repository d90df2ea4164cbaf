"""What recurrent layers share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.relay.ir import Call, Expr, TensorType, is_absent, tensor_type
from serde.relay.op.recurrent.gates import RecurrentLayer
from serde.tflite.ops.table import Export, Value

__all__ = [
    "TANH", "Layout", "are_fused", "cut", "direction_of", "in_both_directions", "joined",
    "state_of", "written",
]  # fmt: skip

Layout = Literal["TNC", "NTC"]


TANH = 4
"""The activation of cells."""


def direction_of(state: Expr, layout: Layout) -> Expr:
    return relay.expand_dims(state, axis=0 if layout == "TNC" else 1)


def in_both_directions(
    x: Expr, layout: Layout, merge: bool, run: Callable[[int, Expr], Expr]
) -> list[Expr]:
    """Return what a layer gives of a sequence and of its reverse, each in the sequence's order."""
    axis = 0 if layout == "TNC" else 1
    outputs = [run(0, x), relay.reverse(run(1, relay.reverse(x, axis=axis)), axis=axis)]
    return [relay.concatenate(outputs, axis=2)] if merge else outputs


def are_fused(node: Call, *usual: tuple[str, ...]) -> bool:
    """Whether a layer is one of known lengths with the usual functions, all sequences as long."""
    data, attrs = tensor_type(node.args[0]), node.attrs
    if data.dtype != "float32" or 0 in (data.concrete_shape or [0]) or attrs["clip"] is not None:
        return False
    if not is_absent(node.args[4]) or attrs["activation_alpha"] or attrs["activation_beta"]:
        return False
    times = 1 + (attrs["direction"] == "bidirectional")
    return attrs["activations"] in [(), *(each * times for each in usual)]


def cut(ctx: Export, x: Value | None, number: int, *parts: int, size: int) -> Value | None:
    """Return the sum of parts, of a size each, that belong to a direction."""
    if x is None:
        return None
    ctx.used_once -= {x.weight or ""}  # The whole is needed again: parts get other names.

    def build(whole: Expr) -> Expr:
        rows = [
            relay.strided_slice(
                whole, [number, i * size], [number + 1, i * size + size], axes=[0, 1]
            )
            for i in parts
        ]
        return relay.squeeze(rows[0] if len(rows) == 1 else relay.add(*rows), axis=[0])

    return ctx.spell(build, x)


def state_of(
    ctx: Export, first: Value | None, number: int, layer: RecurrentLayer, width: int
) -> Value:
    """Return the variable tensor of a direction's state."""
    axis = 0 if layer.layout == "TNC" else 1
    batch = ctx.static_shape(Value(-1, ctx.result_types()[1]))[1 - axis]
    if first is not None:
        place = ctx.const(number, "int32")
        first = ctx.spell(lambda x, i: relay.take(x, i, axis=axis), first, place)
    return ctx.state(TensorType((batch, width), "float32"), first)


def written(
    ctx: Export, op: str, x: Value, operands: Sequence[Value | None], layer: RecurrentLayer,
    number: int, width: int, **options: AnyValue,
) -> tuple[Value, Value]:  # fmt: skip
    """Write a direction of a layer; return the outputs of all steps, and of the last.

    Engines that cut a graph in parts see that an operator reads a result, and not that one
    behind the layer reads a state; so what is left of it is taken from the outputs.
    """
    axis = 0 if layer.layout == "TNC" else 1
    (length,) = ctx.static_lengths(x, [axis])
    made = TensorType((*ctx.type(x).shape[:2], width), "float32")

    def turned(each: Value) -> Value:
        if layer.direction != "reverse" and not number:
            return each
        return ctx.spell(lambda y: relay.reverse(y, axis=axis), each)

    found = ctx.emit_as(made, op, turned(x), *operands, time_major=axis == 0, **options)
    place = ctx.const(length - 1, "int32")
    return turned(found), ctx.spell(lambda y, i: relay.take(y, i, axis=axis), found, place)


def joined(ctx: Export, layer: RecurrentLayer, *columns: Sequence[Value]) -> tuple[Value, ...]:
    """Return results of all steps and states, each with an axis of directions."""
    first, axis = (1, 0) if layer.layout == "TNC" else (2, 1)
    return tuple(
        ctx.spell(lambda *each, at=first if not i else axis: relay.stack(each, axis=at), *values)
        for i, values in enumerate(columns)
    )
