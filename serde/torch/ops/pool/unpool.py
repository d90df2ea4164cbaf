"""The partial inverse of max pooling."""

from __future__ import annotations

import math
from collections.abc import Callable

import serde.relay as relay
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext
from serde.torch.ops.conv.windows import Sizes, per_axis
from serde.torch.ops.table import OPS


def _make_max_unpool(ndim: int) -> Callable[..., Expr]:
    def import_max_unpool(
        ctx: ImportContext, self: Expr, indices: Expr, *, output_size: Sizes
    ) -> Expr:
        """Indices count the elements of one channel; where no maximum goes it is zero."""
        sizes = per_axis(ctx, output_size, ndim, "output_size")
        batched = ctx.type(self).rank == ndim + 2
        rows, places = (x if batched else relay.expand_dims(x, axis=0) for x in (self, indices))
        rows, places = (relay.reshape(x, (0, 0, -1)) for x in (rows, places))
        head = ctx.type(rows).shape[:2]
        shape = (*head, math.prod(sizes))
        empty = relay.zeros(shape, ctx.dtype(self))
        filled = relay.scatter_elements(empty, places, rows, axis=2, reduction="update")
        found = relay.reshape(filled, (0, 0, *sizes))
        return found if batched else relay.squeeze(found, axis=[0])

    return import_max_unpool


OPS.imports("aten::max_unpool2d")(_make_max_unpool(2))
OPS.imports("aten::max_unpool3d", ignored=("stride", "padding"))(_make_max_unpool(3))
