"""Resizing by the names of its kernels, to lengths or by factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from serde.errors import Unsupported
from serde.relay.ir.expr import Expr
from serde.torch.import_context import ImportContext, SymInt
from serde.torch.ops.image.resize import Scales, resize, resize_nearest, resize_smoothly
from serde.torch.ops.table import OPS


def _import_nearest_vec(
    ctx: ImportContext,
    input: Expr,
    *,
    exact: bool,
    output_size: tuple[SymInt, ...] | None = None,
    scale_factors: tuple[float, ...] | None = None,
) -> Expr:
    return resize_nearest(ctx, input, output_size, scale_factors, exact=exact)


@dataclass(frozen=True, kw_only=True)
class _Factors:
    """Factors of the axes, each by its name."""

    scales: float | None = None
    scales_d: float | None = None
    scales_h: float | None = None
    scales_w: float | None = None

    def of(self, rank: int) -> Scales:
        """Return those of the spatial axes."""
        if rank == 1:
            return [self.scales]
        if rank not in (2, 3):
            raise Unsupported(f"a resizing of {rank} axes")
        return [self.scales_d, self.scales_h, self.scales_w][3 - rank :]


def _import_nearest(
    ctx: ImportContext,
    self: Expr,
    *,
    exact: bool,
    output_size: tuple[SymInt, ...],
    factors: _Factors,
) -> Expr:
    scales = factors.of(ctx.type(self).rank - 2)
    return resize_nearest(ctx, self, output_size, scales, exact=exact)


for _name, _exact in {"upsample_nearest": False, "_upsample_nearest_exact": True}.items():
    _names = [f"aten::{_name}{_rank}d" for _rank in (1, 2, 3)]
    OPS.imports(*(f"{each}.vec" for each in _names))(partial(_import_nearest_vec, exact=_exact))
    OPS.imports(*_names)(partial(_import_nearest, exact=_exact))


def _register(resizer: Callable[..., Expr], method: str, *names: str) -> None:
    """Register importers of kernels that may align corners: of lengths or factors, and of both."""

    @OPS.imports(*(f"{name}.vec" for name in names))
    def import_vec(
        ctx: ImportContext,
        input: Expr,
        *,
        output_size: tuple[SymInt, ...] | None = None,
        align_corners: bool,
        scale_factors: tuple[float, ...] | None = None,
    ) -> Expr:
        return resizer(
            ctx, input, output_size, scale_factors, method=method, align_corners=align_corners
        )

    @OPS.imports(*names)
    def import_sized(
        ctx: ImportContext,
        self: Expr,
        *,
        output_size: tuple[SymInt, ...],
        align_corners: bool,
        factors: _Factors,
    ) -> Expr:
        scales = factors.of(ctx.type(self).rank - 2)
        return resizer(ctx, self, output_size, scales, method=method, align_corners=align_corners)


_register(
    resize,
    "linear",
    "aten::upsample_linear1d",
    "aten::upsample_bilinear2d",
    "aten::upsample_trilinear3d",
)
_register(resize, "cubic", "aten::upsample_bicubic2d")
_register(resize_smoothly, "linear", "aten::_upsample_bilinear2d_aa")
_register(resize_smoothly, "cubic", "aten::_upsample_bicubic2d_aa")
