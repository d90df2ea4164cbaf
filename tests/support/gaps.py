"""What is known to be missing: each gap is a strict xfail, so closing it forces its line out."""

from __future__ import annotations

from typing import Any

import pytest

_UNDECLARED = "the operator is not declared"
_FLOAT32_ERF = "ONNX Runtime computes Erf of float64 to the precision of float32"
_ZERO = "a Reshape of ONNX to a length of 0 needs version 14"
_FROM_12 = "the operator of ONNX has this attribute from version 12 on"

GAPS: dict[tuple[str, str], str] = {
    ("onnx-sample", "argmax-5-11"): _FROM_12,
    ("onnx-sample", "argmin-5-11"): _FROM_12,
    ("onnx-sample", "erf-1-11"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-13"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-17"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-21"): _FLOAT32_ERF,
    ("onnx-sample", "erf-1-26"): _FLOAT32_ERF,
    ("onnx-sample", "gather_nd-1-11"): _FROM_12,
    ("onnx-sample", "reshape-7-11"): _ZERO,
    ("onnx-sample", "reshape-7-13"): _ZERO,
    ("onnx-sample", "take-3-11"): _FROM_12,
    ("onnx-sample", "take-4-11"): _FROM_12,
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
