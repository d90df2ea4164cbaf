"""Shapes and arrangements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue, Literal

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Expr, TensorType, as_dtype
from serde.relay.lowering.lengths import bounded_lengths
from serde.tflite.ops.table import OPS, Export, Import, Value
from serde.tflite.schema import code_names
from serde.tflite.versions import KERNEL_TYPES
from serde.walk import Takes, pair, reads, writes

OPS.pairs(
    pair(
        "SPACE_TO_DEPTH", "nn.space_to_depth", fixed={"layout": "NHWC"},
        takes=Takes(mode=Literal["DCR", ""]), block_size=0,
    ),
    pair(
        "DEPTH_TO_SPACE", "nn.depth_to_space", fixed={"layout": "NHWC"},
        takes=Takes(mode=Literal["DCR", ""]), block_size=0,
    ),
    reads("PACK", "stack", axis=0, ignored="values_count"),
    reads("STABLEHLO_CONCATENATE", "concatenate", renamed={"dimension": "axis"}, dimension=0),
    reads("MATRIX_SET_DIAG", "matrix_set_diag"),
    reads(
        "REVERSE_SEQUENCE", "reverse_sequence", seq_dim=0, batch_dim=0,
        renamed={"seq_dim": "seq_axis", "batch_dim": "batch_axis"},
    ),
    writes("CONCATENATION", "concatenate", "axis", constants={"fused_activation_function": 0}),
)  # fmt: skip


def pairs_of(ctx: Import, x: Expr) -> list[tuple[int, int]]:
    """Return the rows of a constant of two columns."""
    return [(int(before), int(after)) for before, after in ctx.constant(x).reshape(-1, 2)]


@OPS.imports("RESHAPE", "STABLEHLO_RESHAPE")
def import_reshape(
    ctx: Import, x: Expr, shape: Expr | None = None, *, new_shape: AnyValue = None
) -> Expr:
    """The operand counts where there is one; then the options; then what the file declares."""
    if shape is not None:
        dims = ctx.partial_dims(shape)
        codes = shape if dims is None else dims
    elif new_shape is not None and len(new_shape):
        codes = tuple(map(int, new_shape))
    else:
        made = ctx.told()
        codes = () if made is None else made.shape
    return relay.reshape(x, codes, allowzero=True)


@OPS.imports("SQUEEZE")
def import_squeeze(ctx: Import, x: Expr, *, squeeze_dims: AnyValue = None) -> Expr:
    axes = [] if squeeze_dims is None else [int(each) for each in squeeze_dims]
    if axes:
        return relay.squeeze(x, axis=axes)
    shape = ctx.static_shape(x)
    return relay.squeeze(x, axis=[i for i, length in enumerate(shape) if length == 1])


@OPS.imports("EXPAND_DIMS")
def import_expand_dims(ctx: Import, x: Expr, axis: Expr) -> Expr:
    return relay.expand_dims(x, axis=int(ctx.item(axis)))


@OPS.imports("TRANSPOSE")
def import_transpose(ctx: Import, x: Expr, perm: Expr) -> Expr:
    return relay.transpose(x, ctx.ints(perm))


@OPS.imports("SHAPE")
def import_shape(ctx: Import, x: Expr, *, out_type: int = 0) -> Expr:
    made = ctx.told()
    dtype = code_names("TensorType")[out_type].lower() if made is None else made.dtype
    return relay.shape_of(x, dtype)


@OPS.imports("RANK")
def import_rank(ctx: Import, x: Expr) -> Expr:
    return ctx.const(ctx.rank(x), "int32")


@OPS.imports("UNPACK")
def import_unpack(ctx: Import, x: Expr, *, axis: int = 0, num: int = 0) -> Sequence[Expr]:
    count = ctx.outputs
    parts = [x] if count == 1 else list(relay.split(x, count, axis=ctx.axis(x, axis)))
    return [relay.squeeze(each, axis=[axis]) for each in parts]


@OPS.imports("SPLIT")
def import_split(ctx: Import, axis: Expr, x: Expr, *, num_splits: int = 0) -> Sequence[Expr]:
    """The axis is the first operand."""
    if ctx.outputs == 1:
        return [x]
    return list(relay.split(x, ctx.outputs, axis=ctx.axis(x, int(ctx.item(axis)))))


@OPS.imports("SPLIT_V")
def import_split_v(
    ctx: Import, x: Expr, sizes: Expr, axis: Expr, *, num_splits: int = 0
) -> Sequence[Expr]:
    """One size may be -1: what is left."""
    where, lengths = ctx.axis(x, int(ctx.item(axis))), list(ctx.ints(sizes))
    if len(lengths) == 1:
        return [x]
    if -1 in lengths:
        (whole,) = ctx.static_lengths(x, [where])
        lengths[lengths.index(-1)] = whole - sum(lengths) - 1
    ends = [int(end) for end in np.cumsum(lengths[:-1])]
    return list(relay.split(x, ends, axis=where))


@OPS.imports("TILE")
def import_tile(ctx: Import, x: Expr, multiples: Expr) -> Expr:
    return relay.tile(x, ctx.ints(multiples) if ctx.is_constant(multiples) else multiples)


@OPS.imports("BROADCAST_TO")
def import_broadcast_to(ctx: Import, x: Expr, shape: Expr) -> Expr:
    dims = ctx.dims(shape)
    return relay.broadcast_to(x, shape if dims is None else dims)


@OPS.imports("BROADCAST_ARGS")
def import_broadcast_args(ctx: Import, x: Expr, y: Expr) -> Expr:
    shape = np.broadcast_shapes(ctx.ints(x), ctx.ints(y))
    return ctx.const(shape, ctx.type(x).dtype)


@OPS.imports("FILL")
def import_fill(ctx: Import, dims: Expr, value: Expr) -> Expr:
    shape = ctx.dims(dims)
    return relay.full(value, dims if shape is None else shape, ctx.type(value).dtype)


@OPS.imports("RANGE")
def import_range(ctx: Import, start: Expr, limit: Expr, delta: Expr) -> Expr:
    return relay.arange(start, limit, delta, dtype=ctx.type(start).dtype)


@OPS.imports("REVERSE_V2")
def import_reverse_v2(ctx: Import, x: Expr, axes: Expr) -> Expr:
    for axis in ctx.ints(axes):
        x = relay.reverse(x, axis=axis)
    return x


@OPS.imports("SPACE_TO_BATCH_ND")
def import_space_to_batch_nd(ctx: Import, x: Expr, block_shape: Expr, paddings: Expr) -> Expr:
    return relay.nn.space_to_batch_nd(x, ctx.ints(block_shape), pairs_of(ctx, paddings))


@OPS.imports("BATCH_TO_SPACE_ND")
def import_batch_to_space_nd(ctx: Import, x: Expr, block_shape: Expr, crops: Expr) -> Expr:
    return relay.nn.batch_to_space_nd(x, ctx.ints(block_shape), pairs_of(ctx, crops))


@OPS.imports("PAD")
def import_pad(ctx: Import, x: Expr, paddings: Expr) -> Expr:
    return relay.nn.pad(x, pairs_of(ctx, paddings))


@OPS.imports("PADV2")
def import_padv2(ctx: Import, x: Expr, paddings: Expr, value: Expr) -> Expr:
    return relay.nn.pad(x, pairs_of(ctx, paddings), value)


@OPS.imports("MIRROR_PAD")
def import_mirror_pad(ctx: Import, x: Expr, paddings: Expr, *, mode: int = 0) -> Expr:
    return relay.nn.mirror_pad(x, pairs_of(ctx, paddings), ("REFLECT", "SYMMETRIC")[mode])


@OPS.imports("MATRIX_DIAG")
def import_matrix_diag(ctx: Import, diagonal: Expr) -> Expr:
    type_ = ctx.type(diagonal)
    shape = (*type_.shape, type_.shape[-1])
    return relay.matrix_set_diag(relay.zeros(shape, type_.dtype), diagonal)


@OPS.imports("STABLEHLO_BROADCAST_IN_DIM")
def import_broadcast_in_dim(ctx: Import, x: Expr, *, broadcast_dimensions: AnyValue = None) -> Expr:
    """Axes of the operand become those that the option names."""
    shape = ctx.result().shape
    axes = ctx.axes(broadcast_dimensions, len(shape))
    given = ctx.static_shape(x, len(axes))
    order = sorted(range(len(axes)), key=axes.__getitem__)
    lengths = dict(zip(axes, given, strict=True))
    moved = relay.transpose(x, tuple(order)) if order != list(range(len(axes))) else x
    placed = relay.reshape(moved, tuple(lengths.get(i, 1) for i in range(len(shape))))
    return relay.broadcast_to(placed, shape)


@OPS.imports("STABLEHLO_TRANSPOSE")
def import_stablehlo_transpose(ctx: Import, x: Expr, *, permutation: AnyValue = None) -> Expr:
    return relay.transpose(x, ctx.axes(permutation, ctx.rank(x), all_=True))


@OPS.imports("STABLEHLO_IOTA")
def import_iota(ctx: Import, *, iota_dimension: int = 0) -> Expr:
    made = ctx.result()
    (axis,) = ctx.axes([iota_dimension], len(made.shape))
    steps = relay.cast(
        relay.arange(ctx.const(made.shape[axis], "int64"), dtype="int64"), made.dtype
    )
    ones = len(made.shape) - axis - 1
    steps = relay.expand_dims(steps, 1, ones) if ones else steps
    return relay.broadcast_to(steps, made.shape)


@OPS.imports("STABLEHLO_PAD")
def import_stablehlo_pad(
    ctx: Import,
    x: Expr,
    value: Expr,
    *,
    edge_padding_low: AnyValue = None,
    edge_padding_high: AnyValue = None,
    interior_padding: AnyValue = None,
) -> Expr:
    """Negative padding cuts, behind the padding between elements."""
    rank = ctx.rank(x)
    low, high, inside = (
        ctx.numbers(each, rank, 0)
        for each in (edge_padding_low, edge_padding_high, interior_padding)
    )
    if min(inside, default=0) < 0:
        raise Unsupported(f"padding {inside} between elements")
    if any(inside):
        x = relay.nn.dilate(x, [n + 1 for n in inside], float(ctx.item(value)))
    pairs = list(zip(low, high, strict=True))
    widths = [(max(a, 0), max(b, 0)) for a, b in pairs]
    padded = relay.nn.pad(x, widths, value) if any(map(any, widths)) else x
    if min([*low, *high], default=0) >= 0:
        return padded
    lengths = ctx.static_shape(padded)
    starts = [max(-a, 0) for a, _ in pairs]
    ends = [max(n - max(-b, 0), 0) for n, (_, b) in zip(lengths, pairs, strict=True)]
    return relay.strided_slice(padded, starts, ends)


@OPS.imports("DILATE")
def import_dilate(ctx: Import, x: Expr, dilations: Expr, value: Expr) -> Expr:
    return relay.nn.dilate(x, ctx.ints(dilations), float(ctx.item(value)))


@OPS.imports("CONCATENATION")
def import_concatenation(
    ctx: Import, *values: Expr, axis: int = 0, fused_activation_function: int = 0
) -> Expr:
    return ctx.activated(relay.concatenate(values, axis=axis), fused_activation_function)


@OPS.exports("reshape", "contrib_reverse_reshape", ignored=("newshape", "allowzero"))
@OPS.exports("nn.batch_flatten")
@OPS.exports("squeeze", ignored=("axis",))
@OPS.exports("expand_dims", ignored=("axis", "num_newaxis"))
def export_reshape(ctx: Export, data: Value) -> Value:
    return _as(ctx, data, ctx.result_type())


def _as(ctx: Export, data: Value, type_: TensorType) -> Value:
    """Return the elements in another shape; one open length is what is left."""
    if data.data is not None and type_.concrete_shape is not None:
        return ctx.const(data.data.reshape(type_.concrete_shape))
    lengths = [dim if isinstance(dim, int) else -1 for dim in type_.shape]
    shape = ctx.ints(lengths) if lengths.count(-1) < 2 else ctx.shape(type_.shape)
    return ctx.emit_as(type_, "RESHAPE", data, shape, new_shape=lengths)


@OPS.exports("transpose")
def export_transpose(ctx: Export, data: Value, *, axes: tuple[int, ...] | None) -> Value:
    rank = ctx.type(data).rank
    order = [axis % rank for axis in (axes or range(rank)[::-1])]
    if data.data is not None:
        return ctx.const(data.data.transpose(order))
    return ctx.emit("TRANSPOSE", data, ctx.ints(order))


@OPS.exports("stack")
def export_stack(ctx: Export, data: tuple[Value, ...], *, axis: int) -> Value:
    where = axis + ctx.type(data[0]).rank + 1 if axis < 0 else axis
    return ctx.emit("PACK", *data, axis=where, values_count=len(data))


@OPS.exports("split", ignored=("indices_or_sections",))
def export_split(ctx: Export, data: Value, *, axis: int) -> tuple[Value, ...]:
    where = ctx.axis(data, axis)
    types = ctx.result_types()
    sizes = [each.shape[where] for each in types]
    if not all(isinstance(size, int) for size in sizes):
        raise Unsupported("parts of open lengths")
    lengths = ctx.ints([size for size in sizes if isinstance(size, int)])
    axis_value = ctx.const(np.array(where, np.int32))
    return ctx.emit_tuple("SPLIT_V", data, lengths, axis_value, num_splits=len(types))


@OPS.exports("tile")
def export_tile(ctx: Export, data: Value, *, reps: tuple[int, ...]) -> Value:
    rank = ctx.type(data).rank
    if len(reps) > rank:
        return ctx.spell(
            lambda x: relay.tile(relay.expand_dims(x, 0, len(reps) - rank), reps), data
        )
    return ctx.emit("TILE", data, ctx.ints([*[1] * (rank - len(reps)), *reps]))


@OPS.exports("broadcast_to", ignored=("shape", "dtype"))
def export_broadcast_to(ctx: Export, data: Value) -> Value:
    return ctx.emit("BROADCAST_TO", data, ctx.shape(ctx.result_type().shape))


@OPS.exports("shape_of", ignored=("dtype",))
def export_shape_of(ctx: Export, data: Value) -> Value:
    number = {"int32": 2, "int64": 4}.get(ctx.result_type().dtype)
    if number is None:
        raise Unsupported(f"a shape of {ctx.result_type().dtype}")
    return ctx.emit("SHAPE", data, out_type=number)


@OPS.exports("full", ignored=("shape", "dtype"))
def export_full(ctx: Export, fill_value: Value) -> Value:
    type_ = ctx.result_type()
    value = ctx.spell(lambda x: as_dtype(x, type_.dtype), fill_value)
    return ctx.emit("FILL", ctx.shape(type_.shape), value)


@OPS.exports("zeros_like")
def export_zeros_like(ctx: Export, data: Value) -> Value:
    """What ZEROS_LIKE has no kernel for is filled."""
    type_ = ctx.type(data)
    if type_.dtype in KERNEL_TYPES["ZEROS_LIKE"]:
        return ctx.emit("ZEROS_LIKE", data)
    return ctx.emit("FILL", ctx.shape_of(data), ctx.const(0, type_.dtype))


@OPS.exports("reverse")
def export_reverse(ctx: Export, data: Value, *, axis: int) -> Value:
    return ctx.emit("REVERSE_V2", data, ctx.ints([ctx.axis(data, axis)]))


@OPS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, data: Value, seq_lengths: Value, *, seq_axis: int, batch_axis: int
) -> Value:
    axes = {"seq_dim": ctx.axis(data, seq_axis), "batch_dim": ctx.axis(data, batch_axis)}
    seq_lengths = ctx.spell(lambda n, x: bounded_lengths(n, x, seq_axis), seq_lengths, data)
    return ctx.emit("REVERSE_SEQUENCE", data, seq_lengths, **axes)


@OPS.exports("nn.pad", when=lambda node: node.attrs["pad_mode"] == "constant")
def export_pad(
    ctx: Export,
    data: Value,
    pad_val: Value,
    *,
    pad_width: tuple[tuple[int, ...], ...],
    pad_mode: str,
) -> Value:
    if any(each < 0 for pair in pad_width for each in pair):
        raise Unsupported(f"padding {pad_width}, which cuts")
    pads = ctx.const(np.array(pad_width, np.int32).reshape(-1, 2))
    if pad_val.data is not None and not pad_val.data.any():
        return ctx.emit("PAD", data, pads)
    return ctx.emit("PADV2", data, pads, pad_val)


@OPS.exports("nn.mirror_pad")
def export_mirror_pad(
    ctx: Export, data: Value, *, mode: str, pad_width: tuple[tuple[int, ...], ...]
) -> Value:
    pads = ctx.const(np.array(pad_width, np.int32).reshape(-1, 2))
    return ctx.emit("MIRROR_PAD", data, pads, mode=("REFLECT", "SYMMETRIC").index(mode))
