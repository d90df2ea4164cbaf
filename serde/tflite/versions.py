"""Facts of operators that are written: the table of their options, and their versions.

Versions grow with types and options; a runtime refuses one that it does not know, so that the
lowest that holds is written (tensorflow/lite/tools/versioning/op_version.cc).
"""

from __future__ import annotations

from typing import Final

from serde.tflite.model import Operator, Subgraph

__all__ = [
    "FIXED_SCALES", "KERNEL_TYPES", "MOVING_CODES", "OPTIONS", "POSITIONS", "version_of",
]  # fmt: skip

_WITH_OPTIONS: Final = (
    "ADD ARG_MAX ARG_MIN CAST CONCATENATION CONV_2D CONV_3D CUMSUM DEPTHWISE_CONV_2D "
    "DEPTH_TO_SPACE DIV FULLY_CONNECTED GATHER GELU IF LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION "
    "MIRROR_PAD MUL ONE_HOT PACK RESHAPE RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR "
    "REVERSE_SEQUENCE SHAPE SOFTMAX SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE SUB "
    "TRANSPOSE_CONV UNPACK WHILE"
)
"""Operators that have options of their own."""


def _options_of(op: str) -> str:
    words = (word if word[0].isdigit() else word.capitalize() for word in op.split("_"))
    return f"{''.join(words)}Options"


OPTIONS: Final = {
    **{op: _options_of(op) for op in _WITH_OPTIONS.split()},
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), "Pool2DOptions"),
    "BATCH_MATMUL": "BatchMatMulOptions",
    **dict.fromkeys(
        ("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"),
        "ReducerOptions",
    ),
}
"""Names of the tables of options."""

_FLOAT: Final = ("float32",)
_WIDE: Final = ("float32", "int32", "int64")
_ORDERED: Final = (*_WIDE, "int8", "int16", "uint8")

KERNEL_TYPES: Final = {
    **dict.fromkeys(
        (
            "ABS", "ATAN2", "AVERAGE_POOL_2D", "BATCH_MATMUL", "CEIL", "CONV_2D", "CONV_3D", "COS",
            "DEPTHWISE_CONV_2D", "ELU", "EXP", "FLOOR", "FULLY_CONNECTED", "GELU", "HARD_SWISH",
            "LEAKY_RELU", "LOCAL_RESPONSE_NORMALIZATION", "LOG", "LOGISTIC", "LOG_SOFTMAX",
            "MEAN", "POW", "PRELU", "RELU", "RELU6", "RELU_N1_TO_1",
            "RESIZE_BILINEAR", "ROUND", "RSQRT", "SIN", "SOFTMAX", "SQRT", "TANH", "TRANSPOSE_CONV",
        ),
        _FLOAT,
    ),
    **dict.fromkeys(
        ("ADD", "CUMSUM", "MUL", "NEG", "REDUCE_PROD", "SUB", "SUM", "ZEROS_LIKE"), _WIDE
    ),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN", "SIGN"), ("float32", "int32")),
    **dict.fromkeys(
        ("GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "MAXIMUM", "MINIMUM", "PACK"), _ORDERED
    ),
    **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN"), (*_WIDE, "int8", "uint8")),
    **dict.fromkeys(("EQUAL", "NOT_EQUAL"), (*_ORDERED, "bool")),
    **dict.fromkeys(
        ("LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "REDUCE_ALL", "REDUCE_ANY"), ("bool",)
    ),
    "MAX_POOL_2D": ("float32", "int8", "uint8"),
    "BITWISE_XOR": ("int8", "int16", "int32", "uint8", "uint32"),
    "DIV": ("float32", "int32"),
    "FLOOR_DIV": ("float32", "int32", "int8", "int16"),
    "FLOOR_MOD": (*_WIDE, "int8", "int16"),
    "RESIZE_NEAREST_NEIGHBOR": ("float32", "int8", "int16", "uint8"),
    "RIGHT_SHIFT": ("int8", "int16", "int32", "uint8", "uint32"),
    "SPLIT_V": ("float32", "int32", "int64", "int8", "int16", "uint8"),
    "TOPK_V2": ("float32", "int32", "int64", "int8", "int16", "uint8"),
}  # fmt: skip
"""Types that the kernels of LiteRT 2.3 compute, where these are not all; found by running them."""

POSITIONS: Final = {"TRANSPOSE_CONV": 2}
"""Which operand has the type that counts, if not the first."""

_CODED: Final = {"CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "MUL": 3}
"""Versions from which kernels take codes of int8, where that is not 2."""

MOVING_CODES: Final = frozenset(
    (
        "BROADCAST_TO", "DEPTH_TO_SPACE", "GATHER", "GATHER_ND", "MAX_POOL_2D", "MIRROR_PAD", "PAD",
        "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SLICE", "SPACE_TO_DEPTH", "SPLIT_V",
        "STRIDED_SLICE", "TILE", "TRANSPOSE", "UNPACK",
    )
)  # fmt: skip
"""Operators whose first operand may be codes, and whose results are codes of the same scale."""

FIXED_SCALES: Final = {"LOGISTIC": (256, -128), "SOFTMAX": (256, -128), "TANH": (128, 0)}
"""How many steps of int8 a unit has, and the zero point, where kernels give no other."""

_LEAST: Final = {"BROADCAST_TO": 2, "BATCH_MATMUL": 1, "SELECT_V2": 1, "TRANSPOSE_CONV": 1}
"""Versions below which no runtime knows an operator."""


def version_of(operator: Operator, graph: Subgraph) -> int:
    """Return the version that an operator needs."""
    place = POSITIONS.get(operator.name, 0)
    dtype = graph.tensors[operator.inputs[place]].dtype if len(operator.inputs) > place else ""
    of_numbers = dtype not in KERNEL_TYPES.get(operator.name, dtype)
    coded = _CODED.get(operator.name, 2) if dtype == "int8" and of_numbers else 1
    return max(coded, _version_of_numbers(operator))


def _version_of_numbers(operator: Operator) -> int:
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
