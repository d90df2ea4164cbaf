"""Models that coremltools makes of PyTorch nets, read here, against what PyTorch gives."""

from __future__ import annotations

import numpy as np
import pytest
from support.coreml_layers import evaluate

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from support.coreml_torch import MODELS, build  # noqa: E402

import serde  # noqa: E402

LEAST_SPREAD = 1e-2
"""Standard deviation of outputs of many numbers; less would prove nothing."""


@pytest.mark.parametrize("name", MODELS)
def test_model(name: str) -> None:
    built = build(name)
    model = serde.to_relay(built.model, **({"function": built.function} if built.function else {}))
    given = {each.name_hint: built.inputs[each.name_hint] for each in model.inputs()}
    # What NeuralNetworks and programs of old targets take is floating point always.
    arrays = {
        each.name_hint: given[each.name_hint].astype(each.type.dtype) for each in model.inputs()
    }
    found = evaluate(model, arrays)
    assert len(found) == len(built.expected)
    for ours, theirs in zip(found, built.expected, strict=True):
        assert ours.shape == theirs.shape
        if theirs.dtype.kind != "f":
            np.testing.assert_array_equal(ours, theirs)
            continue
        spread = float(theirs.std()) if theirs.size > 1 else 1.0
        assert spread >= LEAST_SPREAD
        np.testing.assert_allclose(ours / spread, theirs / spread, rtol=0, atol=built.tolerance)
