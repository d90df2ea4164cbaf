"""What is known to be missing: each gap is a strict xfail, so closing it forces its line out."""

from __future__ import annotations

from typing import Any

import pytest

_FLOAT32_ERF = "ONNX Runtime computes Erf of float64 to the precision of float32"

_IN_ALL = {
    "erf-1": _FLOAT32_ERF,
    "fast_erf-1": _FLOAT32_ERF,
    "serde.softsign-1": "ONNX Runtime has no Softsign of float64, the reference none of a scalar",
}
_BITS = "ONNX reads the bits of a float as an integer from version 26 on"
_BEFORE_26 = {"reinterpret-0": _BITS, "reinterpret-1": _BITS}
_NO_RUNTIME = "ONNX Runtime has no MaxRoiPool of version 22, nor has the reference"
_ROI_POOL = {"vision.roi_pool-0": _NO_RUNTIME, "vision.roi_pool-1": _NO_RUNTIME}
_HARD_SWISH = {"serde.hard_swish-1": "ONNX Runtime has a HardSwish of float32 precision only"}
_GELU = {"serde.gelu-1": "ONNX Runtime computes the tanh form of Gelu in float32 precision"}
_NOT_IN_ONNX = {
    "11": {**_IN_ALL, **_BEFORE_26},
    "13": {**_IN_ALL, **_BEFORE_26},
    "17": {**_IN_ALL, **_BEFORE_26, **_HARD_SWISH},
    "21": {**_IN_ALL, **_BEFORE_26, **_HARD_SWISH, **_GELU},
    "newest": {**_IN_ALL, **_HARD_SWISH, **_GELU, **_ROI_POOL},
}

GAPS: dict[tuple[str, str], str] = {
    **{
        ("onnx-sample", f"{sample}-{label}"): reason
        for label, samples in _NOT_IN_ONNX.items()
        for sample, reason in samples.items()
    },
}
"""(suite, case) to the reason."""


def case(suite: str, name: str, *values: Any) -> Any:
    """Return a pytest parameter set called `name`, expected to fail where it is a gap."""
    reason = GAPS.get((suite, name))
    marks = [] if reason is None else [pytest.mark.xfail(reason=reason, strict=True)]
    return pytest.param(*values, id=name, marks=marks)


def unknown_gaps(suite: str, names: set[str]) -> list[str]:
    """Return the gaps of a suite that name none of its cases."""
    return sorted(name for listed, name in GAPS if listed == suite and name not in names)
