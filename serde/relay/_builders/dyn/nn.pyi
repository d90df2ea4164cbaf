"""Builders below ``relay.dyn.nn``; generated from the declarations."""

from typing import Literal

from serde.relay.ir.expr import Expr

def pad(
    data: Expr,
    pad_width: Expr,
    pad_val: Expr,
    pad_mode: Literal["constant", "edge", "reflect"] = "constant",
) -> Expr:
    """`data` with elements before and after each axis; see ``nn.pad``."""

def upsampling(
    data: Expr,
    scale_h: Expr,
    scale_w: Expr,
    layout: str = "NCHW",
    method: Literal["nearest_neighbor", "bilinear", "bicubic"] = "nearest_neighbor",
    align_corners: bool = False,
) -> Expr:
    """`data` with height and width scaled; see ``nn.upsampling``."""

def upsampling3d(
    data: Expr,
    scale_d: Expr,
    scale_h: Expr,
    scale_w: Expr,
    layout: str = "NCDHW",
    method: Literal["nearest_neighbor", "trilinear"] = "nearest_neighbor",
    coordinate_transformation_mode: Literal[
        "half_pixel", "align_corners", "asymmetric"
    ] = "half_pixel",
) -> Expr:
    """`data` with depth, height and width scaled; see ``nn.upsampling3d``."""
