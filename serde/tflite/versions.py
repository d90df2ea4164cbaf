"""Facts of operators that are written: the table of their options, and their versions.

Versions grow with types and options; a runtime refuses one that it does not know, so that the
lowest that holds is written (tensorflow/lite/tools/versioning/op_version.cc).
"""

from __future__ import annotations

from typing import Final

from serde.tflite.model import Operator, Subgraph

__all__ = ["OPTIONS", "version_of"]

OPTIONS: Final = {
    "ADD": "AddOptions",
    "ARG_MAX": "ArgMaxOptions",
    "ARG_MIN": "ArgMinOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CAST": "CastOptions",
    "CONCATENATION": "ConcatenationOptions",
    "CONV_2D": "Conv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "CUMSUM": "CumsumOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "DEPTH_TO_SPACE": "DepthToSpaceOptions",
    "DIV": "DivOptions",
    "FULLY_CONNECTED": "FullyConnectedOptions",
    "GATHER": "GatherOptions",
    "GELU": "GeluOptions",
    "LEAKY_RELU": "LeakyReluOptions",
    "LOCAL_RESPONSE_NORMALIZATION": "LocalResponseNormalizationOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "MEAN": "ReducerOptions",
    "MIRROR_PAD": "MirrorPadOptions",
    "MUL": "MulOptions",
    "ONE_HOT": "OneHotOptions",
    "PACK": "PackOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "RESHAPE": "ReshapeOptions",
    "RESIZE_BILINEAR": "ResizeBilinearOptions",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    "REVERSE_SEQUENCE": "ReverseSequenceOptions",
    "SHAPE": "ShapeOptions",
    "SOFTMAX": "SoftmaxOptions",
    "SPACE_TO_DEPTH": "SpaceToDepthOptions",
    "SPLIT": "SplitOptions",
    "SPLIT_V": "SplitVOptions",
    "SQUEEZE": "SqueezeOptions",
    "STRIDED_SLICE": "StridedSliceOptions",
    "SUB": "SubOptions",
    "SUM": "ReducerOptions",
    "TRANSPOSE_CONV": "TransposeConvOptions",
    "UNPACK": "UnpackOptions",
}
"""Names of the tables of options."""

_LEAST: Final = {"BROADCAST_TO": 2, "BATCH_MATMUL": 1, "SELECT_V2": 1, "TRANSPOSE_CONV": 1}
"""Versions below which no runtime knows an operator."""


def version_of(operator: Operator, graph: Subgraph) -> int:
    """Return the version that an operator needs."""
    options = operator.options
    dilated = any(options.get(f"dilation_{axis}_factor", 1) != 1 for axis in "wh")
    if operator.name == "DEPTHWISE_CONV_2D" and dilated:
        return 2
    if operator.name == "FULLY_CONNECTED":
        return 5 if options.get("keep_num_dims") else 6 if len(operator.inputs) < 3 else 1
    if operator.name == "TRANSPOSE_CONV" and len(operator.inputs) > 3:
        return 3
    if operator.name == "RESIZE_BILINEAR" and options.get("half_pixel_centers"):
        return 3
    if operator.name == "RESIZE_NEAREST_NEIGHBOR" and options.get("half_pixel_centers"):
        return 3
    return _LEAST.get(operator.name, 1)
