"""Regions of images, pooled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue, Literal

import serde.relay as relay
from serde.core import dataclass, numpy_dtype
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.table import OPS, Export, Import, Value
from serde.relax.ops.vision.boxes import emit_loops
from serde.relay.ir import Dim, Expr, call, is_float, lowest
from serde.relay.op.vision.aligned import AlignedRegions
from serde.relay.op.vision.regions import RoiAlign
from serde.walk.pairs import reads


@dataclass(frozen=True)
class _Samples:
    """Where regions are read between elements.

    Attributes:
        framework: TVM.
        bins: How many along each axis.
        scale: Factor of coordinates.
        ratio: Samples of a bin along an axis, if positive; else one for each element.
        work: The dtype of coordinates.
        least: Whether a region is at least one element wide and high.
        shift: What is taken off coordinates.
        greatest: Whether the greatest sample is taken, and not the mean.
        weighted: Whether that is the greatest weighted neighbour.
    """

    framework: Framework
    bins: Sequence[AnyValue]
    scale: float
    ratio: int
    work: str
    least: bool
    shift: float
    greatest: bool
    weighted: bool

    def number(self, value: float) -> AnyValue:
        """Return a constant among coordinates."""
        return self.framework.tir.const(float(value), self.work)

    def write(
        self, image: AnyValue, corners: Callable[..., AnyValue], number: Callable[..., AnyValue],
        out: AnyValue,
    ) -> None:  # fmt: skip
        """Write the loops.

        Args:
            image: ``(N, C, H, W)``.
            corners: Gives a number of a region: left, top, right, bottom.
            number: Gives the image of a region.
            out: Takes the results.
        """
        framework, statements = self.framework, self.framework.statements
        total = framework.cell("float64")
        down, across = framework.cell("int64"), framework.cell("int64")
        regions, channels, rows, columns = out.shape
        counts = (down, across)
        with statements.serial(0, regions) as r:
            start, span = [], []
            for axis in (0, 1):
                scaled = [
                    corners(r, side - axis).astype(self.work) * self.number(self.scale)
                    for side in (1, 3)
                ]
                ends = [each - self.number(self.shift) for each in scaled]
                size = ends[1] - ends[0]
                start.append(ends[0])
                span.append(framework.tir.max(size, self.number(1)) if self.least else size)
                counts[axis][0] = self._count(span[axis], self.bins[axis])
            with (
                statements.serial(0, channels) as c,
                statements.serial(0, rows) as i,
                statements.serial(0, columns) as j,
            ):
                first = -float("inf") if self.greatest else 0.0
                total[0] = framework.tir.const(first, "float64")
                with statements.serial(0, down[0]) as y, statements.serial(0, across[0]) as x:
                    read = self._read(
                        image, number(r), c,
                        self._place(start[0], span[0], self.bins[0], i, y, down[0]),
                        self._place(start[1], span[1], self.bins[1], j, x, across[0]),
                    )  # fmt: skip
                    if self.greatest:
                        total[0] = framework.tir.max(total[0], read)
                    else:
                        total[0] = total[0] + read
                some = framework.tir.max(down[0] * across[0], 1)
                held = total[0] if self.greatest else total[0] / some.astype("float64")
                none = framework.tir.const(0.0, "float64")
                empty = framework.tir.any(down[0] < 1, across[0] < 1)
                found = framework.tir.Select(empty, none, held)
                out[r, c, i, j] = found.astype(str(image.dtype))

    def _count(self, span: AnyValue, bins: AnyValue) -> AnyValue:
        if self.ratio > 0:
            return self.framework.tir.const(self.ratio, "int64")
        return self.framework.tir.ceil(span / self._as_work(bins)).astype("int64")

    def _as_work(self, x: AnyValue) -> AnyValue:
        return self.number(x) if isinstance(x, int) else x.astype(self.work)

    def _place(
        self, start: AnyValue, span: AnyValue, bins: AnyValue, index: AnyValue, sample: AnyValue,
        count: AnyValue,
    ) -> AnyValue:  # fmt: skip
        size = span / self._as_work(bins)
        within = (self._as_work(sample) + self.number(0.5)) * size / self._as_work(count)
        return start + self._as_work(index) * size + within

    def _read(
        self, image: AnyValue, number: AnyValue, c: AnyValue, y: AnyValue, x: AnyValue
    ) -> AnyValue:
        """Return what is read at a place, zero where that is more than one element outside."""
        tir = self.framework.tir
        sides, near = [], []
        for place, length in zip((y, x), image.shape[2:], strict=True):
            end = self._as_work(length)
            near += [place >= self.number(-1), place <= end]
            held = tir.max(tir.min(place, end - self.number(1)), self.number(0))
            low = tir.floor(held)
            part = (held - low).astype("float64")
            index = low.astype("int64")
            one = tir.const(1.0, "float64")
            sides.append([(index, one - part), (tir.min(index + 1, length - 1), part)])
        parts = [
            image[number, c, row, column].astype("float64") * (down * across)
            for row, down in sides[0]
            for column, across in sides[1]
        ]
        found = parts[0]
        for part in parts[1:]:
            found = tir.max(found, part) if self.weighted else found + part
        return tir.if_then_else(tir.all(*near), found, tir.const(0.0, "float64"))


def _pool_regions(
    ctx: Export, samples: _Samples, data: Value, rois: Value, images: Value | None = None
) -> Value:
    """Write regions pooled by loops; without `images` a region begins with its number."""
    offset, dtype = 1 if images is None else 0, ctx.type(data).dtype

    def forms(image: AnyValue, regions: AnyValue, *_: AnyValue) -> list[AnyValue]:
        return [((regions.shape[0], image.shape[1], *samples.bins), dtype)]

    def write(given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        image, corners, *numbers = given

        def image_of(r: AnyValue) -> AnyValue:
            return (numbers[0][r] if numbers else corners[r, 0]).astype("int64")

        def corner(r: AnyValue, index: int) -> AnyValue:
            return corners[r, index + offset]

        samples.write(image, corner, image_of, made[0])

    operands = [data, rois, *([] if images is None else [images])]
    return emit_loops(ctx, "roi_align", write, operands, forms, 1)[0]


@OPS.exports("vision.roi_align")
def export_roi_align(ctx: Export, data: Value, rois: Value, *, roi: RoiAlign) -> Value:
    samples = _Samples(
        ctx.framework, _sizes(ctx, roi.pooled_size), roi.spatial_scale, roi.sample_ratio,
        "float64" if ctx.type(data).dtype == "float64" else "float32",
        least=True, shift=0.0, greatest=roi.mode == "max", weighted=False,
    )  # fmt: skip
    return _pool_regions(ctx, samples, data, rois)


def _sizes(ctx: Export, pooled_size: Sequence[Dim]) -> list[AnyValue]:
    return ctx.dims(tuple(pooled_size) * 2 if len(pooled_size) == 1 else pooled_size)


@OPS.exports("serde.roi_align")
def export_serde_roi_align(
    ctx: Export, data: Value, rois: Value, images: Value, *, roi: AlignedRegions
) -> Value:
    samples = _Samples(
        ctx.framework, roi.pooled_size, roi.spatial_scale, roi.sample_ratio, "float64",
        least=not roi.half_pixel, shift=0.5 if roi.half_pixel else 0.0,
        greatest=roi.mode == "max", weighted=roi.mode == "max",
    )  # fmt: skip
    return _pool_regions(ctx, samples, data, rois, images)


@dataclass(frozen=True)
class _Bins:
    """The elements of each bin of a region, edges rounded to elements, which belong to it."""

    framework: Framework
    sizes: Sequence[AnyValue]
    scale: float
    work: str

    def _edge(self, x: AnyValue) -> AnyValue:
        """Return a coordinate rounded to an element, halves away from zero."""
        tir = self.framework.tir
        half, none = tir.const(0.5, self.work), tir.const(0.0, self.work)
        scaled = x.astype(self.work) * tir.const(float(self.scale), self.work)
        down, up = none - tir.floor(half - scaled), tir.floor(scaled + half)
        return tir.Select(scaled < none, down, up).astype("int64")

    def _ends(
        self, first: AnyValue, last: AnyValue, place: AnyValue, axis: int, length: AnyValue
    ) -> list[AnyValue]:
        """Return the first element of a bin along an axis, and the one behind it."""
        tir, count = self.framework.tir, self.sizes[axis]
        parts = tir.const(float(count), self.work) if isinstance(count, int) else count
        size = tir.max(last - first + 1, tir.const(1, "int64")).astype(self.work)
        size = size / (parts if isinstance(count, int) else parts.astype(self.work))
        low = tir.floor(place.astype(self.work) * size)
        high = tir.ceil((place + 1).astype(self.work) * size)
        return [tir.max(tir.min(e.astype("int64") + first, length), 0) for e in (low, high)]

    def write(self, image: AnyValue, corners: AnyValue, out: AnyValue) -> None:
        """Write the loops that take the greatest element of each bin, 0 in an empty one."""
        framework, tir = self.framework, self.framework.tir
        loop, dtype = framework.statements.serial, str(image.dtype)
        least = lowest(numpy_dtype(dtype))
        begin = tir.const(float(least) if is_float(dtype) else int(least), dtype)
        total = framework.cell(dtype)
        low, high = framework.cell("int64", 2), framework.cell("int64", 2)
        regions, channels, rows, columns = out.shape
        with loop(0, regions) as r, loop(0, rows) as i, loop(0, columns) as j:
            for axis, place in enumerate((i, j)):
                first, last = (self._edge(corners[r, side - axis]) for side in (2, 4))
                ends = self._ends(first, last, place, axis, image.shape[2 + axis])
                low[axis], high[axis] = ends
            with loop(0, channels) as c:
                total[0] = begin
                with loop(0, high[0] - low[0]) as y, loop(0, high[1] - low[1]) as z:
                    number = corners[r, 0].astype("int64")
                    read = image[number, c, low[0] + y, low[1] + z]
                    total[0] = tir.max(total[0], read)
                empty = tir.any(high[0] <= low[0], high[1] <= low[1])
                out[r, c, i, j] = tir.Select(empty, tir.const(0, dtype), total[0])


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: Export, data: Value, rois: Value, *, pooled_size: tuple[Dim, ...], spatial_scale: float
) -> Value:
    dtype, sizes = ctx.type(data).dtype, _sizes(ctx, pooled_size)
    work = "float64" if dtype == "float64" else "float32"
    bins = _Bins(ctx.framework, sizes, spatial_scale, work)

    def forms(image: AnyValue, regions: AnyValue) -> list[AnyValue]:
        return [((regions.shape[0], image.shape[1], *sizes), dtype)]

    def write(given: Sequence[AnyValue], made: Sequence[AnyValue]) -> None:
        bins.write(*given, *made)

    return emit_loops(ctx, "roi_pool", write, [data, rois], forms, 1)[0]


OPS.pairs(
    reads("relax.vision.roi_pool", "vision.roi_pool", "pooled_size", "spatial_scale", "layout")
)


@OPS.imports("relax.vision.roi_align")
def import_roi_align(
    ctx: Import, data: Expr, rois: Expr,
    *, pooled_size: tuple[int, ...], spatial_scale: float, sample_ratio: int, aligned: bool,
    layout: Literal["NCHW", "NHWC"], mode: Literal["avg", "max"],
) -> Expr:  # fmt: skip
    """A region begins with its image; aligned, it is as narrow as it likes, but not moved."""
    if not aligned:
        return relay.vision.roi_align(
            data, rois, pooled_size, spatial_scale,
            sample_ratio=sample_ratio, layout=layout, mode=mode,
        )  # fmt: skip
    if mode != "avg":
        raise Unsupported(f"mode={mode!r} of aligned regions has no counterpart")
    x = data if layout == "NCHW" else relay.layout_transform(data, layout, "NCHW")
    images, places = relay.split(rois, (1,), axis=1)
    boxes = relay.add(places, ctx.like(rois, 0.5 / spatial_scale))
    found = call(
        "serde.roi_align", x, boxes, relay.cast(relay.squeeze(images, axis=[1]), "int64"),
        pooled_size=pooled_size, spatial_scale=spatial_scale, sample_ratio=max(sample_ratio, 0),
        half_pixel=True,
    )  # fmt: skip
    return found if layout == "NCHW" else relay.layout_transform(found, "NCHW", layout)
