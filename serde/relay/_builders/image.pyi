"""Builders below ``relay.image``; generated from the declarations."""

from collections.abc import Sequence
from typing import Literal

from serde.relay._builders._types import DType
from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Expr

def affine_grid(data: Expr, target_shape: int | Sequence[int] | None = None) -> Expr:
    """The grid (n, 2, height, width) that maps an image by 2 by 3 matrices; ends are -1 and 1."""

def crop_and_resize(
    data: Expr,
    boxes: Expr,
    box_indices: Expr,
    crop_size: DimLike | Sequence[DimLike] | None,
    layout: str,
    method: Literal["bilinear", "nearest_neighbor"] = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: DType | None = None,
) -> Expr:
    """Each box cut out of the image that `box_indices` names, and resized."""

def dilation2d(
    data: Expr,
    weight: Expr,
    strides: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0),
    dilations: int | Sequence[int] = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: DType | None = None,
) -> Expr:
    """The greatest sum of an element and that of a window over it, for each place of the window."""

def grid_sample(
    data: Expr,
    grid: Expr,
    method: Literal["bilinear", "nearest", "bicubic"] = "bilinear",
    layout: str = "NCHW",
    padding_mode: Literal["zeros", "border", "reflection"] = "zeros",
    align_corners: bool = True,
) -> Expr:
    """`data` read at the places of `grid`, whose axis 1 has x, y (and z) between -1 and 1."""

def resize1d(
    data: Expr,
    size: DimLike | Sequence[DimLike] | None,
    roi: float | Sequence[float] | None = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: DType | None = None,
) -> Expr:
    """Build a resizing; one size holds for all axes, no `roi` is one of zeros."""

def resize2d(
    data: Expr,
    size: Expr | DimLike | Sequence[DimLike] | None,
    roi: Expr | float | Sequence[float] | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: DType | None = None,
) -> Expr:
    """Build a resizing; one size holds for all axes, no `roi` is one of zeros."""

def resize3d(
    data: Expr,
    size: DimLike | Sequence[DimLike] | None,
    roi: float | Sequence[float] | None = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: DType | None = None,
) -> Expr:
    """Build a resizing; one size holds for all axes, no `roi` is one of zeros."""
