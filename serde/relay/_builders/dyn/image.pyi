"""Builders below ``relay.dyn.image``; generated from the declarations."""

from typing import Literal

from serde.relay._builders._types import DType
from serde.relay.ir.expr import Expr

def resize2d(
    data: Expr,
    size: Expr,
    roi: Expr,
    layout: str = "NCHW",
    method: Literal["nearest_neighbor", "linear", "cubic"] = "linear",
    coordinate_transformation_mode: Literal[
        "half_pixel",
        "align_corners",
        "asymmetric",
        "pytorch_half_pixel",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ] = "half_pixel",
    rounding_method: Literal[
        "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""
    ] = "round",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: DType | None = None,
) -> Expr:
    """`data` with height and width resized to `size`; see ``image.resize2d``."""
