"""Conversion between layouts such as NCHW, NHWC and NCHW16c."""

from __future__ import annotations

from serde.relay.ir.layout import LayoutPlan, change_layout
from serde.relay.ir.registry import Array, relay_op, sample
from serde.relay.ir.traits import Fusion, FusionPattern, Values
from serde.relay.ir.types import TensorType
from serde.relay.lowering.shape import decompose_layout_transform

__all__: list[str] = []


def _layout_type(data: TensorType, *, src_layout: str, dst_layout: str) -> TensorType:
    plan = LayoutPlan(data.shape, src_layout, dst_layout, filled=True)
    return TensorType(plan.shape, data.dtype)


@relay_op(
    "layout_transform",
    traits=(Values(0), Fusion(FusionPattern.INJECTIVE)),
    infer=_layout_type,
    decompose=decompose_layout_transform,
    samples=[
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NHWC"),
        sample((1, 4, 2, 3), src_layout="NCHW", dst_layout="NCHW2c"),
        sample((1, 2, 2, 3, 2), src_layout="NCHW2c", dst_layout="NHWC"),
        sample((4, 8, 1, 1), src_layout="OIHW", dst_layout="OIHW2i4o2i"),
    ],
)
def layout_transform(data: Array, *, src_layout: str, dst_layout: str) -> Array:
    """The axes of `src_layout` in the order and the blocks of `dst_layout`.

    Zeros fill the last block of an axis that does not divide into blocks.
    """
    return change_layout(data, src_layout, dst_layout)
