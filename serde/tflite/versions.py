"""Facts of operators that are written: the table of their options, and their versions.

Versions grow with types and options; a runtime refuses one that it does not know, so that the
lowest that holds is written: ``op_version.cc`` and ``runtime_version.cc`` of LiteRT say so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from serde.tflite.model import Operator, Subgraph, Tensor

__all__ = [
    "FIXED_SCALES", "HYBRID", "KERNEL_TYPES", "MOVING_CODES", "OPTIONS", "POSITIONS",
    "least_runtime", "version_of",
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
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    **{op: _options_of(op) for op in _WITH_OPTIONS.split()},
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), "Pool2DOptions"),
    "BATCH_MATMUL": "BatchMatMulOptions",
    **dict.fromkeys(
        ("MEAN", "REDUCE_ALL", "REDUCE_ANY", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM"),
        "ReducerOptions",
    ),
}
"""Names of the tables of options."""

_FACTS: Final = json.loads(Path(__file__).with_name("versions.json").read_text("utf-8"))
"""By operator: ``types`` of the operand which counts, and numbers of ``axes``, from which versions
on there are kernels; the ``runtimes`` that came with its versions, from the first on; and
``kernels``.
"""

KERNEL_TYPES: Final[Mapping[str, Sequence[str]]] = _FACTS["kernels"]
"""Types that the kernels of LiteRT 2.3 compute, where these are not all; found by running them."""

POSITIONS: Final = {"FILL": 1, "SPLIT": 1, "TRANSPOSE_CONV": 2}
"""Which operand has the type that counts, if not the first."""

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

_QUANTIZED_SHORTS: Final = {"ABS": 3, "ADD": 3, "MUL": 4}
"""Versions with codes of int16, where integers came later."""

HYBRID: Final = {"CONV_2D": (2, 5), "DEPTHWISE_CONV_2D": (4, 6), "FULLY_CONNECTED": (3, 12)}
"""Versions from which floats are computed on with weights of int8: of one scale, of several."""


def version_of(operator: Operator, graph: Subgraph) -> int:
    """Return the version that an operator needs."""
    given = [graph.tensors[i] for i in operator.inputs if i >= 0]
    place = POSITIONS.get(operator.name, 0)
    if len(given) <= place:
        return 1
    dtype = given[place].dtype
    found = _FACTS["types"].get(operator.name, {}).get(dtype, 1)
    if dtype == "int16" and given[place].quantization is not None:
        found = _QUANTIZED_SHORTS.get(operator.name, found)
    axes = max(len(each.shape) for each in given)
    is_broadcast = len(given) < 2 or given[0].shape != given[1].shape
    for least, version in _FACTS["axes"].get(operator.name, ()):
        if axes >= least and is_broadcast:
            found = max(found, version)
    return max(found, _version_by_options(operator, given), _version_by_scales(operator, graph))


def _version_by_options(operator: Operator, given: Sequence[Tensor]) -> int:
    name, options = operator.name, operator.options
    if name == "DEPTHWISE_CONV_2D":
        return 1 + any(options.get(f"dilation_{axis}_factor", 1) != 1 for axis in "wh")
    if name == "CONV_2D" and len(given) > 1:
        return 6 if given[0].shape[-1] != given[1].shape[-1] else 1
    if name == "FULLY_CONNECTED":
        return 6 if len(given) < 3 else 5 if options.get("keep_num_dims") else 1
    if name == "TRANSPOSE_CONV":
        return 4 if options.get("fused_activation_function") else 3 if len(given) > 3 else 1
    if name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
        aligned = options.get("align_corners") and name == "RESIZE_NEAREST_NEIGHBOR"
        return 3 if options.get("half_pixel_centers") or aligned else 1
    if name == "GATHER":
        return 5 if options.get("batch_dims") else 1
    if name == "STRIDED_SLICE":
        return 6 if options.get("ellipsis_mask") or options.get("new_axis_mask") else 1
    return 2 if name == "BROADCAST_TO" else 1


def _version_by_scales(operator: Operator, graph: Subgraph) -> int:
    """Return the version that what codes stand for needs, or the types of other operands."""
    read = [graph.tensors[i] for i in operator.inputs if i >= 0]
    made = [graph.tensors[i] for i in operator.outputs]
    kinds = {each.dtype for each in (*read[:1], *made)}
    several = [each.quantization is not None and len(each.quantization.scales) > 1 for each in read]
    if operator.name == "CAST":
        return 3 if "int8" in kinds else 2 if "uint32" in kinds else 1
    if operator.name == "QUANTIZE":
        return 2 if made[0].dtype == "int16" else 1
    if operator.name == "DEQUANTIZE":
        return 5 if several[0] else 1
    if operator.name in HYBRID and read[0].dtype == "float32" and read[1].dtype == "int8":
        return HYBRID[operator.name][several[1]]
    scales = [each.quantization.scales[0] for each in (*read, *made) if each.quantization]
    if operator.name == "MUL" and len(scales) == 3:
        return 3 if scales[0] * scales[1] >= scales[2] else 1
    return 1


def least_runtime(versions: Iterable[tuple[str, int]]) -> str:
    """Return the first runtime that has operators in some versions, as three numbers."""
    found = [[1, 5]]
    for op, version in versions:
        texts = _FACTS["runtimes"].get(op, [])[version - 1 : version]
        found += [[int(part) for part in text.split(".")] for text in texts]
    return ".".join(map(str, [*max(found), 0][:3]))
