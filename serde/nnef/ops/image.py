"""Images resized, and read at places that are computed.

What Relay resizes in many ways goes out as the fragment that reads the same elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core import Array, dataclass, field
from serde.errors import ConverterBug, Unsupported
from serde.nnef.ops.conv.windows import per_axis
from serde.nnef.ops.pool.window import PoolAttributes, import_box
from serde.nnef.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Call, Expr, call, tensor_type
from serde.relay.ir.schema import gather
from serde.relay.lowering.regions import reads_between
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resize import ImageResize
from serde.walk.expansion.pool import USUAL
from serde.walk.expansion.resizing import image_expansion


def _expand_places(data: Expr, *indices: Expr, name: str, **attrs: AnyValue) -> Expr:
    """Compute places in the dtype of the images, if that is wide."""
    wide = "float64" if tensor_type(data).dtype == "float64" else "float32"
    return gather(reads_between(wide, wide)[name])(data, *indices, **attrs)


for _name in reads_between("float32", "float32"):
    OPS.expands(_name)(partial(_expand_places, name=_name))
for _ndim in (1, 2, 3):
    OPS.expands(f"image.resize{_ndim}d")(image_expansion(_ndim))


_MODES = {"symmetric": "half_pixel", "asymmetric": "asymmetric", "aligned": "align_corners"}
"""How Relay calls the places of elements."""


def _block(ctx: Import, input: Expr, factor: Sequence[int]) -> tuple[int, ...]:
    """Return the factors of all axes."""
    return (1, 1, *per_axis(factor, ctx.rank(input) - 2, "factor"))


@OPS.imports("nearest_downsample")
def import_nearest_downsample(ctx: Import, input: Expr, *, factor: tuple[int, ...]) -> Expr:
    """The first element of each block."""
    block = _block(ctx, input, factor)
    ones, nothing = (1,) * len(block), ((0, 0),) * len(block)
    pool = PoolAttributes(size=ones, stride=block, padding=nothing)
    return import_box(ctx, input, pool=pool)


@OPS.imports("area_downsample")
def import_area_downsample(ctx: Import, input: Expr, *, factor: tuple[int, ...]) -> Expr:
    """The mean of each block."""
    block = _block(ctx, input, factor)
    pool = PoolAttributes(size=block, stride=block, padding=((0, 0),) * len(block))
    return import_box(ctx, input, pool=pool, normalize=True)


def _resize(ctx: Import, x: Expr, factor: Sequence[int], method: str, mode: str) -> Expr:
    """Return a tensor scaled along all axes but the first two."""
    lengths = ctx.type(x).shape
    size = [n * scale for n, scale in zip(lengths[2:], factor, strict=True)]
    if not size:
        return x
    ndim = len(size)
    if ndim > 3:
        raise Unsupported(f"scaling along {ndim} axes")
    return call(
        f"image.resize{ndim}d",
        x,
        size=tuple(size),
        layout=USUAL[ndim],
        method=method,
        coordinate_transformation_mode=mode,
        rounding_method="floor" if method == "nearest_neighbor" else "",
    )


@OPS.imports("nearest_upsample")
def import_nearest_upsample(ctx: Import, input: Expr, *, factor: tuple[int, ...]) -> Expr:
    """Every element as often as the factors say."""
    return _resize(ctx, input, _block(ctx, input, factor)[2:], "nearest_neighbor", "asymmetric")


@OPS.imports("multilinear_upsample")
def import_multilinear_upsample(
    ctx: Import,
    input: Expr,
    *,
    factor: tuple[int, ...],
    method: Literal["symmetric", "asymmetric", "aligned"] = "symmetric",
    border: Literal["replicate", "constant"] = "replicate",
) -> Expr:
    """Where zeros lie beyond the data, they are put there and what they give is cut off."""
    scales = _block(ctx, input, factor)[2:]
    if border == "replicate" or method == "aligned":
        return _resize(ctx, input, scales, "linear", _MODES[method])
    axes = [axis for axis, scale in enumerate(scales, 2) if scale > 1]
    if not axes:
        return input
    ahead = 1 if method == "symmetric" else 0
    sides = [(ahead, 1) if axis in axes else (0, 0) for axis in range(ctx.rank(input))]
    lengths = ctx.static_lengths(input, axes)
    wide = relay.nn.pad(input, sides, relay.const(0.0, ctx.type(input).dtype))
    scaled = _resize(ctx, wide, scales, "linear", _MODES[method])
    begin = [ahead * scales[axis - 2] for axis in axes]
    end = [
        first + n * scales[axis - 2] for first, n, axis in zip(begin, lengths, axes, strict=True)
    ]
    return relay.strided_slice(scaled, begin, end, [1] * len(axes), axes=axes)


@dataclass(frozen=True)
class _Form:
    """A fragment that does what a resizing does."""

    op: str
    factor: tuple[int, ...]
    attributes: Mapping[str, AnyValue] = field(default_factory=dict)


def _find_form(lengths: Sequence[int], size: Sequence[int], how: Interpolation) -> _Form | None:
    """Return the fragment that reads elements as an interpolation does, if there is one."""
    axes = list(zip(lengths, size, strict=True))
    places = [how.positions(n, count, 0.0, 1.0) for n, count in axes]
    if all(count % n == 0 for n, count in axes):
        factor = tuple(count // n for n, count in axes)
        return _find_upsampling(axes, factor, how, places)
    if any(n % count for n, count in axes):
        return None
    factor = tuple(n // count for n, count in axes)
    read = [_read_whole(each, n, how) for each, (n, _) in zip(places, axes, strict=True)]
    firsts = [
        allocation.arange(count) * step for (_, count), step in zip(axes, factor, strict=True)
    ]
    if all(a is not None and np.array_equal(a, b) for a, b in zip(read, firsts, strict=True)):
        return _Form("nearest_downsample", factor)
    middles = [each + (step - 1) / 2 for each, step in zip(firsts, factor, strict=True)]
    halves = how.method == "linear" and max(factor) == 2
    if halves and all(map(np.array_equal, places, middles)):
        return _Form("area_downsample", factor)
    return None


def _read_whole(positions: Array, length: int, how: Interpolation) -> Array | None:
    """Return which elements are read, where it is one for each place."""
    if how.method == "nearest_neighbor":
        return how.taps(positions, length)[0][0]
    if how.method == "linear" and np.array_equal(positions, np.floor(positions)):
        return np.clip(positions, 0, length - 1)
    return None


def _find_upsampling(
    axes: Sequence[tuple[int, int]],
    factor: tuple[int, ...],
    how: Interpolation,
    positions: Sequence[Array],
) -> _Form | None:
    pairs = list(zip(positions, axes, strict=True))
    if how.method == "nearest_neighbor":
        read = [_read_whole(each, n, how) for each, (n, _) in pairs]
        blocks = [allocation.arange(count) // (count // n) for n, count in axes]
        same = all(
            found is not None and np.array_equal(found, block)
            for found, block in zip(read, blocks, strict=True)
        )
        return _Form("nearest_upsample", factor) if same else None
    if how.method != "linear":
        return None
    for method, mode in _MODES.items():
        wanted = Interpolation("linear", mode)
        if all(
            np.array_equal(each.clip(0, n - 1), wanted.positions(n, count, 0.0, 1.0).clip(0, n - 1))
            for each, (n, count) in pairs
        ):
            return _Form("multilinear_upsample", factor, {"method": method})
    return None


def _interpolation_of(attrs: Mapping[str, AnyValue]) -> Interpolation:
    """Return how an axis is read; nn.upsampling calls it otherwise than the others."""
    method = attrs["method"].removeprefix("tri").removeprefix("bi")
    mode = attrs.get("coordinate_transformation_mode")
    mode = mode or ("align_corners" if attrs["align_corners"] else "asymmetric")
    return Interpolation(method, mode, attrs.get("rounding_method", ""))


def _form_of(node: Call) -> _Form | None:
    """Return the fragment that does what a call of a resizing does, if there is one."""
    data, result = tensor_type(node.args[0]), tensor_type(node)
    shape, wanted = data.concrete_shape, result.concrete_shape
    how = _interpolation_of(node.attrs)
    fixed = shape is not None and wanted is not None and how.mode != "tf_crop_and_resize"
    if not fixed or result.dtype != data.dtype:
        return None
    return _find_form((shape or ())[2:], (wanted or ())[2:], how)


def _emit_form(ctx: Export, data: Value, attrs: Mapping[str, AnyValue]) -> Value:
    wanted = ctx.result_type().concrete_shape or ()
    form = _find_form(ctx.static_shape(data)[2:], wanted[2:], _interpolation_of(attrs))
    if form is None:
        raise ConverterBug(f"{ctx.source}: no fragment resizes so")
    return ctx.emit(form.op, data, factor=list(form.factor), **form.attributes)


@dataclass(frozen=True, kw_only=True)
class ResizeAttributes(ImageResize):
    """Attributes of the resizings of Relay."""

    size: tuple[int, ...] | None
    roi: tuple[float, ...] | None


def _has_form(node: Call) -> bool:
    return _form_of(node) is not None


@OPS.exports("image.resize1d", "image.resize2d", "image.resize3d", when=_has_form)
def export_resize(ctx: Export, data: Value, *, resize: ResizeAttributes) -> Value:
    return _emit_form(ctx, data, vars(resize))
