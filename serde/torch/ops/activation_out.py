"""Activations as they are written."""

from __future__ import annotations

from functools import partial

import numpy as np

from serde.errors import Unsupported
from serde.relay.ir.dims import same_length
from serde.relay.ir.expr import Call
from serde.relay.ir.shapes import is_float
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import reshape
from serde.walk.pairs import writes

_SELU = {"alpha": 1.6732632423543772, "gamma": 1.0507009873554805}


@OPS.exports("nn.relu")
def export_relu(ctx: ExportContext, data: Value) -> Value:
    """Nothing happens to numbers without a sign."""
    return data if ctx.type(data).dtype.startswith("uint") else ctx.call("F.relu", data)


def _export_with_alpha(ctx: ExportContext, data: Value, *, target: str, alpha: float) -> Value:
    return ctx.call(target, data, alpha=alpha) if alpha != 1 else ctx.call(target, data)


for _name, _target in {"serde.celu": "F.celu", "serde.elu": "F.elu"}.items():
    OPS.exports(_name)(partial(_export_with_alpha, target=_target))


@OPS.exports("nn.leaky_relu")
def export_leaky_relu(ctx: ExportContext, data: Value, *, alpha: float) -> Value:
    """PyTorch has it of floats; of integers, the factor is cut to one."""
    if is_float(ctx.type(data).dtype):
        return ctx.call("F.leaky_relu", data, alpha)
    if ctx.type(data).dtype.startswith("uint"):
        return data
    below = ctx.infix("*", data, int(alpha))
    return ctx.call("torch.where", ctx.infix(">", data, 0), data, below)


@OPS.exports("nn.prelu")
def export_prelu(ctx: ExportContext, data: Value, alpha: Value, *, axis: int) -> Value:
    """PyTorch's channels are on axis 1."""
    rank = ctx.type(data).rank
    (count,) = ctx.type(alpha).shape
    if not is_float(ctx.type(data).dtype):
        raise Unsupported(f"a parametric activation of {ctx.type(data).dtype}")
    if axis % rank == 1 or (rank == 1 and count == 1):
        if ctx.is_weight(alpha) and isinstance(count, int):
            return ctx.layer("nn.PReLU", (data,), {"weight": alpha}, num_parameters=count)
        return ctx.call("F.prelu", data, alpha)
    shape = [1] * (rank - axis % rank - 1)
    slope = reshape(ctx, alpha, (-1, *shape)) if shape else alpha
    below = ctx.infix("*", data, slope)
    return ctx.call("torch.where", ctx.infix(">", data, 0), data, below)


@OPS.exports("serde.hardmax")
def export_hardmax(ctx: ExportContext, data: Value, *, axis: int) -> Value:
    place = ctx.method(data, "argmax", axis, keepdim=True)
    return ctx.method(ctx.call("torch.zeros_like", data), "scatter", axis, place, 1.0)


@OPS.exports("serde.gelu")
def export_gelu(ctx: ExportContext, data: Value, *, approximate: str) -> Value:
    if approximate == "none":
        return ctx.call("F.gelu", data)
    return ctx.call("F.gelu", data, approximate=approximate)


@OPS.exports("serde.selu")
def export_selu(ctx: ExportContext, data: Value, *, alpha: float, gamma: float) -> Value:
    """PyTorch has it with the constants of the paper."""
    if {"alpha": alpha, "gamma": gamma} == _SELU:
        return ctx.call("F.selu", data)
    return ctx.infix("*", gamma, ctx.call("F.elu", data, alpha=alpha))


@OPS.exports("serde.softplus")
def export_softplus(ctx: ExportContext, data: Value) -> Value:
    """Above a threshold PyTorch returns the data: at 20 that is as near as float32 can tell."""
    if ctx.type(data).dtype == "float64":
        return ctx.call("F.softplus", data, threshold=40.0)
    return ctx.call("F.softplus", data)


@OPS.exports("serde.hard_sigmoid")
def export_hard_sigmoid(ctx: ExportContext, data: Value, *, alpha: float, beta: float) -> Value:
    if np.float32(alpha) == np.float32(1 / 6) and beta == 0.5:
        return ctx.call("F.hardsigmoid", data)
    line = ctx.infix("+", ctx.infix("*", alpha, data), beta)
    return ctx.call("torch.clamp", line, 0.0, 1.0)


@OPS.exports("serde.swish")
def export_swish(ctx: ExportContext, data: Value, *, alpha: float) -> Value:
    if alpha == 1:
        return ctx.call("F.silu", data)
    gate = ctx.call("torch.sigmoid", ctx.infix("*", alpha, data))
    return ctx.infix("*", data, gate)


@OPS.exports("serde.swiglu")
def export_swiglu(ctx: ExportContext, gate: Value, value: Value, *, alpha: float) -> Value:
    return ctx.infix("*", export_swish(ctx, gate, alpha=alpha), value)


@OPS.exports("serde.thresholded_relu")
def export_thresholded_relu(ctx: ExportContext, data: Value, *, alpha: float) -> Value:
    """NaN, which ``F.threshold`` keeps, becomes zero."""
    return ctx.call("torch.where", ctx.infix(">", data, alpha), data, 0.0)


@OPS.exports("serde.shrink")
def export_shrink(ctx: ExportContext, data: Value, *, lambd: float, bias: float) -> Value:
    """NaN, which PyTorch's forms keep, becomes zero."""
    lowered = ctx.infix("-", data, bias) if bias else data
    raised = ctx.infix("+", data, bias) if bias else data
    rest = ctx.call("torch.where", ctx.infix(">", data, lambd), lowered, 0.0)
    return ctx.call("torch.where", ctx.infix("<", data, -lambd), raised, rest)


def _has_no_cap(call: Call) -> bool:
    return call.attrs["softcap"] is None


@OPS.exports("serde.attention", when=_has_no_cap)
def export_attention(
    ctx: ExportContext,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    *,
    scale: float | None,
    is_causal: bool,
) -> Value:
    """PyTorch takes a mask or is causal; both become one mask."""
    options: dict[str, object] = {}
    if mask is not None and is_causal:
        options["attn_mask"] = ctx.call(ctx.helper("causal_mask"), query, key, mask)
    elif mask is not None:
        options["attn_mask"] = mask
    elif is_causal:
        options["is_causal"] = True
    if scale is not None:
        options["scale"] = scale
    if not same_length(ctx.type(query).shape[1], ctx.type(key).shape[1]):
        options["enable_gqa"] = True
    return ctx.call("F.scaled_dot_product_attention", query, key, value, **options)


OPS.pairs(
    writes("F.softmax", ("nn.softmax", "nn.fast_softmax"), "dim", renamed={"dim": "axis"}),
    writes("F.log_softmax", "nn.log_softmax", "dim", renamed={"dim": "axis"}),
    writes("F.hardswish", "serde.hard_swish"),
    writes("F.logsigmoid", "serde.log_sigmoid"),
    writes("F.mish", "serde.mish"),
    writes("F.silu", "serde.silu"),
    writes("F.softsign", "serde.softsign"),
)
