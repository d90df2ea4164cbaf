"""What is known to be missing: each gap is a strict xfail, so closing it forces its line out."""

from __future__ import annotations

from typing import Any

import pytest

_UNDECLARED = "the operator is not declared"
_FLOAT32_ERF = "ONNX Runtime computes Erf of float64 to the precision of float32"
_ZERO = "a Reshape of ONNX to a length of 0 needs version 14"
_FROM_12 = "the operator of ONNX has this attribute from version 12 on"

_IN_ALL = {
    "image.resize2d-1": "ONNX Runtime moves the transposition past the cubic Resize and refuses it",
    "image.resize2d-2": "ONNX dropped the coordinates tf_half_pixel_for_nn",
    "image.resize2d-4": "a Resize of a region is not exported",
    "nn.avg_pool2d-3": "an AveragePool of ONNX takes no integers",
    "nn.conv2d-6": "products of int8 are not exported",
    "nn.dense-2": "products of int8 are not exported",
    "nn.mirror_pad-1": "ONNX has no symmetric padding",
    "serde.softsign-1": "ONNX Runtime has no Softsign of float64, the reference none of a scalar",
}
_BEFORE_18 = {
    "nn.avg_pool2d-2": "an AveragePool of ONNX has dilation from version 19 on",
    "serde.lp_pool-1": "an LpPool of ONNX has ceil_mode and dilation from version 18 on",
    "serde.lp_pool-2": "an LpPool of ONNX has ceil_mode and dilation from version 18 on",
}
_HARD_SWISH = {"serde.hard_swish-1": "ONNX Runtime has a HardSwish of float32 precision only"}
_GELU = {"serde.gelu-1": "ONNX Runtime computes the tanh form of Gelu in float32 precision"}
_NOT_IN_ONNX = {
    "11": {**_IN_ALL, **_BEFORE_18, "nn.max_pool2d-2": "MaxPool takes integers from version 12 on"},
    "13": {**_IN_ALL, **_BEFORE_18},
    "17": {**_IN_ALL, **_BEFORE_18, **_HARD_SWISH},
    "21": {**_IN_ALL, **_HARD_SWISH, **_GELU},
    "newest": {**_IN_ALL, **_HARD_SWISH, **_GELU},
}

GAPS: dict[tuple[str, str], str] = {
    ("onnx-sample", "argmax-5-11"): _FROM_12,
    ("onnx-sample", "argmin-5-11"): _FROM_12,
    ("onnx-sample", "erf-1-11"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-13"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-17"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-21"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-newest"): _FLOAT32_ERF,
    ("onnx-sample", "gather_nd-1-11"): _FROM_12,
    ("onnx-sample", "reshape-7-11"): _ZERO,
    ("onnx-sample", "reshape-7-13"): _ZERO,
    ("onnx-sample", "take-3-11"): _FROM_12,
    ("onnx-sample", "take-4-11"): _FROM_12,
    **{
        ("onnx-sample", f"{sample}-{label}"): reason
        for label, samples in _NOT_IN_ONNX.items()
        for sample, reason in samples.items()
    },
    ("tvm-call", "dequantize"): _UNDECLARED,
    ("tvm-call", "fifo_buffer"): _UNDECLARED,
    ("tvm-call", "get_valid_counts"): _UNDECLARED,
    ("tvm-call", "multibox_prior"): _UNDECLARED,
    ("tvm-call", "nll_loss"): _UNDECLARED,
    ("tvm-call", "proposal"): _UNDECLARED,
    ("tvm-call", "qnn_concatenate"): _UNDECLARED,
    ("tvm-call", "qnn_dense"): _UNDECLARED,
    ("tvm-call", "quantize"): _UNDECLARED,
    ("tvm-call", "requantize"): _UNDECLARED,
    ("tvm-call", "roi_align"): _UNDECLARED,
    ("tvm-call", "roi_pool"): _UNDECLARED,
    ("tvm-call", "stft"): _UNDECLARED,
    ("tvm-call", "threefry_key"): _UNDECLARED,
}
"""(suite, case) to the reason."""

# What has no operator can be neither printed nor read.
GAPS |= {("tvm-text", name): reason for (_, name), reason in GAPS.items() if reason == _UNDECLARED}


def case(suite: str, name: str, *values: Any) -> Any:
    """Return a pytest parameter set called `name`, expected to fail where it is a gap."""
    reason = GAPS.get((suite, name))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
    return pytest.param(*values, id=name, marks=marks)


def unknown_gaps(suite: str, names: set[str]) -> list[str]:
    """Return the gaps of a suite that name none of its cases."""
    return sorted(name for listed, name in GAPS if listed == suite and name not in names)
