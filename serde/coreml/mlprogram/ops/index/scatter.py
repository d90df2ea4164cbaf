"""Elements placed or accumulated by index.

Where updates meet, Relay keeps the last; MIL leaves that open and its runtimes do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import serde.relay as relay
from serde.core.records import dataclass
from serde.coreml.mlprogram.operators import NUMBERS, cast_to, emit_in
from serde.coreml.mlprogram.ops.index.gather import from_start
from serde.coreml.mlprogram.ops.shape.create import positions
from serde.coreml.mlprogram.ops.shape.reshape import transpose
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Any, Call, Dim, Expr, TensorType, is_float, normalize_axis

Mode = Literal["update", "add", "sub", "mul", "div", "max", "min"]
Reduction = Literal["update", "add", "mul", "max", "min"]
Place = Callable[[Expr, Expr, Reduction], Expr]


@dataclass(frozen=True, kw_only=True)
class ScatterAttributes:
    """Attributes of MIL's ``scatter`` and ``scatter_along_axis``."""

    axis: int = 0
    mode: Mode = "add"


def _reduce_updates(ctx: Import, data: Expr, updates: Expr, mode: Mode, place: Place) -> Expr:
    """Return what `place` gives for a mode of Relay that does the same.

    Quotients are those by the products of what meets in a place.
    """
    if mode == "sub":
        return place(data, relay.negative(updates), "add")
    if mode != "div":
        return place(data, updates, mode)
    if not is_float(ctx.type(data).dtype):
        raise Unsupported(f"scatter of mode 'div' with {ctx.type(data).dtype}")
    return relay.divide(data, place(relay.ones_like(data), updates, "mul"))


@OPS.imports("scatter", since=17, ignored=("validate_indices",))
@OPS.imports("scatter", since=1)
def import_scatter(
    ctx: Import, data: Expr, indices: Expr, updates: Expr, *, scatter: ScatterAttributes
) -> Expr:
    """An index names a whole slice; spread over it, it names each element."""
    type_ = ctx.type(data)
    along = normalize_axis(scatter.axis, type_.rank)
    wanted: list[Dim] = [*type_.shape[:along], *ctx.type(indices).shape, *type_.shape[along + 1 :]]
    if any(isinstance(dim, Any) for dim in wanted):
        raise Unsupported("a scatter of slices whose lengths have no names")
    shape = [1] * type_.rank
    shape[along] = -1
    elements = relay.broadcast_to(relay.reshape(indices, shape), wanted)

    def place(target: Expr, values: Expr, how: Reduction) -> Expr:
        return relay.scatter_elements(target, elements, values, along, how)

    return _reduce_updates(ctx, data, updates, scatter.mode, place)


@OPS.imports("scatter_along_axis", since=17, ignored=("validate_indices",))
@OPS.imports("scatter_along_axis", since=1)
def import_scatter_along_axis(
    ctx: Import, data: Expr, indices: Expr, updates: Expr, *, scatter: ScatterAttributes
) -> Expr:
    def place(target: Expr, values: Expr, how: Reduction) -> Expr:
        return relay.scatter_elements(target, indices, values, scatter.axis, how)

    return _reduce_updates(ctx, data, updates, scatter.mode, place)


@OPS.imports("scatter_nd", since=17, ignored=("validate_indices",))
@OPS.imports("scatter_nd", since=1)
def import_scatter_nd(
    ctx: Import, data: Expr, indices: Expr, updates: Expr, *, mode: Mode = "add"
) -> Expr:
    """Relay keeps the tuple of an index in the first axis, MIL in the last."""
    rank = ctx.type(indices).rank
    rows = relay.transpose(indices, axes=[rank - 1, *range(rank - 1)]) if rank > 1 else indices

    def place(target: Expr, values: Expr, how: Reduction) -> Expr:
        return relay.scatter_nd(target, rows, values, how)

    return _reduce_updates(ctx, data, updates, mode, place)


def _fits(node: Call) -> bool:
    """Whether indices are as long as the data along all other axes, and MIL has the mode."""
    data, indices = node.args[0].type, node.args[1].type
    if not isinstance(data, TensorType) or not isinstance(indices, TensorType):
        return False
    place = node.attrs["axis"] % data.rank
    pairs = enumerate(zip(data.shape, indices.shape, strict=True))
    alike = all(have == want for axis, (have, want) in pairs if axis != place)
    return alike and node.attrs["reduction"] != "mean"


@OPS.exports("scatter_elements", when=_fits)
def export_scatter_elements(
    ctx: Export, data: Value, indices: Value, updates: Value, *, axis: int, reduction: str
) -> Value:
    place = axis % ctx.type(data).rank
    indices = from_start(ctx, indices, ctx.type(data).shape[place])
    tensors = {"data": data, "updates": updates}
    return emit_in(
        ctx, NUMBERS, "scatter_along_axis", tensors, indices=indices, axis=place, mode=reduction
    )


def _shape(x: Expr) -> tuple[Dim, ...]:
    return x.checked_type.shape if isinstance(x.checked_type, TensorType) else ()


def _dtype(x: Expr) -> str:
    return x.checked_type.dtype if isinstance(x.checked_type, TensorType) else "float32"


@OPS.expands("scatter_elements")
def expand_scatter_elements(
    data: Expr, indices: Expr, updates: Expr, *, axis: int, reduction: Reduction | Literal["mean"]
) -> Expr:
    """A mean is a sum over a count; fewer indices become tuples that name all axes."""
    if reduction == "mean":
        ones = [relay.ones(_shape(each), _dtype(data)) for each in (data, updates)]
        total = relay.scatter_elements(data, indices, updates, axis, "add")
        return relay.divide(total, relay.scatter_elements(ones[0], indices, ones[1], axis, "add"))
    shape, rank = _shape(indices), len(_shape(data))
    if any(isinstance(dim, Any) for dim in shape):
        raise Unsupported("indices whose lengths have no names")
    place, parts = axis % rank, []
    for each in range(rank):
        if each == place:
            parts.append(_wrap_negative(relay.cast(indices, "int32"), _shape(data)[place]))
            continue
        steps: list[Dim | int] = [1] * rank
        steps[each] = -1
        row = relay.reshape(positions(shape[each], indices, each, "int32"), steps)
        parts.append(relay.broadcast_to(row, shape))
    return relay.scatter_nd(data, relay.stack(parts, axis=0), updates, reduction)


def _wrap_negative(indices: Expr, length: Dim) -> Expr:
    """Return indices with negative ones counted from the start."""
    if not isinstance(length, int):
        raise Unsupported("indices that may be negative along a length that is not fixed")
    zero, count = relay.const(0, "int32"), relay.const(length, "int32")
    return relay.where(relay.less(indices, zero), relay.add(indices, count), indices)


@OPS.exports("scatter_nd")
def export_scatter_nd(
    ctx: Export, data: Value, indices: Value, updates: Value, *, mode: str
) -> Value:
    """Relay keeps the tuple of an index in the first axis, MIL in the last."""
    rank = ctx.type(indices).rank
    rows = transpose(ctx, cast_to(ctx, indices, "int32"), [*range(1, rank), 0])
    if rank == 1:
        raise Unsupported("one index alone", hint="give it an axis in front")
    tensors = {"data": data, "updates": updates}
    return emit_in(ctx, NUMBERS, "scatter_nd", tensors, indices=rows, mode=mode)
