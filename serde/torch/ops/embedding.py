"""Rows of tables, and bags of them."""

from __future__ import annotations

from typing import Final

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, call
from serde.torch.ops.reduce.norm import vector_norm
from serde.torch.ops.table import OPS, Import, SymInt

_MODES: Final = ("sum", "mean", "max")


@OPS.imports("aten::embedding", ignored=("padding_idx", "scale_grad_by_freq", "sparse"))
def import_embedding(ctx: Import, weight: Expr, indices: Expr) -> Expr:
    """The row for padding is a row like others; it has no gradient."""
    return relay.take(weight, indices, axis=0, mode="fast")


def build_bags(
    ctx: Import, weight: Expr, indices: Expr, offsets: Expr | None, factors: Expr | None, mode: int,
    include_last_offset: bool, padding_idx: int | None,
) -> Expr:  # fmt: skip
    """Return bags of rows; indices with two axes have a bag in each row."""
    if not 0 <= mode < len(_MODES):
        raise Unsupported(f"mode {mode} of bags is unknown")
    if ctx.dtype(indices) not in ("int32", "int64"):
        indices = ctx.cast(indices, "int64")
    return call(
        "serde.embedding_bag", weight, indices,
        None if offsets is None else ctx.cast(offsets, ctx.dtype(indices)), factors,
        mode=_MODES[mode], include_last_offset=include_last_offset, padding_idx=padding_idx,
    )  # fmt: skip


@OPS.imports("aten::embedding_bag", ignored=("scale_grad_by_freq", "sparse"))
def import_embedding_bag(
    ctx: Import, weight: Expr, indices: Expr, offsets: Expr, per_sample_weights: Expr | None = None,
    *, mode: int = 0, include_last_offset: bool = False, padding_idx: SymInt | None = None,
) -> tuple[Expr, ...]:  # fmt: skip
    """What stands beside the bags only the gradient reads."""
    row = None if padding_idx is None else ctx.fixed(padding_idx)
    bags = build_bags(
        ctx, weight, indices, offsets, per_sample_weights, mode, include_last_offset, row
    )
    return bags, ctx.unread(), ctx.unread(), ctx.unread()


@OPS.imports(
    "aten::_embedding_bag", "aten::_embedding_bag_forward_only",
    ignored=("scale_grad_by_freq", "sparse"),
)  # fmt: skip
def import_inner_embedding_bag(
    ctx: Import, weight: Expr, indices: Expr, offsets: Expr, per_sample_weights: Expr | None = None,
    *, mode: int = 0, include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[Expr, ...]:  # fmt: skip
    """Here a negative row of padding is none, while above it counts from the end."""
    row = None if padding_idx < 0 else padding_idx
    bags = build_bags(
        ctx, weight, indices, offsets, per_sample_weights, mode, include_last_offset, row
    )
    return bags, ctx.unread(), ctx.unread(), ctx.unread()


@OPS.imports("aten::embedding_renorm")
def import_embedding_renorm(
    ctx: Import, self: Expr, indices: Expr, *, max_norm: float, norm_type: float
) -> Expr:
    """Rows that are looked up are brought to `max_norm` where they are longer."""
    dtype = ctx.dtype(self)
    places = relay.reshape(indices, (-1,))
    (rows,) = ctx.static_lengths(self, [0])
    none = relay.zeros((rows,), "int32")
    ones = relay.cast(relay.ones_like(places), "int32")
    hit = relay.scatter_elements(none, places, ones, axis=0, reduction="update")
    length = vector_norm(ctx, self, norm_type, (1,), True)
    most = ctx.scalar(max_norm, dtype)
    shorter = relay.divide(most, relay.add(length, ctx.scalar(1e-7, dtype)))
    long = relay.logical_and(
        relay.expand_dims(relay.cast(hit, "bool"), axis=1), relay.greater(length, most)
    )
    return relay.where(long, relay.multiply(self, shorter), self)


@OPS.imports("aten::embedding_dense_backward")
def import_embedding_backward(
    ctx: Import,
    grad_output: Expr,
    indices: Expr,
    *,
    num_weights: SymInt,
    padding_idx: SymInt,
    scale_grad_by_freq: bool,
) -> Expr:
    """Gradients are added to the rows that were looked up, those of padding left out."""
    if scale_grad_by_freq:
        raise Unsupported("gradients of rows over how often they are looked up")
    (width,) = ctx.static_lengths(grad_output, [-1])
    dtype = ctx.dtype(grad_output)
    rows = relay.reshape(grad_output, (-1, width))
    places = relay.reshape(indices, (-1, 1))
    padding = ctx.fixed(padding_idx)
    if padding >= 0:
        kept = relay.not_equal(places, ctx.scalar(padding, ctx.dtype(indices)))
        rows = relay.where(kept, rows, ctx.scalar(0, dtype))
    empty = relay.zeros((ctx.fixed(num_weights), width), dtype)
    every = relay.repeat(places, width, axis=1)
    return relay.scatter_elements(empty, every, rows, axis=0, reduction="add")
