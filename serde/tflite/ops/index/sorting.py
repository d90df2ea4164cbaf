"""Elements by their values: sorted, counted, found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import serde.relay as relay
from serde.errors import Unsupported
from serde.relay.ir import Call, Expr, TensorType, Var, call, called_name
from serde.tflite.import_context import only_result
from serde.tflite.ops.table import OPS, Export, Import, Value


@OPS.imports("WHERE")
def import_where(ctx: Import, condition: Expr) -> Expr:
    return relay.cast(relay.argwhere(condition), "int64")


@OPS.exports("argwhere")
def export_argwhere(ctx: Export, condition: Value) -> Value:
    made = ctx.result_type()
    found = ctx.emit_as(TensorType(made.shape, "int64"), "WHERE", condition)
    return ctx.spell(lambda x: relay.cast(x, made.dtype), found)


@OPS.imports("TOPK_V2")
def import_topk_v2(ctx: Import, x: Expr, k: Expr) -> Sequence[Expr]:
    return list(relay.topk(x, int(ctx.item(k)), axis=-1, ret_type="both", dtype="int32"))


def _extreme_reader(operator: str) -> Callable[..., Expr]:
    def read(ctx: Import, x: Expr, axis: Expr, *, output_type: int = 0) -> Expr:
        made = ctx.told()
        found = call(operator, x, axis=(int(ctx.item(axis)),))
        return relay.cast(found, "int64" if made is None else made.dtype)

    return read


OPS.imports("ARG_MAX")(_extreme_reader("argmax"))


OPS.imports("ARG_MIN")(_extreme_reader("argmin"))


@OPS.imports("STABLEHLO_SORT", ignored=("is_stable",))
def import_stablehlo_sort(
    ctx: Import, *values: Expr, dimension: int = 0, comparator_subgraph_index: int = 0
) -> Sequence[Expr]:
    """What the graph compares decides: the first tensor's elements, which is less or greater."""
    first = ctx.first(values)
    dtypes = [ctx.type(each).dtype for each in values for _ in range(2)]
    scalars = [Var(f"x{i}", TensorType((), dtype)) for i, dtype in enumerate(dtypes)]
    found, captures = ctx.closure(comparator_subgraph_index, scalars, label="comparator")
    test = only_result(found)
    given = list(test.args) if isinstance(test, Call) and not captures else []
    name = called_name(test)
    if name not in ("less", "greater") or given != list(found.params[:2]):
        raise Unsupported("an order other than that of the first tensor's elements")
    (axis,) = ctx.axes([dimension], ctx.rank(first))
    order = relay.argsort(first, axis=axis, is_ascend=name == "less", dtype="int32")
    return [relay.gather(each, axis, order) for each in values]


@OPS.imports("HASHTABLE_LOOKUP")
def import_hashtable_lookup(ctx: Import, lookup: Expr, keys: Expr, values: Expr) -> Sequence[Expr]:
    """Rows of the values whose keys are looked up, zeros for others; and which there are."""
    same = relay.equal(relay.expand_dims(lookup, 1), relay.expand_dims(keys, 0))
    hits = relay.any(same, axis=[1])
    places = relay.cast(relay.argmax(relay.cast(same, "int32"), axis=[1]), "int32")
    rows, more = relay.take(values, places, axis=0), ctx.rank(values) - 1
    there = relay.expand_dims(hits, 1, more) if more else hits
    found = relay.where(there, rows, ctx.const(0, ctx.type(values).dtype))
    return [found, relay.cast(hits, "uint8")]


@OPS.imports("UNIQUE")
def import_unique(ctx: Import, x: Expr, *, idx_out_type: int = 2) -> Sequence[Expr]:
    """Values stand in the order in which they first occur."""
    made = ctx.told(1)
    values, indices, _, count = relay.unique(x, is_sorted=False)
    zero = ctx.const([0], "int32")
    kept = relay.strided_slice(values, zero, count)
    return [kept, relay.cast(indices, "int32" if made is None else made.dtype)]


@OPS.imports("CUMSUM")
def import_cumsum(
    ctx: Import, x: Expr, axis: Expr, *, exclusive: bool = False, reverse: bool = False
) -> Expr:
    return relay.serde.cumsum(x, int(ctx.item(axis)), exclusive, reverse)


@OPS.imports("BUCKETIZE")
def import_bucketize(ctx: Import, x: Expr, *, boundaries: Sequence[float] = ()) -> Expr:
    """The number of boundaries at or below each element."""
    edges = ctx.const(np.asarray(boundaries, np.float32), "float32")
    return relay.searchsorted(edges, relay.cast(x, "float32"), right=True, dtype="int32")


@OPS.exports("argsort", when=lambda node: _is_sorted(node), ignored=("axis", "is_ascend", "dtype"))
def export_argsort(ctx: Export, data: Value) -> Value:
    """The greatest of all, in order; first of ties."""
    made = ctx.result_type()
    count = ctx.const(np.array(ctx.static_lengths(data, [-1])[0], np.int32))
    types = [ctx.type(data), TensorType(made.shape, "int32")]
    found = ctx.append("TOPK_V2", [data, count], types, {})[1]
    return found if made.dtype == "int32" else ctx.spell(lambda x: relay.cast(x, made.dtype), found)


def _is_sorted(node: Call) -> bool:
    attrs, type_ = node.attrs, node.args[0].type
    last = isinstance(type_, TensorType) and attrs["axis"] in (-1, type_.rank - 1)
    return last and not attrs["is_ascend"]


def _is_one(node: Call) -> bool:
    """Whether one axis is searched, and the first of ties is wanted."""
    attrs = node.attrs
    axes = attrs["axis"]
    single = isinstance(axes, int) or (axes is not None and len(axes) == 1)
    return single and not attrs["exclude"] and not attrs["select_last_index"]


def _extreme_writer(op: str) -> Callable[..., Value]:
    def write(ctx: Export, data: Value, *, axis: int | tuple[int, ...], keepdims: bool) -> Value:
        where = ctx.axis(data, axis if isinstance(axis, int) else axis[0])
        made = ctx.result_type()
        lengths = [d for i, d in enumerate(ctx.type(data).shape) if i != where]
        number = 2 if made.dtype == "int32" else 4
        type_ = TensorType(lengths, made.dtype)
        operands = data, ctx.const(np.array(where, np.int32))
        found = ctx.emit_as(type_, op, *operands, output_type=number)
        return ctx.spell(lambda x: relay.expand_dims(x, axis=where), found) if keepdims else found

    return write


OPS.exports("argmax", when=_is_one, ignored=("exclude", "select_last_index"))(
    _extreme_writer("ARG_MAX")
)


OPS.exports("argmin", when=_is_one, ignored=("exclude", "select_last_index"))(
    _extreme_writer("ARG_MIN")
)


@OPS.exports("serde.cumsum")
def export_cumsum(ctx: Export, data: Value, *, axis: int, exclusive: bool, reverse: bool) -> Value:
    where = ctx.const(np.array(ctx.axis(data, axis), np.int32))
    return ctx.emit("CUMSUM", data, where, exclusive=exclusive, reverse=reverse)


def _is_top(node: Call) -> bool:
    attrs, type_ = node.attrs, node.args[0].type
    last = isinstance(type_, TensorType) and attrs["axis"] in (-1, type_.rank - 1)
    return last and attrs["ret_type"] == "both" and not attrs["is_ascend"] and attrs["k"] > 0


@OPS.exports("topk", when=_is_top, ignored=("axis", "ret_type", "is_ascend", "dtype"))
def export_topk(ctx: Export, data: Value, *, k: int) -> tuple[Value, ...]:
    values, numbers = ctx.result_types()
    narrow = TensorType(numbers.shape, "int32")
    found = ctx.append("TOPK_V2", [data, ctx.const(np.array(k, np.int32))], [values, narrow], {})
    if numbers.dtype == "int32":
        return found
    return found[0], ctx.spell(lambda x: relay.cast(x, numbers.dtype), found[1])
