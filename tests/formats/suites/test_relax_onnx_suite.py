"""The backend suite of the onnx package, compiled by TVM as serde writes it.

Constant inputs are initializers, as real models have them. ``benchmarks/relax_suite.py`` runs TVM's
own importer beside it.
"""

from __future__ import annotations

import pytest
from support.onnx_suite import SuiteCase
from support.relax_suite import counted, judge

from serde.errors import UnsupportedModelError

pytest.importorskip("tvm")

REFUSED = (
    "Relax has no sequences of tensors",
    "Relax has tensors only",
    "TVM computes no tensors of",
    "ImageDecoder: a compressed image",
    "round_mode='up'",
    "an optional",
    "expected elements like",
)
"""Why a case may be refused; those of the reader are the same for every format."""

CASES = [pytest.param(case, id=name, marks=[pytest.mark.slow]) for name, case in counted().items()]


@pytest.mark.parametrize("case", CASES)
def test_case(case: SuiteCase) -> None:
    try:
        judge(case, way="serde", freeze=True)
    except UnsupportedModelError as error:
        reasons = [f"{each.op}: {each.reason}" for each in error.report.issues]
        if not all(any(known in reason for known in REFUSED) for reason in reasons):
            raise
