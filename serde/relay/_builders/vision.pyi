"""Builders below ``relay.vision``; generated from the declarations."""

from collections.abc import Sequence
from typing import Literal, overload

from serde.relay.ir.dims import DimLike
from serde.relay.ir.expr import Expr, TupleWrapper

def all_class_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_output_boxes_per_class: Expr | float | Sequence[float] = -1,
    iou_threshold: Expr | float | Sequence[float] = -1.0,
    score_threshold: Expr | float | Sequence[float] = -1.0,
    output_format: str = "onnx",
) -> TupleWrapper:
    """Build ``vision.all_class_non_max_suppression``; limits are numbers or expressions."""

def get_valid_counts(
    data: Expr,
    score_threshold: Expr | float | Sequence[float],
    id_index: int = 0,
    score_index: int = 1,
) -> TupleWrapper:
    """How many rows score more than a threshold and have a class; these rows; their places."""

def multibox_prior(
    data: Expr,
    sizes: float | Sequence[float] = (1.0,),
    ratios: float | Sequence[float] = (1.0,),
    steps: float | Sequence[float] = (-1.0, -1.0),
    offsets: float | Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> Expr:
    """Boxes (left, top, right, bottom) around each place of a feature map, in parts of its size."""

def multibox_transform_loc(
    cls_prob: Expr,
    loc_pred: Expr,
    anchor: Expr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: float | Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> TupleWrapper:
    """Build ``vision.multibox_transform_loc``."""

@overload
def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr | float | Sequence[float] = -1,
    iou_threshold: Expr | float | Sequence[float] = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: Literal[True] = True,
    invalid_to_bottom: bool = False,
) -> TupleWrapper:
    """Build ``vision.non_max_suppression``; limit and threshold are numbers or expressions."""

@overload
def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr | float | Sequence[float] = -1,
    iou_threshold: Expr | float | Sequence[float] = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    *,
    return_indices: Literal[False],
    invalid_to_bottom: bool = False,
) -> Expr:
    """Build ``vision.non_max_suppression``; limit and threshold are numbers or expressions."""

@overload
def non_max_suppression(
    data: Expr,
    valid_count: Expr,
    indices: Expr,
    max_output_size: Expr | float | Sequence[float] = -1,
    iou_threshold: Expr | float | Sequence[float] = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> Expr | TupleWrapper:
    """Build ``vision.non_max_suppression``; limit and threshold are numbers or expressions."""

def proposal(
    cls_prob: Expr,
    bbox_pred: Expr,
    im_info: Expr,
    scales: float | Sequence[float],
    ratios: float | Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Expr:
    """The best boxes of each image as (image, left, top, right, bottom), overlaps suppressed."""

def regular_non_max_suppression(
    boxes: Expr,
    scores: Expr,
    max_detections_per_class: int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> TupleWrapper:
    """Boxes, classes, scores and number of the best detections of each image, as TFLite's."""

def roi_align(
    data: Expr,
    rois: Expr,
    pooled_size: DimLike | Sequence[DimLike],
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
    mode: Literal["avg", "max"] = "avg",
) -> Expr:
    """The mean (or the greatest) of bilinear samples in each bin of each region."""

def roi_pool(
    data: Expr,
    rois: Expr,
    pooled_size: DimLike | Sequence[DimLike],
    spatial_scale: float,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
) -> Expr:
    """The greatest element in each bin of each region, 0 in an empty one."""

def yolo_reorg(data: Expr, stride: int) -> Expr:
    """Space to channels in Darknet's order, which takes the tensor for one of fewer channels."""
