"""Reductions as they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from serde.errors import Unsupported
from serde.relay.ir.dims import Dim, product
from serde.relay.ir.shapes import is_float
from serde.relay.op.reduce.plain import reduced_axes
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.table import OPS
from serde.torch.ops.written import cast, dims_of, in_signed


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Attributes that the reductions share."""

    axis: tuple[int, ...] | None
    keepdims: bool
    exclude: bool

    def axes(self, ctx: ExportContext, data: Value) -> tuple[int, ...]:
        """Return the axes that are reduced, in ascending order."""
        return reduced_axes(ctx.type(data).rank, self.axis, self.exclude)

    def write(self, ctx: ExportContext, name: str, data: Value, **options: object) -> Value:
        """Write the method `name` over the axes."""
        axes = self.axes(ctx, data)
        if len(axes) == ctx.type(data).rank and not self.keepdims:
            return ctx.method(data, name, **options)
        if self.keepdims:
            options["keepdim"] = True
        return ctx.method(data, name, dims_of(axes), **options)


def _make_sum_exporter(before: str | None) -> Callable[..., Value]:
    def export_sum(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
        """PyTorch adds integers as int64; the dtype is told where that is not theirs."""
        type_ = ctx.type(data)
        if before is not None:
            data = ctx.typed(ctx.method(data, before), type_)
        if not reduction.axes(ctx, data):
            return data
        if is_float(type_.dtype) or type_.dtype == "int64":
            return reduction.write(ctx, "sum", data)
        return reduction.write(ctx, "sum", data, dtype=ctx.dtype(type_.dtype))

    return export_sum


def _make_length_exporter() -> Callable[..., Value]:
    write, plain = _make_sum_exporter("abs"), in_signed(_make_sum_exporter(None))

    def export_reduce_l1(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
        """Numbers without a sign are what they measure."""
        export = plain if ctx.type(data).dtype.startswith("uint") else write
        return export(ctx, data, reduction=reduction)

    return export_reduce_l1


OPS.exports("sum")(in_signed(_make_sum_exporter(None)))
OPS.exports("serde.reduce_l1")(_make_length_exporter())
OPS.exports("serde.reduce_sum_square")(in_signed(_make_sum_exporter("square")))


@OPS.exports("prod")
@in_signed
def export_prod(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
    """PyTorch multiplies along one axis, or all."""
    axes, rank, dtype = reduction.axes(ctx, data), ctx.type(data).rank, ctx.type(data).dtype
    options = {} if is_float(dtype) or dtype == "int64" else {"dtype": ctx.dtype(dtype)}
    if len(axes) == rank and not reduction.keepdims and axes:
        return ctx.method(data, "prod", **options)
    for axis in reversed(axes):
        if reduction.keepdims:
            data = ctx.method(data, "prod", axis, keepdim=True, **options)
        else:
            data = ctx.method(data, "prod", axis, **options)
    return data


def _make_extreme_exporter(target: str) -> Callable[..., Value]:
    def export_extreme(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
        return reduction.write(ctx, target, data) if reduction.axes(ctx, data) else data

    return export_extreme


for _name, _target in {"all": "all", "any": "any", "max": "amax", "min": "amin"}.items():
    OPS.exports(_name)(in_signed(_make_extreme_exporter(_target), ordered=True))


def _count(ctx: ExportContext, data: Value, axes: tuple[int, ...]) -> Dim:
    return product([ctx.type(data).shape[axis] for axis in axes])


@OPS.exports("mean")
def export_mean(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
    """PyTorch has means of floats; of integers it is rounded towards zero."""
    axes, dtype = reduction.axes(ctx, data), ctx.type(data).dtype
    if not axes:
        return data
    if is_float(dtype):
        return reduction.write(ctx, "mean", data)
    number = _count(ctx, data, axes)
    if dtype not in ("int32", "int64") and not (
        isinstance(number, int) and dtype in ("int8", "uint8", "int16") and number < 128
    ):
        raise Unsupported(f"a mean of {number} numbers of {dtype}")
    total = reduction.write(ctx, "sum", data, dtype=ctx.dtype(dtype))
    (count,) = ctx.sizes([number])
    return ctx.call("torch.div", total, count, rounding_mode="trunc")


def _make_place_exporter(target: str) -> Callable[..., Value]:
    def export_place(
        ctx: ExportContext, data: Value, *, reduction: Reduction, select_last_index: bool
    ) -> Value:
        """Of equal elements PyTorch takes the first; of several axes, they are made one."""
        type_ = ctx.type(data)
        axes = reduction.axes(ctx, data)
        if not axes:
            return ctx.call("torch.zeros_like", data, dtype=ctx.dtype(ctx.result_type().dtype))
        if type_.dtype == "bool":
            data = ctx.method(data, "to", ctx.dtype("uint8"))
        axis, keepdims = axes[-1], reduction.keepdims
        if len(axes) > 1:
            kept = [other for other in range(type_.rank) if other not in axes]
            data = ctx.method(data, "permute", *kept, *axes)
            data, axis, keepdims = ctx.method(data, "flatten", len(kept)), len(kept), False
        if select_last_index:
            length = _count(ctx, ctx.typed(data, type_), axes)
            data = ctx.method(data, "flip", axis)
        options = {"keepdim": True} if keepdims else {}
        place = ctx.method(data, target, axis, **options)
        if select_last_index:
            (last,) = ctx.sizes([length - 1])
            place = ctx.infix("-", last, place)
        if len(axes) > 1 and reduction.keepdims:
            place = ctx.method(place, "reshape", *ctx.sizes(ctx.result_type().shape))
        return cast(ctx, place, ctx.result_type().dtype, "int64")

    return export_place


for _name in ("argmax", "argmin"):
    OPS.exports(_name)(in_signed(_make_place_exporter(_name), ordered=True))


@OPS.exports("serde.logsumexp")
def export_logsumexp(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
    axes = reduction.axes(ctx, data)
    if not axes:
        return data
    options = {"keepdim": True} if reduction.keepdims else {}
    return ctx.call("torch.logsumexp", data, dims_of(axes), **options)


@OPS.exports("serde.reduce_l2")
def export_reduce_l2(ctx: ExportContext, data: Value, *, reduction: Reduction) -> Value:
    axes = reduction.axes(ctx, data)
    if not axes:
        return ctx.method(data, "abs")
    options = {"keepdim": True} if reduction.keepdims else {}
    return ctx.call("torch.linalg.vector_norm", data, dim=dims_of(axes), **options)


def _options(reduction: str, ignore_index: int | None) -> dict[str, object]:
    options: dict[str, object] = {}
    if ignore_index is not None and ignore_index != -100:
        options["ignore_index"] = ignore_index
    if reduction != "mean":
        options["reduction"] = reduction
    return options


def _untrained(ctx: ExportContext, weights: Value) -> Value:
    """Return weights of classes as PyTorch takes them: without a gradient, of which it has none."""
    return weights if weights.data is not None else ctx.method(weights, "detach")


@OPS.exports("nn.nll_loss")
def export_nll_loss(
    ctx: ExportContext,
    predictions: Value,
    targets: Value,
    weights: Value,
    *,
    reduction: str,
    ignore_index: int,
) -> Value:
    given = [predictions, cast(ctx, targets, "int64"), _untrained(ctx, weights)]
    return ctx.call("F.nll_loss", *given, **_options(reduction, ignore_index))


@OPS.exports("serde.softmax_cross_entropy_loss")
def export_softmax_cross_entropy_loss(
    ctx: ExportContext,
    scores: Value,
    labels: Value,
    weights: Value | None,
    *,
    reduction: str,
    ignore_index: int | None,
) -> tuple[Value, Value]:
    given = [scores, cast(ctx, labels, "int64")]
    if weights is not None:
        given.append(_untrained(ctx, weights))
    loss = ctx.call("F.cross_entropy", *given, **_options(reduction, ignore_index))
    return loss, ctx.call("F.log_softmax", scores, dim=1)
