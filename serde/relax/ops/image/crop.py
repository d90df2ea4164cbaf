"""Boxes cut out of images, and blocks of pixels moved between space and channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

import serde.relay as relay
from serde.core import dataclass, dtype_name, numpy_dtype
from serde.relax.framework import Framework
from serde.relax.ops.image.interpolation import as_float, number_of, truncate
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relay.ir import Expr, is_float, lowest, split_padding
from serde.relay.op.image.crop import CropAndResize


@dataclass(frozen=True)
class _Cropping:
    """How boxes are cut out, one axis after the other, as the kernel does it."""

    framework: Framework
    sizes: Sequence[AnyValue]
    nearest: bool
    work: str
    fill: float

    def _number(self, value: float) -> AnyValue:
        return self.framework.tir.const(value, "float64")

    def _places(self, box: AnyValue, axis: int, length: AnyValue) -> AnyValue:
        """Return where along an axis of its image each element of a box lies, as a stage."""
        framework, tir = self.framework, self.framework.tir
        size, last = as_float(framework, self.sizes[axis]), as_float(framework, length - 1)
        one, half = self._number(1.0), self._number(0.5)

        def place(n: AnyValue, i: AnyValue) -> AnyValue:
            start, end = (box[n, axis + 2 * side].astype("float64") for side in (0, 1))
            steps = tir.max(size - one, one)
            moved = start * last + as_float(framework, i) * ((end - start) * last) / steps
            return tir.Select(size == one, half * (start + end) * last, moved)

        return framework.te.compute((box.shape[0], self.sizes[axis]), place, name="places")

    def _between(
        self, read: Callable[[AnyValue], AnyValue], place: AnyValue, length: AnyValue
    ) -> AnyValue:
        tir, one = self.framework.tir, self._number(1.0)
        last = as_float(self.framework, length - 1)

        def at(whole: AnyValue) -> AnyValue:
            return read(tir.max(tir.min(whole, last), self._number(0.0)).astype("int64"))

        if self.nearest:
            return at(tir.floor(place + self._number(0.5)))
        below = tir.floor(place)
        part = place - below
        first = at(below) * (one - part).astype(self.work)
        return first + at(below + one) * part.astype(self.work)

    def crop(self, image: AnyValue, box: AnyValue, which: AnyValue) -> AnyValue:
        """Return the boxes in the dtype that they are computed in."""
        framework, tir, te = self.framework, self.framework.tir, self.framework.te
        count, (_, channels, height, width) = box.shape[0], image.shape
        rows, columns = self._places(box, 0, height), self._places(box, 1, width)

        def read_row(n: AnyValue, c: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            number = which[n].astype("int64")

            def read(row: AnyValue) -> AnyValue:
                return image[number, c, row, x].astype(self.work)

            return self._between(read, rows[n, y], height)

        held = te.compute((count, channels, self.sizes[0], width), read_row, name="rows_read")

        def read_pixel(n: AnyValue, c: AnyValue, y: AnyValue, x: AnyValue) -> AnyValue:
            value = self._between(lambda column: held[n, c, y, column], columns[n, x], width)
            zero = self._number(0.0)
            beyond = tir.any(
                rows[n, y] < zero, rows[n, y] > as_float(framework, height - 1),
                columns[n, x] < zero, columns[n, x] > as_float(framework, width - 1),
            )  # fmt: skip
            return tir.Select(beyond, number_of(framework, self.fill, self.work), value)

        return te.compute((count, channels, *self.sizes), read_pixel, name="crop_and_resize")


@OPS.exports("image.crop_and_resize")
def export_crop_and_resize(
    ctx: Export, data: Value, boxes: Value, box_indices: Value, *, crop: CropAndResize
) -> Value:
    given, nearest = ctx.type(data).dtype, crop.method == "nearest_neighbor"
    work = given if nearest or given == "float64" else "float32"
    dtype = given if crop.out_dtype is None else dtype_name(crop.out_dtype)
    sizes = ctx.dims(crop.crop_size or ())
    cropping = _Cropping(ctx.framework, sizes, nearest, work, crop.extrapolation_value)

    def crop_and_resize(*tensors: AnyValue) -> AnyValue:
        made = cropping.crop(*tensors)
        cut = ctx.framework.te.compute
        return cut(made.shape, lambda *at: truncate(made[at], work, dtype), name="truncated")

    return ctx.emit_te(crop_and_resize, data, boxes, box_indices)


@OPS.exports("image.dilation2d")
def export_dilation2d(
    ctx: Export, data: Value, weight: Value,
    *, strides: tuple[int, ...], padding: tuple[int, ...], dilations: tuple[int, ...],
    out_dtype: np.dtype[AnyValue] | None,
) -> Value:  # fmt: skip
    """Sums of integers wrap as NumPy's do, before the greatest is taken."""
    framework, given = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    dtype = given if out_dtype is None else dtype_name(out_dtype)
    before, after = split_padding(padding, 2)
    least = number_of(framework, float(lowest(numpy_dtype(given))), given)
    wide = dtype if is_float(dtype) else "int64"

    def dilation2d(image: AnyValue, window: AnyValue) -> AnyValue:
        batch, channels, *space = image.shape
        taps = [te.reduce_axis((0, n), name=f"k{i}") for i, n in enumerate(window.shape[1:])]
        lengths = [
            tir.floordiv(n + b + a - (k - 1) * d - 1, s) + 1
            for n, b, a, k, d, s in zip(
                space, before, after, window.shape[1:], dilations, strides, strict=True
            )
        ]

        def reach(n: AnyValue, c: AnyValue, *indices: AnyValue) -> AnyValue:
            axes = zip(indices, strides, taps, dilations, before, strict=True)
            read = [p * s + k * d - b for p, s, k, d, b in axes]
            inside = [tir.all(r >= 0, r < end) for r, end in zip(read, space, strict=True)]
            held = tir.if_then_else(tir.all(*inside), image[(n, c, *read)], least)
            factor = window[(c, *taps)].astype(dtype)
            total = held.astype(dtype).astype(wide) + factor.astype(wide)
            return te.max(total.astype(dtype), axis=taps)

        return te.compute((batch, channels, *lengths), reach, name="dilation2d")

    return ctx.emit_te(dilation2d, data, weight)


@OPS.imports("relax.nn.pixel_shuffle")
def import_pixel_shuffle(ctx: Import, data: Expr, *, upscale_factor: int) -> Expr:
    """What leads the last three axes are samples."""
    shape = ctx.type(data).shape
    x = data if len(shape) == 4 else relay.reshape(data, (-1, *shape[-3:]))
    found = relay.nn.depth_to_space(x, upscale_factor, mode="CRD")
    if len(shape) == 4:
        return found
    return relay.reshape(found, (*shape[:-3], *ctx.type(found).shape[-3:]))
