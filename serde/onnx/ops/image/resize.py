"""Resize, and the operators of Relay that it is written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any as AnyValue, Final, Literal

import numpy as np

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.onnx.ops.conv.windows import SPATIAL
from serde.onnx.ops.elementwise.convert import as_dtype, to_int64
from serde.onnx.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, TensorType, call, is_float, normalize_axes, tensor_type
from serde.relay.ir.dims import Any, Dim, product
from serde.relay.op.image.resampling import Method, Mode, Policy, Resampling, Rounding
from serde.walk.expansion.resizing import image_expansion


def emit_resize(
    ctx: Export,
    x: Value,
    *,
    sizes: Value | None = None,
    scales: Value | None = None,
    **attrs: AnyValue,
) -> Value:
    """Emit Resize; up to 12 its region and scales cannot be left out, only be empty."""
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    if scales is not None:
        return ctx.emit("Resize", x, empty, scales, **attrs)
    return ctx.emit("Resize", x, empty, empty, sizes, **attrs)


def resize_axis_by_axis(
    ctx: Export, x: Value, lengths: Sequence[Dim], sizes: Sequence[Dim], how: Mapping[str, AnyValue]
) -> Value:
    """Resize the spatial axes in turn, each as the width of images one pixel high."""
    shape = list(lengths)
    for axis in range(2, len(shape)):
        rows = product(shape[1:axis])
        columns = product(shape[axis + 1 :])
        if columns == 1:
            folded = [shape[0], rows, 1, shape[axis]]
            grown: list[Dim] = [shape[0], rows, 1, sizes[axis]]
        else:
            folded = [shape[0], rows, shape[axis], columns]
            grown = [shape[0], rows, sizes[axis], columns]
        x = ctx.emit("Reshape", x, ctx.shape(folded))
        x = emit_resize(ctx, x, sizes=ctx.shape(grown), **how)
        shape[axis] = sizes[axis]
    return ctx.emit("Reshape", x, ctx.shape(shape))


METHODS = {
    "nearest_neighbor": "nearest",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "cubic": "cubic",
    "bicubic": "cubic",
}

ROUNDING = {
    "floor": "floor",
    "ceil": "ceil",
    "round": "round_prefer_ceil",
    "round_prefer_floor": "round_prefer_floor",
    "round_prefer_ceil": "round_prefer_ceil",
}
"""Relay's ``round`` takes a half away from zero; coordinates that matter are not negative."""

DROPPED: Final = "tf_half_pixel_for_nn"
"""Coordinates that ONNX has at versions 11 and 12 alone: half a pixel further than half_pixel."""

SHIFTED: Final = MappingProxyType(
    {("nearest", "floor"): "round_prefer_ceil", ("nearest", "round_prefer_floor"): "ceil"}
)
"""For a method and a rounding the rounding that half a pixel before finds the same by."""


def choose_coordinates(version: int, mode: str, method: str, rounding: str) -> tuple[str, str]:
    """Return coordinates and rounding as a version of ONNX has them."""
    if mode != DROPPED or version < 13:
        return mode, rounding
    if (method, rounding) not in SHIFTED:
        what = f"coordinates of {DROPPED} for {method} {rounding}".rstrip()
        raise Unsupported(f"{what}, which ONNX dropped at version 13", hint="use opset 12")
    return "half_pixel", SHIFTED[method, rounding]


def choose_rounding(coordinates: str, rounding: str) -> str:
    """Return how the nearest element is found; where Relay leaves it open, by the coordinates."""
    return ROUNDING[rounding or ("round" if coordinates == "align_corners" else "floor")]


@dataclass(frozen=True, kw_only=True)
class RelayResize:
    """Attributes that the resizing operators of Relay share."""

    layout: str
    method: str
    coordinate_transformation_mode: str
    rounding_method: str
    cubic_alpha: float
    cubic_exclude: int
    out_dtype: np.dtype[AnyValue] | None

    @property
    def mode(self) -> str:
        """What ONNX calls the method."""
        return METHODS[self.method]

    def to_onnx(self, version: int) -> dict[str, AnyValue]:
        """Return the attributes of Resize."""
        mode, coordinates = self.mode, self.coordinate_transformation_mode
        rounding = ""
        if mode == "nearest":
            rounding = choose_rounding(coordinates, self.rounding_method)
        coordinates, rounding = choose_coordinates(version, coordinates, mode, rounding)
        return {
            "mode": mode,
            "coordinate_transformation_mode": coordinates,
            "nearest_mode": rounding or None,
            "cubic_coeff_a": self.cubic_alpha if mode == "cubic" else None,
            "exclude_outside": int(self.cubic_exclude != 0) if mode == "cubic" else None,
        }


def _whole_ratios(lengths: Sequence[Dim], sizes: Sequence[Dim]) -> list[int] | None:
    """Return the factors of lengths that are open, where they are whole numbers."""
    if all(isinstance(size, int) for size in sizes):
        return None
    ratios = [size // old if old != 0 else 0 for old, size in zip(lengths, sizes, strict=True)]
    whole = [ratio for ratio in ratios if isinstance(ratio, int) and ratio > 0]
    same = len(whole) == len(sizes) and all(
        old * ratio == size for old, ratio, size in zip(lengths, whole, sizes, strict=True)
    )
    return whole if same else None


def _has_form(node: Call) -> bool:
    """Whether ONNX has the coordinates: a region is that of all axes alike there."""
    coordinates, rank = node.attrs["coordinate_transformation_mode"], len(node.attrs["size"] or ())
    dims = [each for x in (node, *node.args) for each in tensor_type(x).shape[2:]]
    is_fixed = all(isinstance(dim, int) for dim in dims)
    dropped = coordinates == DROPPED and (is_fixed or rank == 1)
    return not dropped and coordinates != "tf_crop_and_resize"


@OPS.exports(
    "image.resize1d", "image.resize2d", "image.resize3d",
    when=_has_form, ignored=("roi", "extrapolation_value"),
)  # fmt: skip
def export_image_resize(
    ctx: Export, x: Value, *, resize: RelayResize, size: tuple[Dim, ...] | None
) -> Value:
    """Runtimes resize one axis, or three by cubics, as the axes of images only."""
    lengths, sizes = ctx.type(x).shape, ctx.result_type().shape
    attrs = resize.to_onnx(ctx.version)
    image = as_dtype(ctx, x, ctx.result_type().dtype)
    # ONNX Runtime moves a transposition past a cubic Resize, which it then refuses.
    moved = resize.mode == "cubic" and (len(sizes) == 5 or ctx.maker(image) == "Transpose")
    ratios = _whole_ratios(lengths, sizes)
    if len(sizes) == 3 or moved:
        return resize_axis_by_axis(ctx, image, lengths, sizes, attrs)
    if ratios is not None:
        return emit_resize(ctx, image, scales=ctx.const(ratios, np.float32), **attrs)
    return emit_resize(ctx, image, sizes=ctx.shape(sizes), **attrs)


for _ndim in (1, 2, 3):
    OPS.expands(f"image.resize{_ndim}d")(image_expansion(_ndim, half="float32"))


@OPS.exports("dyn.image.resize2d")
def export_dyn_resize2d(
    ctx: Export, x: Value, size: Value, roi: Value, *, resize: RelayResize
) -> Value:
    if resize.coordinate_transformation_mode == "tf_crop_and_resize":
        raise Unsupported("coordinate_transformation_mode='tf_crop_and_resize'")
    attrs = resize.to_onnx(ctx.version)
    image = as_dtype(ctx, x, ctx.result_type().dtype)
    kept = ctx.emit("Slice", ctx.emit("Shape", image), ctx.ints([0]), ctx.ints([2]))
    sizes = ctx.emit("Concat", kept, to_int64(ctx, size), axis=0)
    return emit_resize(ctx, image, sizes=sizes, **attrs)


RELAY_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}


def _fits_19(node: Call) -> bool:
    """Of fixed lengths, what ONNX dropped is looked up; of others it is refused with a reason."""
    attrs = node.attrs
    shapes = [each.type.concrete_shape for each in node.args if isinstance(each.type, TensorType)]
    kept = attrs["mode"] != DROPPED or (attrs["method"], attrs["rounding"]) in SHIFTED
    return kept or len(shapes) > 1 or None in shapes


def _fits_18(node: Call) -> bool:
    return node.attrs["mode"] != "half_pixel_symmetric" and _fits_19(node)


def _fits_13(node: Call) -> bool:
    return _fits_11(node) and _fits_19(node)


def _fits_11(node: Call) -> bool:
    """Before 18, all axes have a scale, and nothing is smoothed or kept in proportion."""
    data, attrs = node.args[0].type, node.attrs
    rank = data.rank if isinstance(data, TensorType) else 0
    whole = not attrs["axes"] or normalize_axes(attrs["axes"], rank) == tuple(range(rank))
    plain = not attrs["antialias"] and attrs["policy"] == "stretch"
    return whole and plain and node.attrs["mode"] != "half_pixel_symmetric"


@OPS.exports("serde.resize", when=_fits_11)
@OPS.exports("serde.resize", since=13, when=_fits_13)
@OPS.exports("serde.resize", since=18, when=_fits_18)
@OPS.exports("serde.resize", since=19, when=_fits_19)
def export_resize(
    ctx: Export,
    x: Value,
    roi: Value | None,
    scales: Value | None,
    sizes: Value | None,
    *,
    resize: Resampling,
) -> Value:
    """Up to 12 no operand can be left out, only be empty."""
    mode, rounding = choose_coordinates(ctx.version, resize.mode, resize.method, resize.rounding)
    empty = ctx.const(np.zeros(0, np.float32)) if ctx.version < 13 else None
    dtype = ctx.type(x).dtype if is_float(ctx.type(x).dtype) else "float32"
    part = roi if resize.region is None else ctx.const(resize.region, dtype)
    factors = scales if resize.scale is None else ctx.const(resize.scale, np.float32)
    lengths = sizes if resize.size is None else ctx.shape(resize.size)
    operands = [part or empty, factors or empty, *([] if lengths is None else [lengths])]
    late = ctx.version >= 18
    return ctx.emit(
        "Resize",
        x,
        *operands,
        mode=resize.method,
        coordinate_transformation_mode=mode,
        nearest_mode=rounding if resize.method == "nearest" else None,
        cubic_coeff_a=resize.cubic_alpha if resize.method == "cubic" else None,
        exclude_outside=int(resize.exclude_outside)
        if resize.method == "cubic" or resize.antialias
        else None,
        extrapolation_value=resize.extrapolation_value if mode == "tf_crop_and_resize" else None,
        antialias=int(resize.antialias) or None,
        axes=list(resize.axes) if resize.axes and late else None,
        keep_aspect_ratio_policy=resize.policy if resize.policy != "stretch" else None,
    )


@dataclass(frozen=True, kw_only=True)
class ResizeAttributes:
    """Attributes of Resize."""

    antialias: bool = False
    axes: tuple[int, ...] = ()
    coordinate_transformation_mode: Mode = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: Policy = "stretch"
    mode: Method = "nearest"
    nearest_mode: Rounding = "round_prefer_floor"

    def image_resize(self, ctx: Import, x: Expr, lengths: Mapping[int, Dim]) -> Expr | None:
        """Return Relay's own operator where it says the same, given the new lengths of axes."""
        type_, mode = ctx.type(x), self.coordinate_transformation_mode
        if self.antialias or self.keep_aspect_ratio_policy != "stretch":
            return None
        if mode in ("tf_crop_and_resize", "half_pixel_symmetric"):
            return None
        spatial = [lengths.get(axis, type_.shape[axis]) for axis in range(2, type_.rank)]
        kept = all(lengths.get(axis, n) == n for axis, n in enumerate(type_.shape[:2]))
        odd = mode == "pytorch_half_pixel" and self.mode == "cubic"
        fits = len(spatial) in SPATIAL and kept and not odd and not _has_unknown(spatial)
        if not fits or not (self.mode == "nearest" or is_float(type_.dtype)):
            return None
        return getattr(relay.image, f"resize{len(spatial)}d")(
            x,
            size=spatial,
            layout="NC" + SPATIAL[len(spatial)],
            method=RELAY_METHODS[self.mode],
            coordinate_transformation_mode=mode,
            rounding_method=self.nearest_mode if self.mode == "nearest" else "",
            cubic_alpha=self.cubic_coeff_a,
            cubic_exclude=int(self.exclude_outside),
        )


@OPS.imports("Resize", since=(11, 13, 18, 19))
def import_resize(
    ctx: Import,
    x: Expr,
    roi: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
    *,
    resize: ResizeAttributes,
) -> Expr:
    given = [_drop_empty(ctx, each) for each in (scales, sizes, roi)]
    return build_resize(ctx, x, *given, resize=resize)


@OPS.imports("Resize", since=10)
def import_resize_v10(
    ctx: Import, x: Expr, scales: Expr, *, mode: Literal["nearest", "linear"] = "nearest"
) -> Expr:
    """Before 11, ``y[i] = x[floor(i / scale)]``."""
    resize = ResizeAttributes(
        coordinate_transformation_mode="asymmetric", mode=mode, nearest_mode="floor"
    )
    return build_resize(ctx, x, scales, resize=resize)


def _infer_lengths(
    ctx: Import, x: Expr, scales: Expr | None, sizes: Expr | None, axes: Sequence[int]
) -> tuple[tuple[Dim, ...] | None, bool]:
    """Return the lengths of `axes` afterwards where known, and whether scales are their ratios."""
    if sizes is not None:
        return ctx.dims(sizes), True
    if scales is None or not ctx.is_constant(scales):
        return None, False
    found: list[Dim] = []
    exact = True
    for axis, ratio in zip(axes, map(float, ctx.constant(scales)), strict=False):
        length = ctx.type(x).shape[axis]
        whole = isinstance(length, int) and (length * ratio).is_integer()
        if isinstance(length, int) and whole:
            found.append(int(length * ratio))
            continue
        exact = exact and ratio.is_integer() and not isinstance(length, (int, Any))
        found.append(length * int(ratio) if exact else Any())
    return tuple(found), exact


def build_resize(
    ctx: Import,
    x: Expr,
    scales: Expr | None,
    sizes: Expr | None = None,
    roi: Expr | None = None,
    *,
    resize: ResizeAttributes,
) -> Expr:
    """Return `x` resized: by Relay's own operator where it says the same."""
    rank, axes = ctx.type(x).rank, resize.axes
    named = normalize_axes(axes, rank) if axes else tuple(range(rank))
    for each in (scales, sizes):
        if each is not None and ctx.axis_count(each) != len(named):
            raise Unsupported(f"{ctx.axis_count(each)} scales or sizes of {len(named)} axes")
    known, exact = _infer_lengths(ctx, x, scales, sizes, named)
    if exact and known is not None:
        found = resize.image_resize(ctx, x, dict(zip(named, known, strict=True)))
        if found is not None:
            return found
    given = known if sizes is not None and known is not None and not _has_unknown(known) else None
    mode = resize.coordinate_transformation_mode
    operands = {"scales": scales, "roi": roi if mode == "tf_crop_and_resize" else None}
    values = {
        name: tuple(ctx.constant(each).reshape(-1).tolist())
        for name, each in operands.items()
        if each is not None and ctx.is_constant(each)
    }
    return call(
        "serde.resize", x, None if "roi" in values else operands["roi"],
        None if "scales" in values else scales, None if given is not None else sizes, size=given,
        scale=values.get("scales"), region=values.get("roi"), axes=axes, method=resize.mode,
        mode=mode, rounding=resize.nearest_mode, cubic_alpha=resize.cubic_coeff_a,
        exclude_outside=resize.exclude_outside, extrapolation_value=resize.extrapolation_value,
        antialias=resize.antialias, policy=resize.keep_aspect_ratio_policy,
    )  # fmt: skip


def _has_unknown(dims: Sequence[Dim]) -> bool:
    return any(isinstance(dim, Any) for dim in dims)


def _drop_empty(ctx: Import, x: Expr | None) -> Expr | None:
    """Return an operand; one without elements stands for none."""
    return None if x is None or ctx.type(x).shape == (0,) else x


UpsampleMode = Literal["nearest", "linear", "bilinear"]


def _const_scales(values: Sequence[AnyValue]) -> Expr:
    return relay.const(np.array(values, np.float32))


@OPS.imports("Upsample", since=(9, 10))
def import_upsample(ctx: Import, x: Expr, scales: Expr, *, mode: UpsampleMode = "nearest") -> Expr:
    resize = ResizeAttributes(
        coordinate_transformation_mode="asymmetric",
        mode="nearest" if mode == "nearest" else "linear",
        nearest_mode="floor",
    )
    return build_resize(ctx, x, scales, resize=resize)


@OPS.imports("Upsample", since=7)
def import_upsample_v7(
    ctx: Import, x: Expr, *, scales: tuple[float, ...], mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales(scales), mode=mode)


@OPS.imports("Upsample", since=1)
def import_upsample_v1(
    ctx: Import, x: Expr, *, height_scale: float, width_scale: float, mode: UpsampleMode = "nearest"
) -> Expr:
    return import_upsample(ctx, x, _const_scales([1.0, 1.0, height_scale, width_scale]), mode=mode)
