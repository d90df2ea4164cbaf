"""Gradients of normalisations."""

from __future__ import annotations

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.table import OPS


@OPS.imports("aten::native_layer_norm_backward")
def import_layer_norm_backward(
    ctx: ImportContext,
    grad_out: Expr,
    input: Expr,
    mean: Expr,
    rstd: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    *,
    normalized_shape: tuple[SymInt, ...],
    output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:
    """The gradients of data, weight and bias, of which none is asked for where a mask says so."""
    rank = ctx.type(input).rank
    start = rank - len(normalized_shape)
    inner, outer = list(range(start, rank)), list(range(start))
    level = relay.multiply(relay.subtract(input, mean), rstd)
    weighted = grad_out if weight is None else relay.multiply(grad_out, weight)
    of_mean = relay.mean(weighted, axis=inner, keepdims=True)
    of_level = relay.mean(relay.multiply(weighted, level), axis=inner, keepdims=True)
    rest = relay.add(of_mean, relay.multiply(level, of_level))
    found = [
        relay.multiply(rstd, relay.subtract(weighted, rest)),
        _sum(relay.multiply(grad_out, level), outer),
        _sum(grad_out, outer),
    ]
    return tuple(
        each if asked else ctx.unread() for each, asked in zip(found, output_mask, strict=True)
    )


def _sum(x: Expr, axes: list[int]) -> Expr:
    return relay.sum(x, axis=axes) if axes else x


@OPS.imports("aten::native_group_norm_backward", ignored=("N", "HxW"))
def import_group_norm_backward(
    ctx: ImportContext,
    grad_out: Expr,
    input: Expr,
    mean: Expr,
    rstd: Expr,
    weight: Expr | None = None,
    *,
    C: SymInt,  # noqa: N803
    group: int,
    output_mask: tuple[bool, ...],
) -> tuple[Expr, ...]:
    """Groups of channels become an axis, over which and all behind it the statistics are."""
    if group < 1:
        raise Unsupported(f"{group} groups")
    each = ctx.fixed(C) // group
    data, grad = (relay.reshape(x, (0, group, each, -1)) for x in (input, grad_out))
    centre, inverse = (relay.reshape(x, (-1, group, 1, 1)) for x in (mean, rstd))
    level = relay.multiply(relay.subtract(data, centre), inverse)
    weighted = grad
    if weight is not None:
        weighted = relay.multiply(grad, relay.reshape(weight, (1, group, each, 1)))
    of_mean = relay.mean(weighted, axis=[2, 3], keepdims=True)
    of_level = relay.mean(relay.multiply(weighted, level), axis=[2, 3], keepdims=True)
    rest = relay.add(of_mean, relay.multiply(level, of_level))
    whole = relay.multiply(inverse, relay.subtract(weighted, rest))
    found = [
        relay.reshape_like(whole, input),
        relay.reshape(relay.sum(relay.multiply(grad, level), axis=[0, 3]), (-1,)),
        relay.reshape(relay.sum(grad, axis=[0, 3]), (-1,)),
    ]
    return tuple(
        one if asked else ctx.unread() for one, asked in zip(found, output_mask, strict=True)
    )
