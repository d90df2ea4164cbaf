"""Images read at the places of a grid, and such grids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any as AnyValue

import serde.relay as relay
from serde.core.records import dataclass
from serde.errors import Unsupported
from serde.relax.framework import Framework
from serde.relax.ops.conv import cast, sum_dtype
from serde.relax.ops.image.interpolation import as_float, cubic_weights, linear_weights, round_even
from serde.relax.ops.table import OPS, Export, Import, Shape, Value
from serde.relay.ir import Expr, call
from serde.relay.op.image.grid import GridSample

_CUBIC_ALPHA = -0.75

Fold = Callable[[AnyValue, AnyValue], AnyValue]


def _fold(framework: Framework, padding_mode: str, align_corners: bool) -> Fold | None:
    """Return what brings places back into an axis, None where those outside read zero."""
    tir = framework.tir
    zero, half, two = (tir.const(value, "float64") for value in (0.0, 0.5, 2.0))

    def clip(place: AnyValue, length: AnyValue) -> AnyValue:
        return tir.max(tir.min(place, as_float(framework, length - 1)), zero)

    def reflect(place: AnyValue, length: AnyValue) -> AnyValue:
        span = as_float(framework, length - 1 if align_corners else length)
        start = zero if align_corners else -half
        safe = tir.Select(span == zero, two, span)
        distance = tir.abs(place - start)
        turns = tir.floor(distance / safe)
        rest = distance - turns * safe
        pairs = turns / two
        folded = tir.Select(tir.floor(pairs) == pairs, rest, safe - rest) + start
        return tir.Select(span == zero, zero, clip(folded, length))

    return {"reflection": reflect, "border": clip}.get(padding_mode)


def _nearest(framework: Framework, place: AnyValue) -> AnyValue:
    """Return the nearest whole number, halves away from zero."""
    tir = framework.tir
    zero, half = tir.const(0.0, "float64"), tir.const(0.5, "float64")
    return tir.Select(place < zero, zero - tir.floor(half - place), tir.floor(place + half))


def read_pixel(
    framework: Framework, image: AnyValue, before: Sequence[AnyValue], corner: Sequence[AnyValue]
) -> AnyValue:
    """Return a pixel at whole places in float64, zero outside the image.

    Args:
        framework: TVM.
        image: Its spatial axes are the last.
        before: Indices of the other axes.
        corner: Where along the spatial axes.
    """
    tir = framework.tir
    zero = tir.const(0.0, "float64")
    index, inside = [], []
    for place, length in zip(corner, image.shape[len(before) :], strict=True):
        last = as_float(framework, length - 1)
        inside += [place >= zero, place <= last]
        index.append(tir.max(tir.min(place, last), zero).astype("int64"))
    nothing = tir.const(0.0, str(image.dtype))
    return tir.if_then_else(tir.all(*inside), image[(*before, *index)], nothing)


@dataclass(frozen=True)
class _Sampling:
    """How images, channels first, are read at a grid.

    Attributes:
        framework: TVM.
        method: How: "linear", "nearest" or "cubic".
        padding_mode: What lies outside.
        align_corners: Whether -1 and 1 are the centres of the end pixels.
        coordinate_axis: That of the grid which has x, y (and z).
        even: Whether the nearest of two pixels as near is the even one.
    """

    framework: Framework
    method: str
    padding_mode: str
    align_corners: bool
    coordinate_axis: int
    even: bool = False

    def _places(self, grid: AnyValue, axis: int, length: AnyValue) -> AnyValue:
        """Return where along an axis of the image each point of the grid lies, as a stage."""
        framework = self.framework
        one, two = (framework.tir.const(value, "float64") for value in (1.0, 2.0))
        before, last = self.coordinate_axis, len(grid.shape) - 3 - axis
        fold = None if self.method == "cubic" else self._fold()
        n = as_float(framework, length)

        def place(*at: AnyValue) -> AnyValue:
            point = grid[(*at[:before], last, *at[before:])].astype("float64") + one
            found = point * (n - one) / two if self.align_corners else (point * n - one) / two
            found = round_even(framework, found) if self.even else found
            return found if fold is None else fold(found, length)

        shape = [dim for number, dim in enumerate(grid.shape) if number != before]
        return framework.te.compute(shape, place, name="places")

    def _fold(self) -> Fold | None:
        return _fold(self.framework, self.padding_mode, self.align_corners)

    def _between(
        self, image: AnyValue, before: Sequence[AnyValue], where: Sequence[AnyValue]
    ) -> AnyValue:
        """Return the weighed sum of the neighbours of a place."""
        framework, tir = self.framework, self.framework.tir
        weigh = linear_weights(framework)
        offsets: tuple[int, ...] = (0, 1)
        fold = None
        if self.method == "cubic":
            weigh, offsets = cubic_weights(framework, _CUBIC_ALPHA), (-1, 0, 1, 2)
            fold = self._fold()
        total: AnyValue = None
        for choice in product(offsets, repeat=len(where)):
            corner, factor = [], tir.const(1.0, "float64")
            for place, offset, length in zip(where, choice, image.shape[2:], strict=True):
                below = tir.floor(place)
                moved = below + tir.const(float(offset), "float64")
                corner.append(moved if fold is None else fold(moved, length))
                factor = factor * weigh(offset, place - below)
            read = read_pixel(framework, image, before, corner)
            part = read * factor.astype(str(image.dtype))
            total = part if total is None else total + part
        return total

    def grid_sample(self, image: AnyValue, grid: AnyValue) -> AnyValue:
        """Return the image read at the grid."""
        found = [self._places(grid, axis, n) for axis, n in enumerate(image.shape[2:])]

        def read(n: AnyValue, c: AnyValue, *at: AnyValue) -> AnyValue:
            where = [each[(n, *at)] for each in found]
            if self.method != "nearest":
                return self._between(image, (n, c), where)
            corner = [_nearest(self.framework, each) for each in where]
            return read_pixel(self.framework, image, (n, c), corner)

        shape = (found[0].shape[0], image.shape[1], *found[0].shape[1:])
        return self.framework.te.compute(shape, read, name="grid_sample")


@OPS.exports("image.grid_sample")
def export_grid_sample(ctx: Export, data: Value, grid: Value, *, sampling: GridSample) -> Value:
    dtype = ctx.type(data).dtype
    wide = sum_dtype(dtype, None)
    how = {"bilinear": "linear", "bicubic": "cubic"}.get(sampling.method, sampling.method)
    places = _Sampling(ctx.framework, how, sampling.padding_mode, sampling.align_corners, 1)
    made = ctx.emit_te(places.grid_sample, cast(ctx, data, dtype, wide), grid)
    return cast(ctx, made, wide, dtype)


@OPS.exports("serde.grid_sample")
def export_serde_grid_sample(
    ctx: Export, data: Value, grid: Value, *, method: str, padding_mode: str, align_corners: bool
) -> Value:
    dtype, rank = ctx.type(data).dtype, ctx.type(data).rank
    wide = sum_dtype(dtype, None)
    even = method == "nearest"
    sampling = _Sampling(ctx.framework, method, padding_mode, align_corners, rank - 1, even)
    made = ctx.emit_te(sampling.grid_sample, cast(ctx, data, dtype, wide), grid)
    return cast(ctx, made, wide, dtype)


@OPS.imports("relax.image.grid_sample")
def import_grid_sample(ctx: Import, data: Expr, grid: Expr, *, sampling: GridSample) -> Expr:
    """Of two elements as near TVM takes the even one, Relay not."""
    if sampling.method == "nearest":
        if sampling.layout not in ("NCHW", "NCDHW"):
            raise Unsupported(f"layout={sampling.layout!r} of nearest elements has no counterpart")
        places = relay.transpose(grid, axes=[0, *range(2, ctx.rank(grid)), 1])
        return call(
            "serde.grid_sample", data, places, method="nearest",
            padding_mode=sampling.padding_mode, align_corners=sampling.align_corners,
        )  # fmt: skip
    return relay.image.grid_sample(data, grid, **vars(sampling))


@OPS.imports("relax.image.affine_grid")
def import_affine_grid(ctx: Import, data: Expr, *, size: Shape, align_corners: bool = True) -> Expr:
    """The coordinates are on axis 1."""
    target = ctx.known_dims(size)
    lengths = tuple(each for each in target if isinstance(each, int))
    if len(lengths) < len(target):
        raise Unsupported("needs a size that is fixed")
    if align_corners:
        return relay.image.affine_grid(data, lengths)
    grid = call("serde.affine_grid", data, None, size=lengths, align_corners=False)
    return relay.transpose(grid, [0, 3, 1, 2])
