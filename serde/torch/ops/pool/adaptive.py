"""Maximum and mean over as many parts of each axis as the result has elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array
from serde.errors import Unsupported
from serde.relay.ir import Expr, is_float
from serde.torch.ops.conv.windows import SPATIAL, Sizes, over_batch, per_axis
from serde.torch.ops.pool.geometry import UNKNOWN_PLACES, has_fixed_lengths
from serde.torch.ops.table import OPS, Export, Import, Value


def _adaptive_pool(ctx: Import, x: Expr, kind: str, ndim: int, output_size: Sizes) -> Expr:
    sizes = per_axis(ctx, output_size, ndim, "output_size")
    build = getattr(relay.nn, f"adaptive_{kind}_pool{ndim}d")
    layout = "NC" + SPATIAL[ndim]
    return over_batch(ctx, x, ndim, lambda data: build(data, output_size=sizes, layout=layout))


def make_adaptive_avg_pool(ndim: int) -> Callable[..., Expr]:
    def import_adaptive_avg_pool(ctx: Import, self: Expr, *, output_size: Sizes) -> Expr:
        return _adaptive_pool(ctx, self, "avg", ndim, output_size)

    return import_adaptive_avg_pool


def _import_adaptive_max_pool(
    ctx: Import, self: Expr, *, ndim: int, output_size: Sizes
) -> tuple[Expr, ...]:
    """Indices count the elements of one channel."""
    sizes = per_axis(ctx, output_size, ndim, "output_size")
    found = _adaptive_pool(ctx, self, "max", ndim, output_size)
    if set(sizes) == {1}:
        return found, over_batch(ctx, self, ndim, lambda x: _find_greatest(x, ndim))
    if not has_fixed_lengths(ctx, self, ndim):
        return found, ctx.unread(UNKNOWN_PLACES)
    lengths = ctx.static_lengths(self, range(-ndim, 0))
    flat = _elements_of_parts(lengths, sizes)

    def locate(x: Expr) -> Expr:
        rows = relay.reshape(x, (0, 0, -1))
        parts = relay.take(rows, relay.Constant(flat), axis=2, mode="fast")
        which = relay.cast(relay.argmax(parts, axis=3), "int64")
        first = relay.const(allocation.arange(len(flat)) * flat.shape[1], "int64")
        place = relay.add(which, first)
        found = relay.take(relay.Constant(flat.reshape(-1)), place, axis=0, mode="fast")
        return relay.reshape(found, (0, 0, *sizes))

    return found, over_batch(ctx, self, ndim, locate)


def _find_greatest(x: Expr, ndim: int) -> Expr:
    """Return where the greatest element of each channel is."""
    rows = relay.reshape(x, (0, 0, -1))
    place = relay.cast(relay.argmax(rows, axis=2), "int64")
    return relay.expand_dims(place, axis=2, num_newaxis=ndim)


def _elements_of_parts(lengths: Sequence[int], sizes: Sequence[int]) -> Array:
    """Return the numbers of the elements of each part, its last repeated up to one length."""
    found: Array = np.zeros((1, 1), np.int64)
    for length, count in zip(lengths, sizes, strict=True):
        number = allocation.arange(count)
        start, stop = number * length // count, -(-(number + 1) * length // count)
        most = int((stop - start).max(initial=0))
        blank = allocation.zeros((len(found) * count, found.shape[1] * most), np.int64)
        own = np.minimum(start[:, None] + allocation.arange(most), stop[:, None] - 1)
        both = found[:, None, :, None] * length + own[None, :, None, :]
        found = both.reshape(blank.shape)
    return found


for _ndim in SPATIAL:
    OPS.imports(f"aten::adaptive_avg_pool{_ndim}d")(make_adaptive_avg_pool(_ndim))
    OPS.imports(f"aten::adaptive_max_pool{_ndim}d")(partial(_import_adaptive_max_pool, ndim=_ndim))
OPS.imports("aten::_adaptive_avg_pool2d")(make_adaptive_avg_pool(2))
OPS.imports("aten::_adaptive_avg_pool3d")(make_adaptive_avg_pool(3))


@OPS.exports("nn.global_avg_pool2d")
def export_global_avg_pool(ctx: Export, data: Value) -> Value:
    return ctx.method(data, "mean", (2, 3), keepdim=True)


@OPS.exports("nn.global_max_pool2d")
def export_global_max_pool(ctx: Export, data: Value) -> Value:
    return ctx.method(data, "amax", (2, 3), keepdim=True)


def _export_adaptive_pool(
    ctx: Export, data: Value, *, name: str, rank: int, output_size: tuple[int, ...]
) -> Value:
    """Without a size every element is a part of its own."""
    dtype = ctx.type(data).dtype
    if not is_float(dtype):
        raise Unsupported(f"an adaptive pooling of {dtype}")
    if not output_size:
        return data
    size = output_size[0] if len(set(output_size)) == 1 else output_size
    return ctx.call(f"F.adaptive_{name}_pool{rank}d", data, size)


for _rank in SPATIAL:
    for _name in ("avg", "max"):
        OPS.exports(f"nn.adaptive_{_name}_pool{_rank}d")(
            partial(_export_adaptive_pool, name=_name, rank=_rank)
        )
