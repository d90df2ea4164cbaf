"""The executor of ML Programs, against PyTorch on models that coremltools makes of its nets."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pytest
from support.mil_executor import load

pytest.importorskip("torch", reason="PyTorch is not installed")
coreml_torch = pytest.importorskip("support.coreml_torch")

PROGRAMS = [name for name, recipe in coreml_torch.MODELS.items() if recipe.target is not None]


@pytest.mark.parametrize("name", PROGRAMS)
def test_executor(name: str, record_property: Callable[[str, object], None]) -> None:
    built = coreml_torch.build(name)
    with ExitStack() as stack:
        program = load(built.model, stack, built.function or "")
        states = {
            key: built.inputs[key].copy()
            for key, declared in program.inputs.items()
            if declared.dtype is None
        }
        found = program.run(built.inputs, states)
        # A classifier gives the best label and the scores by label; PyTorch gives the scores.
        scores = [np.array([*each.values()]) for each in found if isinstance(each, dict)]
        arrays = scores or found
        for ours, theirs in zip([*arrays, *states.values()], built.expected, strict=True):
            size = max(1.0, float(np.std(theirs * 1.0)))
            assert ours.size == theirs.size
            np.testing.assert_allclose(
                ours.reshape(theirs.shape) / size, theirs / size, rtol=0, atol=built.tolerance
            )
        record_property("mil_judged", sorted(program.operators))
