"""Resize and Upsample whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue
from typing import Literal

import numpy as np

import serde.relay as relay
from serde.onnx.export_context import ExportContext, Value
from serde.onnx.import_context import ImportContext
from serde.onnx.ops.conv.windows import SPATIAL
from serde.onnx.ops.image.resize import DROPPED, SHIFTED, coordinates_of
from serde.onnx.ops.table import OPS
from serde.relay.ir.dims import Any, Dim
from serde.relay.ir.expr import Call, Expr
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float, normalize_axes
from serde.relay.ir.types import TensorType

Method = Literal["nearest", "linear", "cubic"]
Mode = Literal[
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
]
Rounding = Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
Policy = Literal["stretch", "not_larger", "not_smaller"]

METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}


def _is_of_19(node: Call) -> bool:
    """Of fixed lengths, what ONNX dropped is looked up; of others it is refused with a reason."""
    attrs = node.attrs
    shapes = [each.type.concrete_shape for each in node.args if isinstance(each.type, TensorType)]
    kept = attrs["mode"] != DROPPED or (attrs["method"], attrs["rounding"]) in SHIFTED
    return kept or len(shapes) > 1 or None in shapes


def _is_of_18(node: Call) -> bool:
    return node.attrs["mode"] != "half_pixel_symmetric" and _is_of_19(node)


def _is_of_13(node: Call) -> bool:
    return _is_of_11(node) and _is_of_19(node)


def _is_of_11(node: Call) -> bool:
    """Before 18, all axes are told of, and nothing is smoothed or kept in proportion."""
    data, attrs = node.args[0].type, node.attrs
    rank = data.rank if isinstance(data, TensorType) else 0
    whole = not attrs["axes"] or normalize_axes(attrs["axes"], rank) == tuple(range(rank))
    plain = not attrs["antialias"] and attrs["policy"] == "stretch"
    return whole and plain and node.attrs["mode"] != "half_pixel_symmetric"


def export_resize(
    ctx: ExportContext,
    x: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    *,
    size: tuple[Dim, ...] | None,
    scale: tuple[float, ...] | None,
    region: tuple[float, ...] | None,
    axes: tuple[int, ...],
    method: str,
    mode: str,
    rounding: str,
    cubic_alpha: float,
    exclude_outside: bool,
    extrapolation_value: float,
    antialias: bool,
    policy: str,
) -> Value:
    """Up to 12 no operand can be left out, only be empty."""
    mode, rounding = coordinates_of(ctx.version, mode, method, rounding)
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    dtype = ctx.type(x).dtype if is_float(ctx.type(x).dtype) else "float32"
    part = roi if region is None else ctx.const(region, dtype)
    factors = scales if scale is None else ctx.const(scale, np.float32)
    lengths = sizes if size is None else ctx.shape(size)
    operands = [part or empty, factors or empty, *([] if lengths is None else [lengths])]
    late = ctx.version >= 18
    return ctx.emit(
        "Resize",
        x,
        *operands,
        mode=method,
        coordinate_transformation_mode=mode,
        nearest_mode=rounding if method == "nearest" else None,
        cubic_coeff_a=cubic_alpha if method == "cubic" else None,
        exclude_outside=int(exclude_outside) if method == "cubic" or antialias else None,
        extrapolation_value=extrapolation_value if mode == "tf_crop_and_resize" else None,
        antialias=int(antialias) or None,
        axes=list(axes) if axes and late else None,
        keep_aspect_ratio_policy=policy if policy != "stretch" else None,
    )


OPS.exports("serde.resize", since=19, when=_is_of_19)(export_resize)


OPS.exports("serde.resize", since=18, when=_is_of_18)(export_resize)


OPS.exports("serde.resize", since=13, when=_is_of_13)(export_resize)


OPS.exports("serde.resize", when=_is_of_11)(export_resize)


def _target(
    ctx: ImportContext, x: Expr, scales: Expr | None, sizes: Expr | None, axes: Sequence[int]
) -> tuple[tuple[Dim, ...] | None, bool]:
    """Return the lengths of `axes` afterwards where known, and whether scales are their ratios."""
    if sizes is not None:
        return ctx.dims(sizes), True
    if scales is None or not ctx.is_constant(scales):
        return None, False
    found: list[Dim] = []
    exact = True
    for axis, ratio in zip(axes, ctx.constant(scales).tolist(), strict=False):
        length = ctx.type(x).shape[axis]
        whole = isinstance(length, int) and (length * ratio).is_integer()
        if isinstance(length, int) and whole:
            found.append(int(length * ratio))
            continue
        exact = exact and ratio.is_integer() and not isinstance(length, (int, Any))
        found.append(length * int(ratio) if exact else Any())
    return tuple(found), exact


def resampled(
    ctx: ImportContext,
    x: Expr,
    scales: Expr | None,
    sizes: Expr | None,
    roi: Expr | None = None,
    *,
    axes: tuple[int, ...] = (),
    mode: str,
    method: str,
    rounding: str = "floor",
    alpha: float = -0.75,
    exclude: bool = False,
    outside: float = 0.0,
    antialias: bool = False,
    policy: str = "stretch",
) -> Expr:
    """Return `x` resized: by Relay's own operator where it says the same."""
    type_ = ctx.type(x)
    named = normalize_axes(axes, type_.rank) if axes else tuple(range(type_.rank))
    known, exact = _target(ctx, x, scales, sizes, named)
    plain = not antialias and policy == "stretch" and exact and known is not None
    if plain and known is not None and mode not in ("tf_crop_and_resize", "half_pixel_symmetric"):
        lengths = dict(zip(named, known, strict=True))
        spatial = [lengths.get(axis, type_.shape[axis]) for axis in range(2, type_.rank)]
        kept = all(lengths.get(axis, n) == n for axis, n in enumerate(type_.shape[:2]))
        odd = mode == "pytorch_half_pixel" and method == "cubic"
        fits = len(spatial) in SPATIAL and kept and not odd and not _vague(spatial)
        if fits and (method == "nearest" or is_float(type_.dtype)):
            return getattr(relay.image, f"resize{len(spatial)}d")(
                x,
                size=spatial,
                layout="NC" + SPATIAL[len(spatial)],
                method=METHODS[method],
                coordinate_transformation_mode=mode,
                rounding_method=rounding if method == "nearest" else "",
                cubic_alpha=alpha,
                cubic_exclude=int(exclude),
            )
    given = known if sizes is not None and known is not None and not _vague(known) else None
    told = {"scales": scales, "roi": roi if mode == "tf_crop_and_resize" else None}
    values = {
        name: tuple(ctx.constant(each).tolist())
        for name, each in told.items()
        if each is not None and ctx.is_constant(each)
    }
    return call(
        "serde.resize",
        x,
        None if "roi" in values else told["roi"],
        None if "scales" in values else scales,
        None if given is not None else sizes,
        size=given,
        scale=values.get("scales"),
        region=values.get("roi"),
        axes=axes,
        method=method,
        mode=mode,
        rounding=rounding,
        cubic_alpha=alpha,
        exclude_outside=exclude,
        extrapolation_value=outside,
        antialias=antialias,
        policy=policy,
    )


def _vague(dims: Sequence[Dim]) -> bool:
    return any(isinstance(dim, Any) for dim in dims)


def _given(ctx: ImportContext, x: Expr | None) -> Expr | None:
    """Return an operand; one without elements stands for none."""
    return None if x is None or ctx.type(x).shape == (0,) else x


@OPS.imports("Resize", since=(11, 13, 18, 19))
def import_resize(
    ctx: ImportContext,
    x: Expr,
    roi: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
    *,
    antialias: bool = False,
    axes: tuple[int, ...] = (),
    coordinate_transformation_mode: Mode = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: Policy = "stretch",
    mode: Method = "nearest",
    nearest_mode: Rounding = "round_prefer_floor",
) -> Expr:
    return resampled(
        ctx,
        x,
        _given(ctx, scales),
        _given(ctx, sizes),
        _given(ctx, roi),
        axes=axes,
        mode=coordinate_transformation_mode,
        method=mode,
        rounding=nearest_mode,
        alpha=cubic_coeff_a,
        exclude=exclude_outside,
        outside=extrapolation_value,
        antialias=antialias,
        policy=keep_aspect_ratio_policy,
    )


@OPS.imports("Resize", since=10)
def import_resize_v10(
    ctx: ImportContext, x: Expr, scales: Expr, *, mode: Literal["nearest", "linear"] = "nearest"
) -> Expr:
    """Before 11, places are those of the first pixel times the scale, rounded down."""
    return resampled(ctx, x, scales, None, mode="asymmetric", method=mode)


UpsampleMode = Literal["nearest", "linear", "bilinear"]


@OPS.imports("Upsample", since=(9, 10))
def import_upsample(
    ctx: ImportContext, x: Expr, scales: Expr, *, mode: UpsampleMode = "nearest"
) -> Expr:
    method = "nearest" if mode == "nearest" else "linear"
    return resampled(ctx, x, scales, None, mode="asymmetric", method=method)


@OPS.imports("Upsample", since=7)
def import_upsample_v7(
    ctx: ImportContext, x: Expr, *, scales: tuple[float, ...], mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _scales(scales), mode=mode)


@OPS.imports("Upsample", since=1)
def import_upsample_v1(
    ctx: ImportContext,
    x: Expr,
    *,
    height_scale: float,
    width_scale: float,
    mode: UpsampleMode = "nearest",
) -> Expr:
    return import_upsample(ctx, x, _scales([1.0, 1.0, height_scale, width_scale]), mode=mode)


def _scales(values: Sequence[AnyValue]) -> Expr:
    return relay.const(np.array(values, np.float32))
