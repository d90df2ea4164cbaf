"""Resizing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any as AnyValue, Final, Literal

import numpy as np

import serde.core.allocation as allocation
import serde.relay as relay
from serde.core.weights import Array, dtype_name
from serde.coreml.mlprogram.operators import HALVES
from serde.coreml.mlprogram.ops.table import OPS, Export, Import, Value
from serde.errors import Unsupported
from serde.relay.ir import Call, Dim, Expr, TensorType, call, get, tensor_type
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resize import ImageResize
from serde.walk.expansion.resizing import image_expansion, interpolation
from serde.walk.takes import Takes

Sampling = Literal[
    "STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "UNALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS"
]

MODES = {
    "STRICT_ALIGN_CORNERS": "align_corners",
    "UNALIGN_CORNERS": "half_pixel",
    "DEFAULT": "asymmetric",
}
"""Relay's mode by MIL's."""

SAMPLINGS = {mode: name for name, mode in MODES.items()}

_USUAL = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def resize_last_axes(
    ctx: Import,
    x: Expr,
    size: Sequence[int],
    method: str,
    mode: str,
    roi: Sequence[float] | None = None,
) -> Expr:
    """Return a tensor with its last axes resized; of four axes, the usual operator of images."""
    rank = ctx.type(x).rank
    rounding = {"rounding_method": "floor"} if method == "nearest_neighbor" else {}
    attrs: dict[str, AnyValue] = {"coordinate_transformation_mode": mode, "roi": roi, **rounding}
    if rank == 4 and len(size) == 2:
        return relay.image.resize2d(x, tuple(size), method=method, **attrs)
    count = len(size)
    if rank - count > 0 and count <= 3:
        # Whatever lies before the axes that are resized counts as channels.
        shape = ctx.type(x).shape
        lead = [length for length in shape[: rank - count] if isinstance(length, int)]
        if len(lead) == rank - count:
            flat = relay.reshape(x, [1, math.prod(lead), *last_lengths(ctx, x, count)])
            build = getattr(relay.image, f"resize{count}d")
            result = build(flat, tuple(size), layout=_USUAL[count], method=method, **attrs)
            return relay.reshape(result, [*lead, *size])
    raise Unsupported(f"{count} axes of {ctx.type(x)!r} are resized")


def last_lengths(ctx: Import, x: Expr, count: int) -> tuple[int, ...]:
    rank = ctx.type(x).rank
    return ctx.static_lengths(x, range(rank - count, rank))


def _resize_linear(ctx: Import, x: Expr, size: Sequence[int], sampling: Sampling) -> Expr:
    """Return a tensor with its last axes resized linearly."""
    if sampling in MODES:
        return resize_last_axes(ctx, x, size, "linear", MODES[sampling])
    if sampling == "ALIGN_CORNERS":
        # One place lies in the middle, as where TensorFlow crops the whole image.
        if all(length > 1 for length in size):
            return resize_last_axes(ctx, x, size, "linear", "align_corners")
        roi = [0.0] * len(size) + [1.0] * len(size)
        return resize_last_axes(ctx, x, size, "linear", "tf_crop_and_resize", roi)
    starts, ends = [], []
    for length, wanted in zip(last_lengths(ctx, x, len(size)), size, strict=True):
        step = max(1, length - 1) / wanted
        last = max(1, length - 1)
        starts.append(0.5 * step / last)
        ends.append((0.5 + wanted - 1) * step / last)
    return resize_last_axes(ctx, x, size, "linear", "tf_crop_and_resize", starts + ends)


@OPS.imports("resize_bilinear")
def import_resize_bilinear(
    ctx: Import,
    x: Expr,
    *,
    target_size_height: int = 1,
    target_size_width: int = 1,
    sampling_mode: Sampling = "DEFAULT",
) -> Expr:
    return _resize_linear(ctx, x, (target_size_height, target_size_width), sampling_mode)


@OPS.imports("resize_nearest_neighbor")
def import_resize_nearest_neighbor(
    ctx: Import, x: Expr, *, target_size_height: int, target_size_width: int
) -> Expr:
    """The pixel in whose reach the centre of the new one lies, as TensorFlow 2 has it."""
    size = (target_size_height, target_size_width)
    return resize_last_axes(ctx, x, size, "nearest_neighbor", "tf_half_pixel_for_nn")


@OPS.imports("resize", since=17)
def import_resize(
    ctx: Import,
    x: Expr,
    shape: Expr,
    *,
    resized_dims: int,
    interpolation_mode: Literal["LINEAR", "NEAREST_NEIGHBOR"] = "LINEAR",
    sampling_mode: Sampling = "DEFAULT",
) -> Expr:
    """The last elements of `shape` count; zero keeps a length."""
    wanted = ctx.ints(shape)[len(ctx.ints(shape)) - resized_dims :]
    kept = ctx.type(x).shape[ctx.type(x).rank - resized_dims :]
    size = [length if length else own for length, own in zip(wanted, kept, strict=True)]
    fixed = [length for length in size if isinstance(length, int)]
    if len(fixed) < len(size):
        raise Unsupported(f"keeps an open length of {ctx.type(x)!r}")
    if interpolation_mode == "LINEAR":
        return _resize_linear(ctx, x, fixed, sampling_mode)
    if sampling_mode != "DEFAULT":
        raise Unsupported(f"sampling_mode={sampling_mode!r} of nearest neighbours")
    return resize_last_axes(ctx, x, fixed, "nearest_neighbor", "tf_half_pixel_for_nn")


def _places(
    type_: TensorType, attrs: Mapping[str, AnyValue]
) -> tuple[list[Array], list[int], list[int]] | None:
    """Return where each axis of a resizing is read, with lengths before and after it."""
    rank = type_.rank - 2
    before = [length for length in type_.shape[2:] if isinstance(length, int)]
    after = [length for length in attrs["size"] or () if isinstance(length, int)]
    if len(before) < rank or len(after) < rank:
        return None
    how = interpolation(attrs)
    roi = attrs["roi"] or (0.0,) * (2 * rank)
    positions = [how.positions(before[i], after[i], roi[i], roi[rank + i]) for i in range(rank)]
    return positions, before, after


def sampling_of(type_: TensorType, attrs: Mapping[str, AnyValue]) -> str | None:
    """Return the mode of MIL that reads images at the same positions; None if none does."""
    if type_.dtype not in ("float16", "float32"):
        return None
    rank = type_.rank - 2
    dtype = None if attrs["out_dtype"] is None else dtype_name(attrs["out_dtype"])
    found = _places(type_, attrs)
    if rank > 2 or dtype not in (None, type_.dtype) or not found:
        return None
    positions, before, after = found
    if attrs["method"] == "linear":
        return _linear_sampling(positions, before, after)
    if attrs["method"] != "nearest_neighbor":
        return None
    how = interpolation(attrs)
    read = [how.taps(at, length)[0][0] for at, length in zip(positions, before, strict=True)]
    triples = list(zip(read, before, after, strict=True))
    for name, form in _NEAREST.items():
        if all(np.array_equal(r, _read_rows(form, b, a)) for r, b, a in triples):
            return name
    return None


_NEAREST: Final[Mapping[str, Callable[[Array, int, int], Array]]] = {
    "centres": lambda i, length, size: (2 * i + 1) * length // (2 * size),
    "corners": lambda i, length, size: i * length // size,
}
"""Which element is read for each place, of so many elements and for so many places."""


def _read_rows(form: Callable[[Array, int, int], Array], length: int, size: int) -> Array:
    return allocation.at_positions(size, lambda i: form(i, length, size))


def _linear_sampling(
    positions: Sequence[Array], before: Sequence[int], after: Sequence[int]
) -> str | None:
    """Return the first mode of MIL that reads all axes at these positions, ends kept."""
    for name, mode in MODES.items():
        how = Interpolation("linear", mode)
        wanted = [how.positions(b, a, 0.0, 1.0) for b, a in zip(before, after, strict=True)]
        triples = zip(positions, wanted, before, strict=True)
        if all(_read_alike(*each) for each in triples):
            return name
    return None


_PIECE: Final = 2**16
"""Places that are compared at once."""


def _read_alike(positions: Array, wanted: Array, length: int) -> bool:
    """Whether places are those that are wanted once both are cut to a length, and near it."""
    for start in range(0, len(positions), _PIECE):
        p, w = (each[start : start + _PIECE] for each in (positions, wanted))
        if (p < -1).any() or (p > length).any():
            return False
        if not np.allclose(np.clip(p, 0, length - 1), np.clip(w, 0, length - 1), 0, 1e-9):
            return False
    return True


def _is_supported(node: Call) -> bool:
    """Whether MIL resizes so; what TensorFlow's crops fill in beyond the image it does not."""
    type_ = node.args[0].type
    if not isinstance(type_, TensorType) or sampling_of(type_, node.attrs) is None:
        return False
    if node.attrs["coordinate_transformation_mode"] != "tf_crop_and_resize":
        return True
    found = _places(type_, node.attrs)
    return found is not None and all(
        bool((at >= 0).all() and (at <= length - 1).all())
        for at, length in zip(found[0], found[1], strict=True)
    )


def _export_resize(
    ctx: Export,
    data: Value,
    *,
    ndim: int,
    size: tuple[Dim, ...] | None,
    roi: tuple[float, ...] | None,
    resize: ImageResize,
) -> Value:
    """A line is an image of one row."""
    sampling = sampling_of(ctx.type(data), vars(resize) | {"size": size, "roi": roi})
    lengths = [length for length in size or () if isinstance(length, int)]
    if sampling is None or len(lengths) < ndim:
        raise Unsupported(f"{resize.method} resizing of {ctx.type(data)!r} to {size}")
    wanted = ctx.result_type()
    image = data
    shape = list(wanted.shape)
    if ndim == 1:
        image = ctx.spell(lambda x: relay.expand_dims(x, 2), data)
        shape.insert(2, 1)
        lengths = [1, *lengths]
    type_ = TensorType(shape, wanted.dtype)
    result = _resize(ctx, image, lengths, sampling, type_)
    return ctx.spell(lambda x: relay.squeeze(x, [2]), result) if ndim == 1 else result


def _resize(
    ctx: Export, image: Value, size: Sequence[int], sampling: str, type_: TensorType
) -> Value:
    """Append the operation that resizes images at the positions of a mode of MIL."""
    height, width = size
    if sampling == "corners":
        pairs = zip(ctx.static_lengths(image, (2, 3)), size, strict=True)
        # Just above the ratio, for the length is that of what it gives, rounded down.
        factors = [
            after // before if after % before == 0 else (after + 1e-4) / before
            for before, after in pairs
        ]
        if any(isinstance(factor, float) for factor in factors):
            factors = [float(factor) for factor in factors]
        return ctx.emit(
            "upsample_nearest_neighbor",
            type_,
            x=image,
            scale_factor_height=_factor(ctx, factors[0]),
            scale_factor_width=_factor(ctx, factors[1]),
        )
    if sampling == "centres":
        return ctx.emit(
            "resize_nearest_neighbor",
            type_,
            x=image,
            target_size_height=height,
            target_size_width=width,
        )
    return ctx.emit(
        "resize_bilinear",
        type_,
        x=image,
        target_size_height=height,
        target_size_width=width,
        sampling_mode=sampling,
    )


def _factor(ctx: Export, factor: float) -> Value:
    """Return a factor: MIL has it in int32 or float32, whatever the dtype of the image."""
    return ctx.const(factor, "int32" if isinstance(factor, int) else "float32")


for _ndim in (1, 2, 3):
    _name = f"image.resize{_ndim}d"
    OPS.expands(_name)(image_expansion(_ndim, half="float32"))
    if _ndim < 3:
        OPS.exports(_name, when=_is_supported)(partial(_export_resize, ndim=_ndim))


_OPEN = {"linear": "LINEAR", "nearest_neighbor": "NEAREST_NEIGHBOR"}


def _to_open_size(node: Call) -> bool:
    """Whether MIL resizes to a size that is computed: linearly, or to the nearest centre."""
    attrs = node.attrs
    mode, method = attrs["coordinate_transformation_mode"], attrs["method"]
    rounding = attrs["rounding_method"]
    nearest = method == "nearest_neighbor" and (
        (mode == "tf_half_pixel_for_nn" and rounding in ("floor", ""))
        or (mode == "half_pixel" and rounding == "round_prefer_ceil")
    )
    return nearest or (method == "linear" and mode in SAMPLINGS)


@OPS.exports(
    "dyn.image.resize2d", since=17, takes=Takes(data=HALVES, out_dtype=None), when=_to_open_size
)
def export_dyn_resize(
    ctx: Export, data: Value, size: Value, roi: Value, *, resize: ImageResize
) -> Value:
    """A size that is computed."""
    mode = resize.coordinate_transformation_mode
    return ctx.emit(
        "resize",
        x=data,
        shape=ctx.cast(size, "int32"),
        resized_dims=ctx.const(np.array(2, np.uint32)),
        interpolation_mode=_OPEN[resize.method],
        sampling_mode=SAMPLINGS[mode] if resize.method == "linear" else "DEFAULT",
    )


@OPS.expands("serde.resize")
def expand_serde_resize(
    data: Expr, roi: Expr | None, scales: Expr | None, sizes: Expr | None, **attrs: AnyValue
) -> Expr:
    """Images whose lengths say all are resized as such; others have a decomposition."""
    size = _whole_size(data, attrs)
    plain = roi is None and scales is None and sizes is None and attrs["region"] is None
    if size is None or not plain or attrs["method"] == "cubic":
        made = get("serde.resize").decompose
        if made is None:
            raise Unsupported("a resizing of other axes than those of images")
        return made(data, roi, scales, sizes, **attrs)
    return call(
        "image.resize2d",
        data,
        size=size,
        method="linear" if attrs["method"] == "linear" else "nearest_neighbor",
        coordinate_transformation_mode=attrs["mode"],
        rounding_method=attrs["rounding"] if attrs["method"] == "nearest" else "",
    )


def _whole_size(data: Expr, attrs: Mapping[str, AnyValue]) -> tuple[int, int] | None:
    """Return height and width of the result, where they are all that a resizing changes."""
    type_ = tensor_type(data)
    axes = [axis % type_.rank for axis in attrs["axes"]] or list(range(type_.rank))
    modes = (*MODES.values(), "pytorch_half_pixel")
    usual = attrs["mode"] in modes and attrs["policy"] == "stretch"
    if type_.rank != 4 or not usual or attrs["antialias"] or attrs["exclude_outside"]:
        return None
    found = dict(zip(axes, attrs["size"] or attrs["scale"] or (), strict=False))
    size = []
    for axis, length in enumerate(type_.shape):
        wanted = found.get(axis, length if attrs["size"] else 1)
        if not attrs["size"] and isinstance(length, int):
            wanted = wanted * length
        elif not attrs["size"]:
            wanted = length if wanted == 1 else None
        if axis < 2 and wanted != length:
            return None
        if axis >= 2 and (not isinstance(wanted, (int, float)) or wanted != int(wanted)):
            return None
        size.append(wanted)
    return int(size[2]), int(size[3])
