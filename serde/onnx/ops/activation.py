"""Activations and softmax."""

from __future__ import annotations

from collections.abc import Callable

import serde.relay as relay
from serde.errors import Unsupported
from serde.onnx.ops.elementwise.convert import scalar_like
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Any, Expr, call, product
from serde.walk.pairs import pair, reads, writes
from serde.walk.takes import AXES, HELD, Takes

Build = Callable[[Import, Expr, int], Expr]


@OPS.exports("nn.prelu")
def export_prelu(ctx: Export, x: Value, slope: Value, *, axis: int) -> Value:
    """ONNX aligns the slopes with the last axes, so they get an axis of 1 for each that follows."""
    rank = ctx.type(x).rank
    following = rank - 1 - axis % rank
    return ctx.emit("PRelu", x, ctx.view(slope, (*ctx.type(slope).shape, *(1,) * following)))


@OPS.imports("PRelu", since=(7, 9, 16))
def import_prelu(ctx: Import, x: Expr, slope: Expr) -> Expr:
    """One slope a channel has axes of 1 behind it; other slopes broadcast to the tensor."""
    type_, slopes = ctx.type(x), ctx.type(slope)
    channels, ones = slopes.shape[:1], (1,) * (type_.rank - 2)
    if type_.rank > 1 and slopes.shape == (*type_.shape[1:2], *ones) and channels != (1,):
        return relay.nn.prelu(x, relay.reshape(slope, channels), axis=1)
    negative = relay.less(x, scalar_like(ctx, x, 0))
    return relay.where(negative, relay.multiply(x, slope), x)


@OPS.imports("PRelu", since=(1, 6), ignored=("consumed_inputs",))
def import_prelu_v1(ctx: Import, x: Expr, slope: Expr) -> Expr:
    """Before 7, a vector of slopes is one a channel."""
    type_ = ctx.type(slope)
    if type_.rank == 1 and ctx.type(x).rank > 1 and type_.shape[0] != 1:
        return relay.nn.prelu(x, slope, axis=1)
    return import_prelu(ctx, x, slope)


SELU = (1.67326319217681884765625, 1.05070102214813232421875)
"""Defaults of version 6: the factor of the exponential, and that of all."""


@OPS.imports("Swish", since=24)
def import_swish(ctx: Import, x: Expr, *, alpha: float = 1.0) -> Expr:
    if alpha == 1.0:
        return call("serde.silu", x)
    return call("serde.swish", x, alpha=alpha)


def _emit_on_rows(ctx: Export, op: str, x: Value, axis: int) -> Value:
    """Before 13, all dimensions from `axis` on form one row: the axis must be the last."""
    rank = ctx.type(x).rank
    if rank == 0:
        raise Unsupported("softmax of a scalar")
    axis %= rank
    if axis == rank - 1:
        return ctx.emit(op, x, axis=axis)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    swapped = ctx.emit("Transpose", x, perm=order)
    return ctx.emit("Transpose", ctx.emit(op, swapped, axis=rank - 1), perm=order)


def apply_to_rows(ctx: Import, x: Expr, axis: int, build: Callable[..., Expr]) -> Expr:
    """Return a function of rows; before 13, all dimensions from `axis` on form one row."""
    shape = ctx.type(x).shape
    first = axis % max(len(shape), 1)
    longer = [position for position in range(first, len(shape)) if shape[position] != 1]
    if len(longer) <= 1 and shape:
        return build(x, axis=longer[0] if longer else first)
    rows, row = product(shape[:first]), product(shape[first:])
    if isinstance(row, Any) or any(isinstance(dim, Any) for dim in shape):
        raise Unsupported(f"rows of several axes, some without a length or a name: {shape}")
    return relay.reshape(build(relay.reshape(x, [rows, row]), axis=1), shape)


def _build_hardmax(ctx: Import, x: Expr, axis: int) -> Expr:
    """Return ``y[i] = 1 if i == argmax(x) else 0`` along an axis; the first of equal maxima."""
    type_ = ctx.type(x)
    length = ctx.dim_at(x, axis)
    if not isinstance(length, int):
        return call("serde.hardmax", x, axis=axis)
    on, off = scalar_like(ctx, x, 1), scalar_like(ctx, x, 0)
    first = relay.argmax(x, axis=(axis,), keepdims=False)
    return relay.one_hot(first, on, off, length, axis % type_.rank, type_.dtype)


def _make_softmax_exporters(op: str) -> tuple[Callable[..., Value], Callable[..., Value]]:
    """Return the exporters from 13 on and before."""

    def export_softmax(ctx: Export, x: Value, *, axis: int) -> Value:
        return ctx.emit(op, x, axis=axis)

    def export_softmax_v1(ctx: Export, x: Value, *, axis: int) -> Value:
        return _emit_on_rows(ctx, op, x, axis)

    return export_softmax, export_softmax_v1


def _make_softmax_importers(build: Build) -> tuple[Callable[..., Expr], Callable[..., Expr]]:
    """Return the importers from 13 on and before."""

    def import_softmax(ctx: Import, x: Expr, *, axis: int = -1) -> Expr:
        return build(ctx, x, axis)

    def import_softmax_v1(ctx: Import, x: Expr, *, axis: int = 1) -> Expr:
        return apply_to_rows(ctx, x, axis, lambda rows, axis: build(ctx, rows, axis))

    return import_softmax, import_softmax_v1


SOFTMAX: dict[str, tuple[tuple[str, ...], Build]] = {
    "Softmax": (
        ("nn.softmax", "nn.fast_softmax"),
        lambda ctx, x, axis: relay.nn.softmax(x, axis=axis),
    ),
    "LogSoftmax": (("nn.log_softmax",), lambda ctx, x, axis: relay.nn.log_softmax(x, axis=axis)),
    "Hardmax": (("serde.hardmax",), _build_hardmax),
}
"""The operator of ONNX: Relay's that it is written for, and what it is read as."""


for _name, (_targets, _build) in SOFTMAX.items():
    _export, _export_v1 = _make_softmax_exporters(_name)
    OPS.exports(*_targets, since=13)(_export)
    OPS.exports(*_targets)(_export_v1)
    _import, _import_v1 = _make_softmax_importers(_build)
    OPS.imports(_name, since=13)(_import)
    OPS.imports(_name, since=(1, 11))(_import_v1)


OPS.pairs(
    pair("Relu", "nn.relu", since=(1, 6, 13, 14), ignored="consumed_inputs"),
    pair(
        "LeakyRelu",
        "nn.leaky_relu",
        since=(1, 6, 16),
        alpha=0.01,
        ignored="consumed_inputs",
        takes=Takes(alpha=HELD),
    ),
    pair(
        "Elu",
        "serde.elu",
        since=(1, 6, 22),
        alpha=1.0,
        ignored="consumed_inputs",
        takes=Takes(alpha=HELD),
    ),
    pair(
        "Selu",
        "serde.selu",
        since=(6, 22),
        target=1,
        alpha=SELU[0],
        gamma=SELU[1],
        takes=Takes(alpha=HELD, gamma=HELD),
    ),
    reads("Selu", "serde.selu", alpha=1.6732, gamma=1.0507, ignored="consumed_inputs"),
    pair(
        "HardSigmoid",
        "serde.hard_sigmoid",
        since=(1, 6, 22),
        alpha=0.2,
        beta=0.5,
        ignored="consumed_inputs",
        takes=Takes(alpha=HELD, beta=HELD),
    ),
    pair("Gelu", "serde.gelu", since=20, approximate="none"),
    # The function that defines Swish has a constant of one axis, which a scalar would take on.
    writes("Swish", "serde.swish", "alpha", since=24, takes=Takes(data=AXES)),
    pair("Celu", "serde.celu", since=(12, 28), alpha=1.0),
    pair("ThresholdedRelu", "serde.thresholded_relu", since=(10, 22), target=1, alpha=1.0),
    pair("Shrink", "serde.shrink", since=9, target=1, lambd=0.5, bias=0.0),
    pair("SwiGLU", "serde.swiglu", since=28, alpha=1.0),
    pair("Softplus", "serde.softplus", since=(1, 22)),
    pair("Softsign", "serde.softsign", since=(1, 22)),
    pair("HardSwish", "serde.hard_swish", since=(14, 22)),
    pair("Mish", "serde.mish", since=(18, 22)),
    writes("Swish", "serde.silu", since=24, takes=Takes(data=AXES)),
)
