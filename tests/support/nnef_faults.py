"""What of NNEF is refused, and where judges are known to be wrong: each with its reason.

A line becomes a strict xfail: closing a gap forces it out.
"""

from __future__ import annotations

import re
from typing import Final

KHRONOS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ["argmax_reduce_spatial", "argmin_reduce_spatial"], "one axis only, as it says"
    ),
    **dict.fromkeys(
        ["bilinear_upsample_aligned_constant", "bilinear_upsample_aligned_replicate"],
        "the method is not implemented, as it says",
    ),
    **dict.fromkeys(
        ["gelu", "gelu_2d_standalone", "gelu_4d_standalone"], "the approximation by a sigmoid"
    ),
}
"""Public folders that the C++ runtime refuses or computes wrongly."""

TORCH: Final[dict[str, str]] = {"bilinear_upsample_asymmetric_replicate": "one sample late"}
"""Public folders that the PyTorch interpreter of NNEF-Tools refuses or computes wrongly."""

FOLDER_READ: Final[dict[str, str]] = {}
"""Public folders that are not read."""

FOLDER_WRITTEN: Final[dict[str, str]] = {}
"""Public folders that are read and cannot be written again."""

FOLDER_ONNX: Final[dict[str, str]] = {}
"""Public folders that are read and cannot be written as ONNX."""

Rules = tuple[tuple[str, str], ...]
"""Patterns of names of cases, each with a reason; the first that fits a whole name counts."""

KHRONOS_UNSAFE: Final[Rules] = (
    (r"copy-(integer|logical).*|external-(integer|logical)", "takes bytes of any tensor as floats"),
    (r"variable-integer", "takes bytes of any tensor as floats"),
    (r"copy_n-integer", "takes bytes of any tensor as floats"),
    (r"constant-(logical|output-integer)", "crashes"),
    (r"select-(leading|all-broadcast|literal-first)", "reads beyond a tensor that broadcasts"),
)
"""What the C++ runtime is not even asked: it may crash much later."""

KHRONOS_CASES: Final[Rules] = (
    (r"(argmax_pool|max_pool_with_index|sample|desample|max_unpool)-.*", "not implemented"),
    (r"((avg|max)_roi_(pool|align)|roi_resample)-.*", "not implemented"),
    (r"arg(max|min)_reduce-(rank\d-\d\d+|ties-both|apart|unordered)", "one axis only"),
    (r"gelu-.*", "the approximation by a sigmoid"),
    (r"matmul-broadcast-.*", "batches do not broadcast"),
    (r"debox-mean-.*|avg_unpool-.*", "divides the wrong tensor"),
    (r"(\w+_quantize)-file-.*", "graph.quant is ignored"),
    (r"zero_point_linear_quantize-(signed\d|channels)", "reads -r - 1.0 as -(r - 1.0)"),
    (r"multilinear_upsample-.*-(1d-three|2d-uneven|2d-one)", "doubles only"),
    (r"multilinear_upsample-.*-3d|multilinear_upsample-aligned-.*", "not implemented"),
    (r"(box|max_pool|avg_pool|rms_pool)-.*-(replicate|reflect|reflect-even)", "no such border"),
    (r"debox-(replicate|reflect|reflect-even)", "no such border"),
    (r"(conv|deconv)-[123]d-(replicate|reflect|reflect-even|ignore)-.*", "no such border"),
    (r"separable_(de)?conv-(replicate|reflect|reflect-even)(-.*)?", "no such border"),
)
"""What the C++ runtime refuses or computes wrongly."""

SHAPES: Final[Rules] = (
    (r"slice-mixed", "an end of 0 is the end only where all strides are 1"),
    (
        r"separable_conv-(constant-none|replicate-uneven|reflect-even-same)"
        r"|separable_deconv-uneven-s[12]",
        "groups are left out of account",
    ),
    (r"max_unpool-.*", "a parameter is given twice"),
    (
        r"sample-(rank1|rank3|same-stride|valid|uneven|batch|all|gaps|rank5)",
        "an index is asked to have the shape of the input",
    ),
)
"""What Khronos' `nnef.infer_shapes` refuses or gets wrong."""

TORCH_CASES: Final[Rules] = (
    (r"((avg|max)_roi_(pool|align)|roi_resample|sample|(avg|max)_unpool)-.*", "not implemented"),
    (
        r"(argmax_pool|max_pool_with_index)-"
        r"(dilated|same|same-dilated|same-stride|uneven|valid|gaps|rank3|rank5)-.*"
        r"|argmax_pool-ties",
        "the index is that in the padded plane",
    ),
    (
        r"(argmax_pool|max_pool_with_index)-(rank1|rank2|all|batch|channels)-.*",
        "windows over the first two axes, and ranks below 3, are not implemented",
    ),
    (r"desample-pooled-(overlap|same)", "the index is that in the padded plane"),
    (r"desample-(?!pooled).*", "indices are not of the integers that PyTorch asks for"),
    (r"arg(max|min)_reduce-(apart|rank3-20|rank4-03|rank5-024|unordered)", "consecutive axes only"),
    (r"(\w+_pool|box|box-mean|local_\w+_normalization)-all(-.*)?", "three axes at most"),
    (r"(avg_pool|rms_pool|box|box-mean)-(same-)?dilated-.*", "no dilation"),
    (r"\w+_pool-(uneven|dilated)-reflect-even|box-uneven-reflect-even", "no such border"),
    (r"separable_conv-reflect-even-uneven|conv-.*-reflect-even-uneven-.*", "no such border"),
    (r"conv-[13]d-ignore-none-.*", "no such border"),
    (r"debox-(reflect|reflect-even|replicate)", "no such border"),
    (r"pad-reflect-even-(rank4|rank5)", "no such border"),
    (
        r"pad-.*-(rank1|rank2|rank3|all|end)|pad-(nothing|value|cropped)",
        "last axes of ranks 3 to 5 only",
    ),
    (r"debox-(mean-)?(rank1|rank2|channels)(-.*)?", "last axes of ranks 3 to 5 only"),
    (r"debox-mean-ignored", "divides by the volume of the window"),
    (r"batch_normalization-(literals|wide)", "parameters of shape [1, C] only"),
    (
        r"deconv-2d-replicate-(none-s1-d1-depth|none-s1-d2-two|none-s2-d2-depth"
        r"|uneven-s1-d1-two|uneven-s1-d2-one|uneven-s2-d2-two)",
        "the input goes on for one element only",
    ),
    (r"linear_quantize-channels", "shapes do not broadcast"),
    (r"linear_quantize-file-.*", "invoked without its last parameters"),
    (r"logarithmic_quantize-(file-.*|channels)", "a maximum for all channels only"),
    (r"(min_max|zero_point)_linear_quantize-channels", "shapes do not broadcast"),
    (r"min_max_linear_quantize-file-.*", "mixes tensors and numbers"),
    (r"zero_point_linear_quantize-file-.*", "inputs are left as they are"),
    (r"multilinear_upsample-(aligned-\w+|symmetric-replicate)-3d", "one or two axes only"),
    (r"multilinear_upsample-asymmetric-replicate-.*", "one sample late"),
    (
        r"multilinear_upsample-(a?symmetric-constant-(1d-three|2d-uneven)"
        r"|symmetric-constant-(2d-one|3d))",
        "doubles only",
    ),
    (r"round-halves", "rounds halves to even"),
)
"""What the PyTorch interpreter of NNEF-Tools refuses or computes wrongly."""

CASE_READ: Final[Rules] = ()
"""Cases that are not read."""

CASE_WRITTEN: Final[Rules] = ()
"""Cases that are read and cannot be written again."""

CASE_ONNX: Final[Rules] = ()
"""Cases that are read and cannot be written as ONNX."""


def find_reason(rules: Rules, name: str) -> str | None:
    """Return the reason that a list has for a case, if any."""
    return next((reason for pattern, reason in rules if re.fullmatch(pattern, name)), None)
