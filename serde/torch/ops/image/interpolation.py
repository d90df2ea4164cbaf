"""Images resized, as they are written: ``F.interpolate`` where it reads the same places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as AnyValue

import numpy as np

from serde.core import dataclass
from serde.relay.ir import Dim, is_float
from serde.relay.op.image.interpolation import Interpolation
from serde.relay.op.image.resampling import nearest
from serde.torch.export_context import ExportContext, Value
from serde.torch.ops.conv.windows import SPATIAL
from serde.torch.ops.image.resize import nearest_places
from serde.torch.ops.written import cast

_LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


@dataclass(frozen=True)
class Resizing:
    """How images are resized.

    Attributes:
        how: The method of every axis.
        guard: Distance from a whole number below which a floor takes it for that number.
        region: Starts and ends of what is read along each axis.
        outside: What lies beyond the image, for tf_crop_and_resize.
        ratios: Factors as they are told, where they are not those of the lengths.
        rounds: Whether integers are rounded that are no nearest elements.
    """

    how: Interpolation
    guard: float
    region: Sequence[tuple[AnyValue, AnyValue]]
    outside: float = 0.0
    ratios: Sequence[AnyValue] | None = None
    rounds: bool = False

    def write(
        self, ctx: ExportContext, x: Value, axes: Sequence[int], sizes: Sequence[AnyValue]
    ) -> Value:
        """Return `x` with axes resized to lengths, known or computed, in the result's dtype."""
        dtype, target = ctx.type(x).dtype, ctx.result_type().dtype
        computed = any(isinstance(size, Value) for size in sizes)
        plain = None if computed else self._interpolate(ctx, x, axes, sizes)
        if plain is not None:
            return cast(ctx, plain, target, dtype)
        work = dtype
        if self.how.method != "nearest_neighbor" and dtype != "float64":
            x, work = cast(ctx, x, "float32"), "float32"
        result = self._write_axes(ctx, x, axes, sizes if computed else ctx.sizes(sizes))
        if self.rounds and work != dtype and not is_float(dtype):
            limits = np.iinfo(dtype)
            result = ctx.call("torch.round", result)
            result = ctx.call("torch.clamp", result, int(limits.min), int(limits.max))
        return cast(ctx, result, target, work)

    def _write_axes(
        self, ctx: ExportContext, x: Value, axes: Sequence[int], sizes: Sequence[object]
    ) -> Value:
        """Return `x` with one axis resized after the other."""
        how = self.how
        cropped = how.mode == "tf_crop_and_resize"
        rounding = how.rounding or ("round" if how.mode == "align_corners" else "floor")
        masks = []
        for place, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
            ratio = self.ratios[place] if self.ratios is not None else 0.0
            given = [ctx.method(x, "size", axis), size, how.mode, *self.region[place], ratio]
            places = ctx.call(ctx.helper("resize_places"), *given)
            if cropped:
                masks.append((axis, places, ctx.method(x, "size", axis)))
            if how.method == "nearest_neighbor":
                x = ctx.call(ctx.helper("resize_nearest"), x, axis, places, rounding, self.guard)
            else:
                options = [how.method == "cubic", how.alpha, how.exclude]
                x = ctx.call(ctx.helper("resize_smooth"), x, axis, places, *options)
        for axis, places, length in masks:
            x = ctx.call(ctx.helper("fill_beyond"), x, axis, places, length, self.outside)
        return x

    def _interpolate(
        self, ctx: ExportContext, x: Value, axes: Sequence[int], sizes: Sequence[Dim]
    ) -> Value | None:
        """Return what ``F.interpolate`` gives where that is the same."""
        type_ = ctx.type(x)
        rank = type_.rank - 2
        if rank not in SPATIAL or list(axes) != list(range(2, type_.rank)):
            return None
        own = type_.shape[2:]
        computed = any(isinstance(end, Value) for span in self.region for end in span)
        if computed or self.ratios is not None or not is_float(type_.dtype):
            return None
        factors = self._factors(own, sizes)
        if factors is not None:
            factor = factors[0] if len(set(factors)) == 1 else factors
            return ctx.call("F.interpolate", x, scale_factor=factor)
        mode = self._mode(rank, own, sizes)
        if mode is None:
            return None
        size = ctx.sizes(sizes)
        return ctx.call("F.interpolate", x, size=tuple(size), **mode)

    def _mode(
        self, rank: int, own: Sequence[Dim], sizes: Sequence[Dim]
    ) -> dict[str, object] | None:
        """Return the arguments of ``F.interpolate`` that mean the same, None if none do."""
        how = self.how
        longer = all(isinstance(size, int) and size > 1 for size in sizes)
        half = how.mode == "half_pixel" or (how.mode == "pytorch_half_pixel" and longer)
        keys = rank == 2 and how.alpha == -0.75 and not how.exclude
        name = {"linear": _LINEAR[rank], "cubic": "bicubic" if keys else ""}.get(how.method)
        if name and (half or how.mode == "align_corners"):
            return {"mode": name} if half else {"mode": name, "align_corners": True}
        if how.method != "nearest_neighbor":
            return None
        for mode, exact in (("nearest", False), ("nearest-exact", True)):
            axes = zip(own, sizes, self.region, strict=True)
            if all(self._reads(*axis, exact) for axis in axes):
                return {"mode": mode}
        return None

    def _factors(self, own: Sequence[Dim], sizes: Sequence[Dim]) -> list[float] | None:
        """Return whole factors of open lengths, which repeat elements; None if they do not."""
        how = self.how
        repeats = (how.method, how.mode) == ("nearest_neighbor", "asymmetric")
        fixed = all(isinstance(length, int) for length in own)
        if fixed or not repeats or how.rounding not in ("", "floor"):
            return None
        found = [size // n if n != 0 else 0 for n, size in zip(own, sizes, strict=True)]
        factors = [float(each) for each in found if isinstance(each, int)]
        pairs = zip(own, found, sizes, strict=True)
        whole = len(factors) == len(found) and all(n * by == size for n, by, size in pairs)
        return factors if whole and all(map(_is_exact_factor, factors)) else None

    def _reads(self, length: Dim, size: Dim, span: tuple[float, float], exact: bool) -> bool:
        """Whether a mode of PyTorch's reads the same elements of an axis."""
        if not (isinstance(length, int) and isinstance(size, int)):
            return False
        places = self.how.positions(length, size, *span)
        beyond = (places < 0) | (places > length - 1)
        if self.how.mode == "tf_crop_and_resize" and beyond.any():
            return False
        if self.guard:
            (wanted, _), *_ = self.how.taps(places, length)
        else:
            wanted = np.clip(nearest(places, self.how.rounding), 0, length - 1)
        return np.array_equal(wanted, nearest_places(length, size, None, exact=exact))


def _is_exact_factor(scale: float) -> bool:
    """Whether PyTorch, which multiplies by an inverse in float32, finds the same elements."""
    if scale != int(scale) or scale < 1:
        return False
    places = np.arange(1 << 16)
    inverse = np.float32(1.0 / scale)
    return np.array_equal(np.floor(places.astype(np.float32) * inverse), places // int(scale))
