"""What is known to be missing: each gap is a strict xfail, so closing it forces its line out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from support.coreml_gaps import COREML_LAYER_GAPS
from support.coreml_network_gaps import COREML_NETWORK_GAPS
from support.onnx_suite_gaps import SUITE_GAPS

_FLOAT32_ERF = "ONNX Runtime computes Erf of float64 to the precision of float32"
_MULTINOMIAL = "ONNX Runtime has no Multinomial of version 22, nor has the reference"

_WHOLE = "what is kept whole for a function of the user's is written by that alone"

_IN_ALL = {
    "serde.foreign-0": _WHOLE,
    "serde.foreign-1": _WHOLE,
    "erf-1": _FLOAT32_ERF,
    "fast_erf-1": _FLOAT32_ERF,
    "serde.shrink-1": "ONNX Runtime computes Shrink of float64 in float32 precision",
    "serde.softsign-1": "ONNX Runtime has no Softsign of float64, the reference none of a scalar",
}
_BITS = "ONNX reads the bits of a float as an integer from version 26 on"
_BEFORE_26 = {"reinterpret-0": _BITS, "reinterpret-1": _BITS}
_NO_RUNTIME = "ONNX Runtime has no MaxRoiPool of version 22, nor has the reference"
_ROI_POOL = {"vision.roi_pool-0": _NO_RUNTIME, "vision.roi_pool-1": _NO_RUNTIME}
_HARD_SWISH = {"serde.hard_swish-1": "ONNX Runtime has a HardSwish of float32 precision only"}
_GELU = {"serde.gelu-1": "ONNX Runtime computes the tanh form of Gelu in float32 precision"}
_FLOAT8 = dict.fromkeys(
    ("serde.dequantize_linear-5", "serde.quantize_linear-5", "serde.quantize_linear-6"),
    "ONNX has floats of 8 bits from version 19 on",
)
_INT4 = dict.fromkeys(
    ("serde.dequantize_linear-6", "serde.quantize_linear-7"),
    "ONNX has integers of 4 bits from version 21 on",
)
_NOT_IN_ONNX = {
    "11": {**_IN_ALL, **_BEFORE_26, **_FLOAT8, **_INT4},
    "13": {**_IN_ALL, **_BEFORE_26, **_FLOAT8, **_INT4},
    "17": {**_IN_ALL, **_BEFORE_26, **_HARD_SWISH, **_FLOAT8, **_INT4},
    "21": {**_IN_ALL, **_BEFORE_26, **_HARD_SWISH, **_GELU},
    "newest": {**_IN_ALL, **_HARD_SWISH, **_GELU, **_ROI_POOL},
}

_RUN_TIME = "MXNet allocates its tensors beforehand, so no shape is computed at run time"
_SIXTEEN = "MXNet 1.9.1 computes no integers of 16 bits"
_NARROW = "MXNet has no floats of 8 bits and no integers of 4"
_BITS = "MXNet converts values, not bits"

_NOT_IN_MXNET = {
    "serde.foreign-0": _WHOLE,
    "serde.foreign-1": _WHOLE,
    **dict.fromkeys(
        (
            "arange-3", "dyn.broadcast_to-1", "dyn.expand_dims-1", "dyn.full-1",
            "dyn.image.resize2d-1", "dyn.nn.pad-1", "dyn.nn.pad-2", "dyn.nn.upsampling-1",
            "dyn.nn.upsampling3d-1", "dyn.one_hot-1", "dyn.ones-1", "dyn.reshape-1",
            "dyn.sparse_to_dense-1", "dyn.squeeze-1", "dyn.strided_slice-1", "dyn.strided_slice-2",
            "dyn.tile-1", "dyn.tile-2", "dyn.topk-1", "dyn.topk-2", "dyn.zeros-1", "serde.loop-4",
        ),
        _RUN_TIME,
    ),
    **dict.fromkeys(
        (
            "qnn.conv2d-4", "qnn.dense-3", "qnn.dequantize-5", "qnn.quantize-2", "qnn.quantize-5",
            "qnn.requantize-3", "qnn.requantize-5", "serde.dequantize_linear-3",
            "serde.quantize_linear-3",
        ),
        _SIXTEEN,
    ),
    **dict.fromkeys(
        (
            "serde.dequantize_linear-5", "serde.dequantize_linear-6", "serde.quantize_linear-5",
            "serde.quantize_linear-6", "serde.quantize_linear-7",
        ),
        _NARROW,
    ),
    "reinterpret-0": _BITS,
    "reinterpret-1": _BITS,
    **{
        f"serde.non_max_suppression-{index}": "MXNet has no suppression with a count at run time"
        for index in range(4)
    },
    "serde.loop-1": "a _while_loop of MXNet needs the greatest number of iterations",
    "serde.loop-2": "a _while_loop of MXNet needs the greatest number of iterations",
    "serde.loop-5": "MXNet has no sequences of tensors",
    **dict.fromkeys(
        ("serde.svd-0", "serde.svd-1", "serde.svd-2"),
        "the signs of singular vectors are the choice of each routine of LAPACK",
    ),
    **dict.fromkeys(
        (f"vision.non_max_suppression-{index}" for index in (2, 4, 5)),
        "MXNet drops boxes without a score and limits none that stay",
    ),
    **dict.fromkeys(
        (
            "vision.all_class_non_max_suppression-0", "vision.all_class_non_max_suppression-1",
            "vision.all_class_non_max_suppression-2", "vision.regular_non_max_suppression-0",
            "vision.regular_non_max_suppression-1",
        ),
        "MXNet does not tell where the boxes are that stay",
    ),
}  # fmt: skip

_NO_ELEMENTS = "ML Programs have no tensors without elements"
_AXES = "Core ML has tensors of five axes at most"
_NARROW_MIL = "programs before iOS17 convert no integers of 8 and 16 bits"

_NOT_IN_COREML = {
    "dyn.strided_slice-1": "MIL slices by steps that are constant",
    "layout_transform-3": _AXES,
    "repeat-2": _NO_ELEMENTS,
    "reshape-7": _NO_ELEMENTS,
    "serde.col2im-4": _AXES,
    "sliding_window-0": _AXES,
    "strided_slice-7": _NO_ELEMENTS,
}
_NOT_IN_COREML_15 = dict.fromkeys(("nn.batch_flatten-2", "nn.dense-2", "nn.pad-3"), _NARROW_MIL)

_SIGNS = "the signs of singular vectors are the choice of each routine of LAPACK"
_NOT_IN_TORCH = {
    "serde.foreign-0": _WHOLE,
    "serde.foreign-1": _WHOLE,
    "serde.dequantize_linear-6": "PyTorch has no integers of 4 bits",
    "serde.quantize_linear-7": "PyTorch has no integers of 4 bits",
    "serde.svd-0": _SIGNS,
    "serde.svd-1": _SIGNS,
}

_ROUNDED_HALF = "PyTorch rounds an element of float16 the other way"
_ONNX_TO_TORCH = {
    "attention_4d_causal_fp16": _ROUNDED_HALF,
    "attention_4d_causal_fp16_expanded": _ROUNDED_HALF,
    "attention_4d_fp16": _ROUNDED_HALF,
    "basic_deform_conv_with_padding": "PyTorch samples grids of float32 in that precision",
}

_ONNX_TO_NNEF = {
    "attention_4d_causal_fp16": "two elements of float16 are rounded the other way",
    "attention_4d_causal_fp16_expanded": "two elements of float16 are rounded the other way",
    "basic_deform_conv_with_padding": "places in images are computed in float32",
    "squeezenet": "logits of 1e10 before a softmax must be equal to the last bit",
}

GAPS: dict[tuple[str, str], str] = {
    **{
        ("coreml-sample", f"{sample}-{target}"): reason
        for sample, reason in _NOT_IN_COREML.items()
        for target in ("iOS15", "iOS18")
    },
    **{
        ("coreml-sample", f"{sample}-iOS15"): reason for sample, reason in _NOT_IN_COREML_15.items()
    },
    **COREML_LAYER_GAPS,
    **COREML_NETWORK_GAPS,
    **{("mxnet-sample", sample): reason for sample, reason in _NOT_IN_MXNET.items()},
    **{("onnx-nnef", name): reason for name, reason in _ONNX_TO_NNEF.items()},
    **{("onnx-torch", name): reason for name, reason in _ONNX_TO_TORCH.items()},
    **{("torch-sample", sample): reason for sample, reason in _NOT_IN_TORCH.items()},
    ("torch-open", "serde.svd-0"): _SIGNS,
    ("torch-open", "serde.svd-1"): _SIGNS,
    ("onnx-sample", "serde.multinomial-0-newest"): _MULTINOMIAL,
    ("onnx-sample", "serde.multinomial-1-newest"): _MULTINOMIAL,
    **SUITE_GAPS,
    ("onnx-sample", "serde.loop-5-11"): "a Loop of ONNX carries sequences from version 13 on",
    **{
        ("onnx-sample", f"{sample}-{label}"): reason
        for label, samples in _NOT_IN_ONNX.items()
        for sample, reason in samples.items()
    },
}
"""(suite, case) to the reason."""


def case(suite: str, name: str, *values: Any, wide: bool = False) -> Any:
    """Return a pytest parameter set called `name`, expected to fail where it is a gap."""
    reason = GAPS.get((suite, name))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
    marks += [pytest.mark.wide] if wide else []
    return pytest.param(*values, id=name, marks=marks)


def unknown_gaps(suite: str, names: set[str]) -> list[str]:
    """Return the gaps of a suite that name none of its cases."""
    return sorted(name for listed, name in GAPS if listed == suite and name not in names)


PAIR_GAPS: dict[tuple[str, str, str], str] = {}
"""Operators that keep a net from going from one format to another, by net and formats."""


def suite_cases(suite: str, cases: Iterable[Any]) -> list[Any]:
    """Parameters of cases of ONNX's suite: the first of each operator is in the first tier."""
    found: list[Any] = []
    seen: set[str] = set()
    for each in cases:
        param = case(suite, each.name, each)
        tier = [pytest.mark.wide] if set(each.operators) <= seen else []
        tier = [pytest.mark.slow] if each.kind == "real" else tier
        seen |= set(each.operators)
        found.append(pytest.param(each, id=each.name, marks=[*param.marks, *tier]))
    return found
