"""Elements added around a tensor, and between its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.core.weights import numpy_dtype
from serde.coreml.mlprogram.operators import FLOATS, cast_to, emit_in
from serde.coreml.mlprogram.ops.shape.reshape import reshape
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Constant, Expr, TensorType, call, is_float, tensor_type

PadWidth = Sequence[tuple[int, int]]
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
"""Relay's modes by MIL's names."""
_NAMES = {theirs: ours for ours, theirs in MODES.items()}


@OPS.imports("pad")
def import_pad(
    ctx: Import,
    x: Expr,
    pad: Expr,
    constant_val: Expr | None = None,
    *,
    mode: Literal["constant", "reflect", "replicate"] = "constant",
) -> Expr:
    """Widths are those of the last axes, before and after each in turn."""
    rank = ctx.type(x).rank
    zero = relay.Constant(np.zeros((), numpy_dtype(ctx.type(x).dtype)))
    value = zero if constant_val is None else constant_val
    if not ctx.is_constant(pad):
        widths = relay.reshape(pad, [rank, 2])
        return call("dyn.nn.pad", x, widths, value, pad_mode=MODES[mode])
    given = ctx.ints(pad)
    pairs = list(zip(given[0::2], given[1::2], strict=True))
    pairs = [(0, 0)] * (rank - len(pairs)) + pairs
    return relay.nn.pad(x, pairs, value, pad_mode=MODES[mode])


def _is_native(node: Call) -> bool:
    """Whether floats get a constant, or what is there around the last two axes, of known length."""
    type_, widths = tensor_type(node.args[0]), node.attrs["pad_width"]
    mode = node.attrs.get("pad_mode") or node.attrs["mode"].lower()
    if not is_float(type_.dtype) or any(min(pair) < 0 for pair in widths):
        return False
    if mode == "constant":
        return isinstance(node.args[1], Constant)
    short = int(mode == "reflect")
    last = zip(type_.shape[-2:], widths[-2:], strict=True)
    return (
        mode in _NAMES
        and type_.rank >= 2
        and not any(map(any, widths[:-2]))
        and all(
            not any(pair) or (isinstance(dim, int) and max(pair) <= dim - short)
            for dim, pair in last
        )
    )


@OPS.exports("nn.pad", when=_is_native)
def export_pad(
    ctx: Export, data: Value, pad_val: Value, *, pad_width: PadWidth, pad_mode: str
) -> Value:
    if not any(map(any, pad_width)):
        return data
    tensors = {"x": data}
    if pad_mode == "constant":
        tensors["constant_val"] = ctx.const(ctx.constant(pad_val), ctx.type(data).dtype)
    return _pad(ctx, tensors, pad_width, pad_mode)


@OPS.exports("nn.mirror_pad", when=_is_native)
def export_mirror_pad(ctx: Export, data: Value, *, mode: str, pad_width: PadWidth) -> Value:
    return _pad(ctx, {"x": data}, pad_width, mode.lower())


def _pad(ctx: Export, tensors: Mapping[str, Value], pad_width: PadWidth, mode: str) -> Value:
    flat = [width for pair in pad_width for width in pair]
    return emit_in(ctx, FLOATS, "pad", tensors, pad=flat, mode=_NAMES[mode])


@OPS.exports("dyn.nn.pad")
def export_dyn_pad(
    ctx: Export, data: Value, pad_width: Value, pad_val: Value, *, pad_mode: str
) -> Value:
    """Widths that are computed are those of all axes."""
    rank = ctx.type(data).rank
    if pad_mode != "constant" and rank > 2:
        raise Unsupported(f"padding of mode {pad_mode!r} whose widths are computed")
    dtype = ctx.type(data).dtype
    widths = reshape(ctx, cast_to(ctx, pad_width, "int32"), [2 * rank])
    known = ctx.const(0 if pad_val.data is None else pad_val.data, dtype)
    tensors = {"x": data, "constant_val": known}
    found = emit_in(ctx, FLOATS, "pad", tensors, pad=widths, mode=_NAMES[pad_mode])
    if pad_val.data is not None or pad_mode != "constant":
        return found
    ones = ctx.emit("fill", ctx.type(data), shape=_emit_shape(ctx, data), value=ctx.const(1, dtype))
    marks = ctx.emit("pad", x=ones, pad=widths, mode="constant", constant_val=ctx.const(0, dtype))
    inside = ctx.cast(marks, "bool")
    return ctx.emit("select", cond=inside, a=found, b=cast_to(ctx, pad_val, dtype))


def _emit_shape(ctx: Export, x: Value) -> Value:
    return ctx.emit("shape", TensorType((ctx.type(x).rank,), "int32"), x=x)
