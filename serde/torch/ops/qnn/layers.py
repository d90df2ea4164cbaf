"""Quantised layers: convolutions and dense ones, tables of bytes, normalisations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any as AnyValue, Final

import numpy as np

import serde.relay as relay
from serde.core import Array, dataclass
from serde.errors import Unsupported
from serde.relay.ir import Constant, Expr, call
from serde.torch.ops.conv.windows import SPATIAL
from serde.torch.ops.embedding import build_bags
from serde.torch.ops.norm.layer import import_layer_norm
from serde.torch.ops.norm.plain import import_batch_norm, import_group_norm, import_instance_norm
from serde.torch.ops.qnn.parameters import (
    ACTIVATIONS,
    Result,
    along,
    of_reals,
    parameter,
    round_levels,
    scale_array,
)
from serde.torch.ops.table import OPS, Import
from serde.torch.quantization import PackedParams


@dataclass(frozen=True)
class Input:
    """What enters a layer: integers, their scale and zero point, which may be computed."""

    data: Expr
    scale: Expr
    zero_point: Expr
    known_scale: Array | None = None


def read_input(ctx: Import, x: Expr) -> Input:
    """Return a quantised tensor as what enters a layer."""
    given = ctx.quantization(x)
    if given.axis is not None:
        raise Unsupported("a layer over data that are quantised channel by channel")
    scale = scale_array(ctx, given.scale).astype(np.float32)
    return Input(x, Constant(scale), parameter(ctx, given.zero_point, "int32"), scale)


def sum_products(ctx: Import, given: Input, packed: PackedParams) -> Expr:
    """Return sums of products of integers, less their zero points, in int32."""
    if packed.scale is None or packed.zero_point is None:
        raise Unsupported("a quantised layer whose weight is not quantised")
    zero = scale_array(ctx, packed.zero_point).astype(np.int32)
    if zero.ndim and not zero.any():
        zero = np.zeros((), np.int32)
    weight_scale = Constant(scale_array(ctx, packed.scale).astype(np.float32))
    rest = (given.zero_point, Constant(zero), given.scale, weight_scale)
    if packed.kind == "linear":
        (units,) = ctx.static_lengths(packed.weight, [0])
        dense = partial(call, "qnn.dense", units=units, out_dtype=np.dtype(np.int32))
        return dense(given.data, packed.weight, *rest)
    return _convolve(ctx, given.data, packed, rest)


def _convolve(ctx: Import, x: Expr, packed: PackedParams, rest: tuple[Expr, ...]) -> Expr:
    """Return sums over windows; one axis is the second of two, of which the first has length 1."""
    ndim = ctx.type(packed.weight).rank - 2
    if ndim == 2 and ctx.type(x).rank == 3:
        image = _convolve(ctx, relay.expand_dims(x, axis=2), packed, rest)
        return relay.squeeze(image, axis=[2])
    kernel = ctx.static_lengths(packed.weight, range(2, ndim + 2))
    window: dict[str, AnyValue] = {
        "strides": packed.stride,
        "padding": packed.padding * 2,
        "dilation": packed.dilation,
        "groups": packed.groups,
        "kernel_size": kernel,
        "data_layout": "NC" + SPATIAL[ndim],
        "kernel_layout": ("IO" if packed.transpose else "OI") + SPATIAL[ndim],
        "out_dtype": np.dtype(np.int32),
    }
    if packed.transpose:
        window["output_padding"] = packed.output_padding
    shape = ctx.type(packed.weight).shape
    channels = shape[1] * packed.groups if packed.transpose else shape[0]
    if ndim == 2:
        name = "qnn.conv2d_transpose" if packed.transpose else "qnn.conv2d"
        return call(name, x, packed.weight, *rest, channels=channels, **window)
    data_zero, weight_zero, *_ = rest
    data = relay.subtract(relay.cast(x, "int32"), data_zero)
    weight = relay.cast(packed.weight, "int32")
    if np.any(ctx.constant(weight_zero)):
        raise Unsupported("a convolution over three axes whose weight has a zero point")
    name = f"conv{ndim}d_transpose" if packed.transpose else f"conv{ndim}d"
    found: Expr = getattr(relay.nn, name)(data, weight, channels=channels, **window)
    return found


def scale_products(ctx: Import, sums: Expr, packed: PackedParams, given: Input) -> Expr:
    """Return sums as the floats that they stand for, the bias added."""
    axis = ctx.type(sums).rank - 1 if packed.kind == "linear" else 1
    known = None if packed.scale is None else scale_array(ctx, packed.scale)
    weight_scale = (np.ones(()) if known is None else known).astype(np.float32)
    if given.known_scale is not None:
        factor: Expr = Constant(
            along(ctx, sums, np.asarray(given.known_scale * weight_scale), axis)
        )
    else:
        factor = relay.multiply(Constant(along(ctx, sums, weight_scale, axis)), given.scale)
    found = relay.multiply(relay.cast(sums, "float32"), factor)
    return found if packed.bias is None else relay.nn.bias_add(found, packed.bias, axis=axis)


def _rescale_dense(
    ctx: Import, sums: Expr, packed: PackedParams, given: Input, scale: float
) -> Expr:
    """Return sums in steps of the result's scale, as the kernel of dense layers computes them."""
    axis = ctx.type(sums).rank - 1
    if packed.scale is None or given.known_scale is None:
        raise Unsupported("a dense layer of which a scale is not known")
    weight_scale = scale_array(ctx, packed.scale).astype(np.float32)
    product = np.asarray(given.known_scale * weight_scale)
    found: Expr = relay.cast(sums, "float32")
    if packed.bias is not None:
        steps = ctx.fold(relay.divide(packed.bias, Constant(product)))
        found = relay.nn.bias_add(found, steps, axis=axis)
    ratio = along(ctx, sums, np.asarray(product / np.float32(scale)), axis)
    return relay.multiply(found, Constant(ratio))


def _import_layer(
    ctx: Import,
    qx: Expr,
    *,
    packed_weight: PackedParams,
    result: Result,
    activate: Callable[[Expr], Expr] | None,
) -> Expr:
    given = read_input(ctx, qx)
    sums = sum_products(ctx, given, packed_weight)
    if packed_weight.kind != "linear":
        real = scale_products(ctx, sums, packed_weight, given)
        return result.quantize(ctx, activate(real) if activate else real, qx, "before")
    level = _rescale_dense(ctx, sums, packed_weight, given, result.output_scale)
    level = activate(level) if activate else level
    found = round_levels(level, ctx.dtype(qx), result.output_zero_point)
    return ctx.quantized(found, result.quantization)


LINEAR: Final = {"X": "qx", "W_prepack": "packed_weight"}
"""What dense layers call the parameters of convolutions."""

_LINEAR_RESULT: Final = {"Y_scale_i": "output_scale", "Y_zero_point_i": "output_zero_point"}

for _suffix, _activate in ACTIVATIONS.items():
    _layer = partial(_import_layer, activate=_activate)
    OPS.imports(*(f"quantized::conv{ndim}d{_suffix}" for ndim in SPATIAL))(_layer)
    OPS.imports(f"quantized::linear{_suffix}", renamed=LINEAR | _LINEAR_RESULT)(_layer)
OPS.imports(*(f"quantized::conv_transpose{ndim}d" for ndim in SPATIAL))(
    partial(_import_layer, activate=None)
)


def _parameters(ctx: Import, packed: PackedParams) -> tuple[Expr, Expr]:
    """Return scales and zero points of rows, in float32."""
    scale, zero = packed.scale, packed.zero_point
    if not isinstance(scale, Expr) or not isinstance(zero, Expr):
        raise Unsupported("a quantised table without a scale for each row")
    return ctx.cast(scale, "float32"), ctx.cast(zero, "float32")


def _restore(rows: Expr, scale: Expr, zero: Expr) -> Expr:
    steps = relay.subtract(relay.cast(rows, "float32"), relay.expand_dims(zero, axis=-1))
    return relay.multiply(steps, relay.expand_dims(scale, axis=-1))


@OPS.imports("quantized::embedding_byte", ignored=("pruned_weights",))
def import_embedding_byte(ctx: Import, indices: Expr, *, weight: PackedParams) -> Expr:
    parts = (weight.weight, *_parameters(ctx, weight))
    return _restore(*(relay.take(each, indices, axis=0, mode="fast") for each in parts))


@OPS.imports(
    "quantized::embedding_bag_byte", ignored=("pruned_weights", "scale_grad_by_freq", "mode")
)
def import_embedding_bag_byte(
    ctx: Import, indices: Expr, offsets: Expr | None = None, per_sample_weights: Expr | None = None,
    compressed_indices_mapping: Expr | None = None,
    *, weight: PackedParams, include_last_offset: bool = False,
) -> Expr:  # fmt: skip
    """Bags are always sums."""
    if compressed_indices_mapping is not None:
        raise Unsupported("a table of which rows are left out")
    table = _restore(weight.weight, *_parameters(ctx, weight))
    return build_bags(
        ctx, table, indices, offsets, per_sample_weights, 0, include_last_offset, None
    )


_BATCH_NORM: Final = {"qx": "input", "mean": "running_mean", "var": "running_var"}
for _suffix, _activate in ACTIVATIONS.items():
    _batch_norm = of_reals(import_batch_norm, "before", _activate)
    _names = ("batch_norm", *(f"batch_norm{ndim}d" for ndim in SPATIAL))
    OPS.imports(*(f"quantized::{each}{_suffix}" for each in _names), renamed=_BATCH_NORM)(
        partial(_batch_norm, training=False)
    )
OPS.imports("quantized::layer_norm")(of_reals(import_layer_norm, "before"))
OPS.imports("quantized::group_norm")(of_reals(import_group_norm, "before"))
OPS.imports("quantized::instance_norm")(
    partial(of_reals(import_instance_norm, "before"), use_input_stats=True)
)
