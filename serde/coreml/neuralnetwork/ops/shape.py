"""Shape and order of elements."""

from __future__ import annotations

from typing import Literal

import numpy as np

import serde.relay as relay
from serde.coreml.mlprogram.export_context import ExportContext as ProgramContext
from serde.coreml.neuralnetwork.import_context import add_leading_axis, drop_leading_axis, is_lifted
from serde.coreml.neuralnetwork.message_view import MessageView
from serde.coreml.neuralnetwork.ops.table import DIRECT, LAYERS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, normalize_axes, same_shape
from serde.walk.pairs import reads, writes

Order = Literal["CHANNEL_FIRST", "CHANNEL_LAST"]
SliceAxis = Literal["CHANNEL_AXIS", "HEIGHT_AXIS", "WIDTH_AXIS"]

_NEW_SHAPE = {"target_shape": "newshape"}
FIVE = (0, 2, 3, 4)
"""Where sequence, channel, height and width are among five axes."""


def _channel_last(ctx: Import, x: Expr) -> Expr:
    rank = ctx.type(x).rank
    return relay.transpose(x, axes=(*range(rank - 3), rank - 2, rank - 1, rank - 3))


@LAYERS.imports("flatten")
def import_flatten(ctx: Import, x: Expr, *, mode: Order = "CHANNEL_FIRST") -> Expr:
    """All but the last three axes are a batch; height and width stay as axes of length 1."""
    rank = len(ctx.at_least(x, 3))
    data = _channel_last(ctx, x) if mode == "CHANNEL_LAST" else x
    return relay.reshape(data, (*(0,) * (rank - 3), -1, 1, 1))


@LAYERS.imports("reshape")
def import_reshape(
    ctx: Import, x: Expr, *, target_shape: tuple[int, ...] = (), mode: Order = "CHANNEL_FIRST"
) -> Expr:
    """Three lengths keep sequence and batch, a fourth before them is that of the sequence."""
    if ctx.type(x).rank != 5:
        raise Unsupported(f"expected five axes, found {ctx.type(x).rank}")
    if len(target_shape) == 3 and is_lifted(x):
        return add_leading_axis(_reshape(ctx, drop_leading_axis(x), (0,), target_shape, mode))
    if len(target_shape) == 3:
        return _reshape(ctx, x, (0, 0), target_shape, mode)
    if len(target_shape) != 4:
        raise Unsupported(f"expected 3 or 4 lengths, found {len(target_shape)}")
    if ctx.type(x).shape[1] != 1:
        raise Unsupported("another length of the sequence in a batch of more than one")
    return _reshape(ctx, x, (target_shape[0], 1), target_shape[1:], mode)


def _reshape(
    ctx: Import, x: Expr, leading: tuple[int, ...], shape: tuple[int, ...], mode: Order
) -> Expr:
    if mode == "CHANNEL_FIRST":
        return relay.reshape(x, (*leading, *shape))
    channels, height, width = shape
    data = relay.reshape(_channel_last(ctx, x), (*leading, height, width, channels))
    first = len(leading)
    return relay.transpose(data, axes=(*range(first), first + 2, first, first + 1))


@LAYERS.imports("permute")
def import_permute(ctx: Import, x: Expr, *, axis: tuple[int, ...] = (0, 1, 2, 3)) -> Expr:
    """Axes are those of sequence, channel, height and width; the batch stays where it is."""
    if ctx.type(x).rank != 5:
        raise Unsupported(f"expected five axes, found {ctx.type(x).rank}")
    if sorted(axis) != [0, 1, 2, 3]:
        raise Unsupported(f"axes {list(axis)} are no permutation of four")
    if axis[0] == 0 and is_lifted(x):
        return add_leading_axis(relay.transpose(drop_leading_axis(x), axes=(0, *axis[1:])))
    order = [FIVE[each] for each in axis]
    return relay.transpose(x, axes=(order[0], 1, *order[1:]))


@LAYERS.imports("concat")
def import_concat(ctx: Import, *xs: Expr, sequence_concat: bool = False) -> Expr:
    rank = len(ctx.at_least(xs[0], 5 if sequence_concat else 3)) if xs else 0
    if sequence_concat:
        return relay.concatenate(list(xs), axis=rank - 5)
    if all(map(is_lifted, xs)):
        return add_leading_axis(relay.concatenate([drop_leading_axis(x) for x in xs], axis=1))
    return relay.concatenate(list(xs), axis=rank - 3)


@LAYERS.imports("split")
def import_split(ctx: Import, x: Expr, *, n_outputs: int = 1) -> list[Expr]:
    rank = len(ctx.at_least(x, 3))
    return list(relay.split(x, n_outputs, axis=rank - 3))


@LAYERS.imports("sequenceRepeat")
def import_sequence_repeat(ctx: Import, x: Expr, *, n_repetitions: int = 1) -> Expr:
    rank = len(ctx.at_least(x, 5))
    return relay.tile(x, (*(1,) * (rank - 5), n_repetitions, 1, 1, 1, 1))


@LAYERS.imports("slice")
def import_slice(
    ctx: Import,
    x: Expr,
    *,
    start_index: int = 0,
    end_index: int = 0,
    stride: int = 1,
    axis: SliceAxis = "CHANNEL_AXIS",
) -> Expr:
    """An end of -1 leaves out the last element."""
    back = {"CHANNEL_AXIS": 3, "HEIGHT_AXIS": 2, "WIDTH_AXIS": 1}[axis]
    place = len(ctx.at_least(x, back)) - back
    return relay.strided_slice(
        x, begin=(start_index,), end=(end_index,), strides=(stride,), axes=(place,)
    )


@LAYERS.imports("loadConstant")
def import_load_constant(
    ctx: Import, *, shape: tuple[int, ...] = (), data: MessageView | None = None
) -> Expr:
    if len(shape) != 3:
        raise Unsupported(f"expected 3 lengths, found {len(shape)}")
    return add_leading_axis(ctx.weight(data, (1, *shape)))


@LAYERS.imports("loadConstantND")
def import_load_constant_nd(
    ctx: Import, *, shape: tuple[int, ...] = (), data: MessageView | None = None
) -> Expr:
    return ctx.small(data, shape)


@LAYERS.imports("concatND")
def import_concat_nd(ctx: Import, *xs: Expr, axis: int = 0, interleave: bool = False) -> Expr:
    """Interleaved, the first entries of all tensors come before the second ones."""
    if not xs:
        raise Unsupported("expected at least one tensor")
    place = ctx.axis(xs[0], axis)
    if not interleave:
        return relay.concatenate(list(xs), axis=place)
    rank = ctx.type(xs[0]).rank
    found = relay.stack(list(xs), axis=place + 1)
    return relay.reshape(found, (*(0,) * place, -3, *(0,) * (rank - place - 1)))


@LAYERS.imports("stack")
def import_stack(ctx: Import, *xs: Expr, axis: int = 0) -> Expr:
    if not xs:
        raise Unsupported("expected at least one tensor")
    rank = ctx.type(xs[0]).rank + 1
    return relay.stack(list(xs), axis=axis + rank if axis < 0 else axis)


@LAYERS.imports("splitND")
def import_split_nd(
    ctx: Import, x: Expr, *, axis: int = 0, num_splits: int = 1, split_sizes: tuple[int, ...] = ()
) -> list[Expr]:
    place = ctx.axis(x, axis)
    if not split_sizes:
        return list(relay.split(x, num_splits, axis=place))
    cuts = tuple(int(each) for each in np.cumsum(split_sizes)[:-1])
    return list(relay.split(x, cuts, axis=place)) if cuts else [x]


@LAYERS.imports("squeeze")
def import_squeeze(
    ctx: Import, x: Expr, *, axes: tuple[int, ...] = (), squeeze_all: bool = False
) -> Expr:
    """One axis stays, for every tensor has one."""
    rank = ctx.type(x).rank
    places = sorted({ctx.axis(x, axis) for axis in axes})
    if squeeze_all:
        places = [axis for axis, dim in enumerate(ctx.static_shape(x)) if dim == 1]
    if len(places) == rank:
        return relay.reshape(x, (1,))
    return relay.squeeze(x, axis=places) if places else x


@LAYERS.imports("expandDims")
def import_expand_dims(ctx: Import, x: Expr, *, axes: tuple[int, ...] = ()) -> Expr:
    rank = ctx.type(x).rank + len(axes)
    for place in sorted(normalize_axes(axes, rank)):
        x = relay.expand_dims(x, axis=place)
    return x


@LAYERS.imports("flattenTo2D")
def import_flatten_to_2d(ctx: Import, x: Expr, *, axis: int = 0) -> Expr:
    """The axes before `axis` become one, and those from it on."""
    rank = ctx.type(x).rank
    if not -rank <= axis <= rank:
        raise Unsupported(f"axis {axis} is outside a tensor of rank {rank}")
    place = axis + rank if axis < 0 else axis
    if place == 0:
        return relay.reshape(x, (1, -1))
    if place == rank:
        return relay.reshape(x, (-1, 1))
    if place <= 2:
        return relay.reshape(x, (0 if place == 1 else -3, -1))
    shape = ctx.static_shape(x)
    return relay.reshape(x, (int(np.prod(shape[:place])), -1))


@LAYERS.imports("reshapeDynamic")
def import_reshape_dynamic(ctx: Import, x: Expr, shape: Expr) -> Expr:
    return relay.reshape(x, ctx.integers(shape))


@LAYERS.imports("getShape")
def import_get_shape(ctx: Import, x: Expr) -> Expr:
    return relay.cast(relay.shape_of(x), "float32")


@LAYERS.imports("broadcastToDynamic")
def import_broadcast_to_dynamic(ctx: Import, x: Expr, shape: Expr) -> Expr:
    return relay.broadcast_to(x, ctx.integers(shape))


@LAYERS.imports("fillLike")
def import_fill_like(ctx: Import, x: Expr, *, value: float = 0.0) -> Expr:
    return relay.full_like(x, relay.const(np.float32(value)))


@LAYERS.imports("fillStatic")
def import_fill_static(
    ctx: Import, *, value: float = 0.0, target_shape: tuple[int, ...] = ()
) -> Expr:
    return relay.full(relay.const(np.float32(value)), target_shape, "float32")


@LAYERS.imports("fillDynamic")
def import_fill_dynamic(ctx: Import, shape: Expr, *, value: float = 0.0) -> Expr:
    return relay.full(relay.const(np.float32(value)), ctx.integers(shape), "float32")


@LAYERS.imports("tile")
def import_tile(
    ctx: Import, x: Expr, counts: Expr | None = None, *, reps: tuple[int, ...] = ()
) -> Expr:
    """Counts that were a scalar once have more than one axis, as networks have no scalars."""
    if counts is None:
        return relay.tile(x, reps)
    return relay.tile(x, ctx.integers(relay.reshape(counts, [-1])))


@LAYERS.imports("reverse")
def import_reverse(ctx: Import, x: Expr, *, reverse_dim: tuple[bool, ...] = ()) -> Expr:
    for axis, turned in enumerate(reverse_dim):
        if turned:
            x = relay.reverse(x, axis=axis)
    return x


@LAYERS.imports("reverseSeq")
def import_reverse_seq(
    ctx: Import, x: Expr, lengths: Expr, *, batch_axis: int = 0, sequence_axis: int = 0
) -> Expr:
    return relay.reverse_sequence(
        x,
        ctx.integers(lengths),
        seq_axis=ctx.axis(x, sequence_axis),
        batch_axis=ctx.axis(x, batch_axis),
    )


@LAYERS.exports("reshape")
def export_reshape(ctx: Export, x: Value, shape: Value) -> Value:
    if shape.data is None:
        return ctx.layer("reshapeDynamic", x, shape)
    codes = [int(each) for each in shape.data] or [1]
    return ctx.layer("reshapeStatic", x, target_shape=codes)


@LAYERS.exports("transpose")
def export_transpose(ctx: Export, x: Value, *, perm: tuple[int, ...]) -> Value:
    return ctx.layer("transpose", x, axes=list(perm)) if x.type.rank else x


@LAYERS.exports("expand_dims")
def export_expand_dims(ctx: Export, x: Value, *, axes: tuple[int, ...]) -> Value:
    """A scalar has one axis already."""
    if not x.type.rank:
        return ctx.reshaped(x, ctx.result_type().shape)
    return ctx.layer("expandDims", x, axes=list(axes))


@LAYERS.exports("squeeze")
def export_squeeze(ctx: Export, x: Value, *, axes: tuple[int, ...]) -> Value:
    """One axis stays, for every tensor has one."""
    if not ctx.result_type().rank:
        return ctx.reshaped(x, ())
    return ctx.layer("squeeze", x, axes=list(axes))


@LAYERS.exports("concat")
def export_concat(
    ctx: Export, values: tuple[Value, ...], *, axis: int, interleave: bool = False
) -> Value:
    return ctx.layer("concatND", *values, axis=axis)


@LAYERS.exports("stack")
def export_stack(ctx: Export, values: tuple[Value, ...], *, axis: int) -> Value:
    """Scalars are vectors of one element."""
    if not values[0].type.rank:
        return ctx.layer("concatND", *values, axis=0)
    return ctx.layer("stack", *values, axis=axis)


@LAYERS.exports("split")
def export_split(
    ctx: Export, x: Value, *, axis: int, num_splits: int, split_sizes: tuple[int, ...] = ()
) -> tuple[Value, ...]:
    equal = len(set(split_sizes)) < 2
    if equal:
        return ctx.layers("splitND", [x], axis=axis, num_splits=num_splits)
    return ctx.layers("splitND", [x], axis=axis, split_sizes=list(split_sizes))


@LAYERS.exports("shape")
def export_shape(ctx: Export, x: Value) -> Value:
    return ctx.layer("getShape", x)


@LAYERS.exports("fill")
def export_fill(ctx: Export, shape: Value, value: Value) -> Value:
    number = float(ctx.constant(value).reshape(()))
    if shape.data is None:
        return ctx.layer("fillDynamic", shape, value=number)
    lengths = [int(each) for each in shape.data] or [1]
    return ctx.layer("fillStatic", value=number, target_shape=lengths)


@LAYERS.exports("tile")
def export_tile(ctx: Export, x: Value, reps: Value) -> Value:
    if reps.data is not None:
        return ctx.layer("tile", x, reps=[int(each) for each in reps.data]) if x.type.rank else x
    if all(dim == 1 for dim in x.type.shape):
        return ctx.layer("broadcastToDynamic", x, reps)
    ctx.since(14, "repetition as often as is computed")
    return ctx.layer("tile", x, reps)


@LAYERS.exports("reverse")
def export_reverse(ctx: Export, x: Value, *, axes: tuple[int, ...]) -> Value:
    rank = x.type.rank
    turned = {axis % rank for axis in axes}
    return ctx.layer("reverse", x, reverse_dim=[axis in turned for axis in range(rank)])


@LAYERS.exports("reverse_sequence")
def export_reverse_sequence(
    ctx: Export, x: Value, lengths: Value, *, seq_axis: int = 0, batch_axis: int = 0
) -> Value:
    return ctx.layer("reverseSeq", x, lengths, batch_axis=batch_axis, sequence_axis=seq_axis)


def _is_known(node: Call) -> bool:
    type_ = node.type
    return isinstance(type_, TensorType) and type_.concrete_shape not in (None, ())


@DIRECT.exports("broadcast_to", when=_is_known, ignored=("shape", "dtype"))
def export_broadcast_to(ctx: ProgramContext, data: Value) -> Value:
    lengths = ctx.result_type().concrete_shape
    return ctx.emit("broadcast", x=data, shape=lengths)


@LAYERS.exports("broadcast")
def export_broadcast(ctx: Export, x: Value, *, shape: tuple[int, ...]) -> Value:
    return ctx.layer("broadcastToStatic", x, target_shape=list(shape))


def _is_like(node: Call) -> bool:
    """Whether the result has the shape of the second tensor, and not one that both make."""
    type_, like = node.type, node.args[1].type
    if not isinstance(type_, TensorType) or not isinstance(like, TensorType):
        return False
    return bool(type_.shape) and same_shape(type_.shape, like.shape)


@LAYERS.exports("broadcast_like")
def export_broadcast_like(ctx: Export, x: Value, like: Value) -> Value:
    return ctx.layer("broadcastToLike", x, like)


LAYERS.pairs(
    reads("rankPreservingReshape", "reshape", target_shape=(), renamed=_NEW_SHAPE),
    reads("reshapeStatic", "reshape", target_shape=(), renamed=_NEW_SHAPE),
    reads("broadcastToStatic", "broadcast_to", target_shape=(), renamed={"target_shape": "shape"}),
    reads("transpose", "transpose", axes=()),
    reads("reshapeLike", "reshape_like"),
    reads("broadcastToLike", "broadcast_to_like"),
)


DIRECT.pairs(writes("broadcast_like", "broadcast_to_like", operands="x like", when=_is_like))
