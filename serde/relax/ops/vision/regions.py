"""Regions of images, pooled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

from serde.relax.export_context import ExportContext, Value
from serde.relax.framework import Framework
from serde.relax.ops.conv.windows import arrange
from serde.relax.ops.table import OPS
from serde.relay.ir.dims import Dim
from serde.relay.ir.expr import Expr
from serde.relay.ir.precision import lowest
from serde.relay.ir.registry import call
from serde.relay.ir.shapes import is_float
from serde.walk.expansion.blocks import named_dims
from serde.weights import numpy_dtype

__all__: list[str] = []


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
    ctx: ExportContext, samples: _Samples, data: Value, rois: Value, images: Value | None = None
) -> Value:
    """Write regions pooled by loops; without `images` a region begins with its number."""
    framework = ctx.framework
    statements = framework.statements
    offset = 1 if images is None else 0

    def roi_align(image: AnyValue, regions: AnyValue, *numbers: AnyValue) -> AnyValue:
        shape = (regions.shape[0], image.shape[1], *samples.bins)

        def write(ins: AnyValue, outs: AnyValue) -> AnyValue:
            x, corners, *which = map(statements.buffer_proxy, ins)
            number = which[0] if which else corners

            def image_of(r: AnyValue) -> AnyValue:
                return (number[r] if which else number[r, 0]).astype("int64")

            def corner(r: AnyValue, place: int) -> AnyValue:
                return corners[r, place + offset]

            out = statements.buffer_proxy(outs[0])
            return framework.write_statements(lambda: samples.write(x, corner, image_of, out))

        return framework.te.extern(
            [shape], [image, regions, *numbers], write, dtype=[str(image.dtype)], name="roi_align"
        )

    return ctx.emit_te(roi_align, data, rois, *([] if images is None else [images]))


@OPS.exports("vision.roi_align")
def export_roi_align(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    sample_ratio: int,
    layout: str,
    mode: str,
) -> Value:
    samples = _Samples(
        ctx.framework, _sizes(ctx, pooled_size), spatial_scale, sample_ratio,
        "float64" if ctx.type(data).dtype == "float64" else "float32",
        least=True, shift=0.0, greatest=mode == "max", weighted=False,
    )  # fmt: skip
    made = _pool_regions(ctx, samples, arrange(ctx, data, layout, "NCHW"), rois)
    return arrange(ctx, made, "NCHW", layout)


def _sizes(ctx: ExportContext, pooled_size: Sequence[Dim]) -> list[AnyValue]:
    return ctx.dims(tuple(pooled_size) * 2 if len(pooled_size) == 1 else pooled_size)


@OPS.exports("serde.roi_align")
def export_serde_roi_align(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    images: Value,
    *,
    pooled_size: tuple[int, ...],
    spatial_scale: float,
    sample_ratio: int,
    mode: str,
    half_pixel: bool,
) -> Value:
    samples = _Samples(
        ctx.framework, pooled_size, spatial_scale, sample_ratio, "float64",
        least=not half_pixel, shift=0.5 if half_pixel else 0.0,
        greatest=mode == "max", weighted=mode == "max",
    )  # fmt: skip
    return _pool_regions(ctx, samples, data, rois, images)


@OPS.exports("vision.roi_pool")
def export_roi_pool(
    ctx: ExportContext,
    data: Value,
    rois: Value,
    *,
    pooled_size: tuple[Dim, ...],
    spatial_scale: float,
    layout: str,
) -> Value:
    framework, dtype = ctx.framework, ctx.type(data).dtype
    te, tir = framework.te, framework.tir
    work = "float64" if dtype == "float64" else "float32"
    sizes = _sizes(ctx, pooled_size)
    least = lowest(numpy_dtype(dtype))
    statements = framework.statements

    def edge(x: AnyValue) -> AnyValue:
        """Return a coordinate rounded to an element, halves away from zero."""
        scaled = x.astype(work) * tir.const(float(spatial_scale), work)
        half, none = tir.const(0.5, work), tir.const(0.0, work)
        rounded = tir.Select(
            scaled < none, none - tir.floor(half - scaled), tir.floor(scaled + half)
        )
        return rounded.astype("int64")

    def roi_pool(image: AnyValue, regions: AnyValue) -> AnyValue:
        shape = (regions.shape[0], image.shape[1], *sizes)

        def bin_of(first: AnyValue, last: AnyValue, place: AnyValue, axis: int) -> list[AnyValue]:
            span = tir.max(last - first + 1, tir.const(1, "int64")).astype(work)
            count = sizes[axis]
            size = span / (
                tir.const(float(count), work) if isinstance(count, int) else count.astype(work)
            )
            ends = tir.floor(place.astype(work) * size), tir.ceil((place + 1).astype(work) * size)
            length = image.shape[2 + axis]
            return [tir.max(tir.min(e.astype("int64") + first, length), 0) for e in ends]

        def write(ins: AnyValue, outs: AnyValue) -> AnyValue:
            x, corners, out = (statements.buffer_proxy(each) for each in (*ins, *outs))

            def loops() -> None:
                total = framework.cell(dtype)
                low, high = framework.cell("int64", 2), framework.cell("int64", 2)
                loop = statements.serial
                with loop(0, shape[0]) as r, loop(0, sizes[0]) as i, loop(0, sizes[1]) as j:
                    for axis, place in enumerate((i, j)):
                        ends = [edge(corners[r, side - axis]) for side in (2, 4)]
                        low[axis], high[axis] = bin_of(ends[0], ends[1], place, axis)
                    with loop(0, shape[1]) as c:
                        total[0] = tir.const(float(least) if is_float(dtype) else int(least), dtype)
                        heights, widths = high[0] - low[0], high[1] - low[1]
                        with loop(0, heights) as y, loop(0, widths) as z:
                            number = corners[r, 0].astype("int64")
                            read = x[number, c, low[0] + y, low[1] + z]
                            total[0] = tir.max(total[0], read)
                        empty = tir.any(high[0] <= low[0], high[1] <= low[1])
                        out[r, c, i, j] = tir.Select(empty, tir.const(0, dtype), total[0])

            return framework.write_statements(loops)

        return te.extern([shape], [image, regions], write, dtype=[dtype], name="roi_pool")

    made = ctx.emit_te(roi_pool, arrange(ctx, data, layout, "NCHW"), rois)
    return arrange(ctx, made, "NCHW", layout)


@OPS.expands("vision.yolo_reorg")
def expand_yolo_reorg(data: Expr, *, stride: int) -> Expr:
    """Darknet takes the tensor for one of fewer channels."""
    n, c, h, w = named_dims(data)
    b = stride
    parts = call("reshape", data, newshape=(n, c // (b * b), h, b, w, b))
    moved = call("transpose", parts, axes=(0, 3, 5, 1, 2, 4))
    return call("reshape", moved, newshape=(n, c * b * b, h // b, w // b))
