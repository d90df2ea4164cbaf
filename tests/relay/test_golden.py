"""Types and values of single operators, as TVM 0.18 inferred and computed them."""

from __future__ import annotations

import numpy as np
import pytest
from support.gaps import case, unknown_gaps
from support.golden import GoldenCall, evaluate, golden_calls

SUITE = "tvm-call"
CALLS = golden_calls()

CANCELLING = {"conv3d": 3e-6, "deformable_conv2d": 5e-6, "roi_align": 5e-6, "stft": 5e-6}
"""Sums of which terms of about 10 cancel: TVM's own values are this far from float64's."""


def test_gaps_name_cases() -> None:
    assert unknown_gaps(SUITE, {call.name for call in CALLS}) == []


@pytest.mark.thin(2)
@pytest.mark.parametrize("call", [case(SUITE, call.name, call) for call in CALLS])
def test_inferred_type(call: GoldenCall) -> None:
    assert repr(call.build().body.checked_type) == call.type_text


@pytest.mark.thin(2)
@pytest.mark.parametrize("call", [case(SUITE, call.name, call) for call in CALLS if call.outputs])
def test_values(call: GoldenCall) -> None:
    found = evaluate(call.build(), call.inputs)
    assert len(found) == len(call.outputs)
    for ours, theirs in zip(found, call.outputs, strict=True):
        assert ours.dtype == theirs.dtype
        if np.issubdtype(theirs.dtype, np.floating):
            atol = CANCELLING.get(call.name, 1e-6)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=atol)
        else:
            np.testing.assert_array_equal(ours, theirs)
