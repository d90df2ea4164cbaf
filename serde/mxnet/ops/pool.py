"""Pooling. The windows of ``pooling_convention="full"`` may reach past the padding."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.core import dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.mxnet.ops.conv.direct import layouts, per_axis
from serde.mxnet.ops.elementwise.scalars import scalar_like
from serde.mxnet.ops.elementwise.unary import import_cbrt
from serde.mxnet.ops.table import COMPUTED, FLOATS, OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, lowest, split_padding, tensor_type
from serde.relay.op.pool.reduction import Pooling
from serde.walk.expansion.pool import pool_expansion
from serde.walk.takes import Takes, all_are

PoolType = Literal["max", "avg", "sum", "lp"]


@dataclass(frozen=True, kw_only=True)
class PoolAttributes:
    """Attributes that the pools of MXNet share."""

    kernel: tuple[int, ...] = ()
    pool_type: PoolType = "max"
    global_pool: bool = False
    pooling_convention: Literal["valid", "full", "same"] = "valid"
    stride: tuple[int, ...] = ()
    pad: tuple[int, ...] = ()
    p_value: int | None = None
    count_include_pad: bool | None = True
    layout: str | None = None


@OPS.imports("Pooling", "Pooling_v1", ignored=("cudnn_off",))
def import_pooling(ctx: Import, data: Expr, *, pool: PoolAttributes) -> Expr:
    """Of a global pool the window is all there is; lp takes a root of sums of powers."""
    ndim, pool_type = ctx.type(data).rank - 2, pool.pool_type
    data_layout, _ = layouts(ndim, pool.layout)
    if pool_type == "lp" and pool.p_value not in (1, 2, 3):
        raise Unsupported(f"p_value={pool.p_value} of lp pooling; MXNet has 1, 2 and 3")
    if pool.global_pool:
        return _global(ctx, data, pool_type, pool.p_value, data_layout)
    if pool.pooling_convention == "same":
        raise Unsupported("pooling_convention='same', which MXNet 1.9.1 itself cannot run")
    if len(pool.kernel) != ndim:
        raise Unsupported(f"kernel: expected {ndim} values, found {len(pool.kernel)}")
    window = _Window(
        ctx, data, pool.kernel, per_axis(pool.stride, ndim, 1, "stride"),
        per_axis(pool.pad, ndim, 0, "pad"), pool.pooling_convention == "full", data_layout,
    )  # fmt: skip
    if pool_type == "max":
        return window.max()
    if pool_type == "avg":
        return window.with_empty(window.average(include_pad=pool.count_include_pad is not False))
    if pool_type == "sum":
        return window.with_empty(window.sum(window.data))
    return window.with_empty(_lp(ctx, window.data, pool.p_value, window.sum))


class _Window:
    """The window of one pooling, and what can be taken over it.

    Where the last position along an axis holds padding alone, or lies past it, the window stops
    before, and what it does not reach is put behind the result.
    """

    def __init__(
        self, ctx: Import, data: Expr, kernel: Sequence[int], strides: Sequence[int],
        pad: Sequence[int], ceil_mode: bool, layout: str,
    ) -> None:  # fmt: skip
        self.ctx = ctx
        self.data = data
        self.kernel = tuple(kernel)
        self.strides = tuple(strides)
        self.pad = [(each, each) for each in pad]
        self.layout = layout
        self.ndim = len(self.kernel)
        self.axes = [layout.index(letter) for letter in "DHW"[3 - self.ndim :]]
        self.empty = [0] * self.ndim
        self.overshoot = [self._overshoot(i) for i in range(self.ndim)] if ceil_mode else None

    def _overshoot(self, i: int) -> int | None:
        """Return how far the last window reaches past the padding; None where it is not known."""
        length = self.ctx.type(self.data).shape[self.axes[i]]
        kernel, stride, pad = self.kernel[i], self.strides[i], self.pad[i][0]
        span = length + 2 * pad - kernel
        excess = (-span) % stride if isinstance(span, int) else None
        most = stride - 1 if excess is None else excess
        if most < kernel - pad or not (pad or most):
            return excess
        if not isinstance(span, int) or pad >= kernel:
            raise Unsupported(
                "pooling_convention='full' with a window that may hold padding only",
                hint="give the lengths of the input as numbers",
            )
        self._drop_last(i, span)
        return 0

    def _drop_last(self, i: int, span: int) -> None:
        """Leave out the last window along an axis, and the data that only it would reach."""
        axis, pad = self.axes[i], self.pad[i][0]
        length = self.ctx.static_lengths(self.data, (axis,))[0]
        end = span // self.strides[i] * self.strides[i] + self.kernel[i] - pad
        if end < length:
            self.data = relay.strided_slice(self.data, [0], [end], axes=[axis])
        self.pad[i] = (pad, max(end - length, 0))
        self.empty[i] = 1

    def with_empty(self, result: Expr, value: float = 0) -> Expr:
        """Return a result with the windows that hold nothing."""
        if not any(self.empty):
            return result
        return self._pad(result, [(0, more) for more in self.empty], value)

    def max(self) -> Expr:
        """The greatest of nothing is the least number that there is."""
        build = getattr(relay.nn, f"max_pool{self.ndim}d")
        result = build(self.data, **self._geometry(self.pad, ceil_mode=not self._fits_evenly()))
        least = lowest(numpy_dtype(self.ctx.type(self.data).dtype))
        return self.with_empty(result, least)

    def average(self, *, include_pad: bool) -> Expr:
        """A mean that counts padding does not count what lies past it."""
        build = getattr(relay.nn, f"avg_pool{self.ndim}d")
        if self._fits_evenly():
            geometry = self._geometry(self.pad, ceil_mode=False)
            return build(self.data, **geometry, count_include_pad=include_pad)
        data, pad, none = self.data, self.pad, [(0, 0)] * self.ndim
        if include_pad and pad != none:
            if None in (self.overshoot or ()):
                # Runtimes fuse a pad into the pooling behind it, and then count past it.
                counted = self._pad(relay.ones_like(data), pad, 1)
                share = self._filled_mean(counted, none)
                return relay.divide(self._filled_mean(data, pad), share)
            data, pad = self._pad(data, pad), none
        return build(data, **self._geometry(pad, ceil_mode=True), count_include_pad=False)

    def sum(self, data: Expr) -> Expr:
        """Zeros past the padding add nothing."""
        mean = self._filled_mean(data, self.pad)
        return relay.multiply(mean, scalar_like(self.ctx, mean, prod(self.kernel)))

    def _filled_mean(self, data: Expr, pad: Sequence[tuple[int, int]]) -> Expr:
        """Return means over whole windows, what they lack past the padding filled with zeros."""
        build = getattr(relay.nn, f"avg_pool{self.ndim}d")
        if not self._fits_evenly():
            spare = self.overshoot or []
            whole = [
                (before, after + (stride - 1 if more is None else more))
                for (before, after), stride, more in zip(pad, self.strides, spare, strict=True)
            ]
            data, pad = self._pad(data, whole), [(0, 0)] * self.ndim
        return build(data, **self._geometry(pad, ceil_mode=False), count_include_pad=True)

    def _fits_evenly(self) -> bool:
        return self.overshoot is None or all(excess == 0 for excess in self.overshoot)

    def _geometry(self, pad: Sequence[tuple[int, int]], *, ceil_mode: bool) -> dict[str, object]:
        return {
            "pool_size": self.kernel,
            "strides": self.strides,
            "padding": (*(before for before, _ in pad), *(after for _, after in pad)),
            "layout": self.layout,
            "ceil_mode": ceil_mode,
        }

    def _pad(self, data: Expr, widths: Sequence[tuple[int, int]], value: float = 0) -> Expr:
        pad_width = [(0, 0)] * len(self.layout)
        for axis, width in zip(self.axes, widths, strict=True):
            pad_width[axis] = width
        return relay.nn.pad(data, pad_width, scalar_like(self.ctx, data, value))


def _global(ctx: Import, data: Expr, pool_type: PoolType, p_value: int | None, layout: str) -> Expr:
    axes = tuple(axis for axis, letter in enumerate(layout) if letter not in "NC")
    ndim = len(axes)
    if pool_type in ("max", "avg") and ndim == 2:
        return getattr(relay.nn, f"global_{pool_type}_pool2d")(data, layout=layout)
    if pool_type == "max":
        return relay.max(data, axis=axes, keepdims=True)
    if pool_type == "avg":
        return relay.mean(data, axis=axes, keepdims=True)

    def total(x: Expr) -> Expr:
        return relay.sum(x, axis=axes, keepdims=True)

    return total(data) if pool_type == "sum" else _lp(ctx, data, p_value, total)


def _lp(ctx: Import, data: Expr, p_value: int | None, total: Callable[[Expr], Expr]) -> Expr:
    """MXNet raises the values themselves, not their magnitudes, to the power."""
    if p_value == 1:
        return total(data)
    if p_value == 2:
        return relay.sqrt(total(relay.multiply(data, data)))
    return import_cbrt(ctx, total(relay.multiply(relay.multiply(data, data), data)))


@OPS.imports("_contrib_AdaptiveAvgPooling2D")
def import_adaptive_avg_pooling(
    ctx: Import, data: Expr, *, output_size: tuple[int, ...] = ()
) -> Expr:
    if len(output_size) > 2:
        raise Unsupported(f"output_size: expected at most 2 values, found {len(output_size)}")
    height, width = (output_size * 2)[:2] if output_size else (1, 1)
    if (height, width) == (1, 1):
        return relay.nn.global_avg_pool2d(data)
    return relay.nn.adaptive_avg_pool2d(data, output_size=(height, width))


_WINDOWS = Takes(data=COMPUTED, dilation=all_are(1))


def _has_mxnet_window(call: Call) -> bool:
    """Whether MXNet has a window: the same on both sides, and on elements that fill it."""
    attrs, data = call.attrs, tensor_type(call.args[0])
    before, after = split_padding(attrs["padding"], data.rank - 2)
    past = attrs["ceil_mode"] and attrs.get("count_include_pad", False)
    spare = [stride - 1 if attrs["ceil_mode"] else 0 for stride in attrs["strides"]]
    return (
        bool(before == after)
        and all(map(operator.lt, map(operator.add, before, spare), attrs["pool_size"]))
        and not any(
            type(length) is int and size > length + 2 * pad
            for size, length, pad in zip(attrs["pool_size"], data.shape[2:], before, strict=True)
        )
        and not past
    )


class RelayPool(Pooling):
    """Attributes of Relay's poolings."""

    def to_mxnet(self, pool_type: PoolType) -> dict[str, AnyValue]:
        """Return the attributes of MXNet, which pads both sides alike and has no dilation."""
        return {
            "kernel": self.pool_size,
            "pool_type": pool_type,
            "stride": self.strides,
            "pad": split_padding(self.padding, len(self.pool_size))[0],
            "pooling_convention": "full" if self.ceil_mode else "valid",
        }


def export_max_pool(ctx: Export, data: Value, *, pool: RelayPool) -> Value:
    return ctx.emit("Pooling", data, **pool.to_mxnet("max"))


def export_avg_pool(ctx: Export, data: Value, *, pool: RelayPool, count_include_pad: bool) -> Value:
    """MXNet counts padding by default."""
    return ctx.emit("Pooling", data, **pool.to_mxnet("avg"), count_include_pad=count_include_pad)


def _work_dtype(dtype: str, kind: str) -> str:
    """Return the dtype that MXNet has windows of, or means, and that holds all values of one."""
    if kind == "avg":
        return "float32" if dtype in ("float16", "float32") else "float64"
    if dtype in ("int64", "bool", *FLOATS):
        return dtype
    return "float32" if dtype in ("float16", "int8", "uint8") else "float64"


for _ndim in (1, 2, 3):
    OPS.exports(f"nn.max_pool{_ndim}d", takes=_WINDOWS, when=_has_mxnet_window)(export_max_pool)
    OPS.exports(f"nn.avg_pool{_ndim}d", takes=_WINDOWS, when=_has_mxnet_window)(export_avg_pool)
    OPS.expands(f"nn.max_pool{_ndim}d")(pool_expansion("max", _work_dtype))
    OPS.expands(f"nn.avg_pool{_ndim}d")(pool_expansion("avg", _work_dtype))


def _global_export(pool_type: Literal["max", "avg"]) -> Callable[..., AnyValue]:
    def export_global_pool(ctx: Export, data: Value) -> Value:
        return ctx.emit("Pooling", data, kernel=(1, 1), pool_type=pool_type, global_pool=True)

    return export_global_pool


OPS.exports("nn.global_max_pool2d", takes=Takes(data=COMPUTED))(_global_export("max"))
OPS.exports("nn.global_avg_pool2d", takes=Takes(data=COMPUTED))(_global_export("avg"))


@OPS.exports(
    "nn.adaptive_avg_pool2d",
    takes=Takes(data=COMPUTED),
    when=lambda call: len(call.attrs["output_size"]) > 0,
)
def export_adaptive_avg_pool(ctx: Export, data: Value, *, output_size: tuple[int, ...]) -> Value:
    return ctx.emit("_contrib_AdaptiveAvgPooling2D", data, output_size=(output_size * 2)[:2])
