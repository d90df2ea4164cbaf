"""Every sample of every operator that ML Programs can say: our kernel against the program.

coremltools loads each program, which checks the types of all values, and the executor of the
tests runs it. Every single operation that it runs is compared with what coremltools infers of
it; those of which coremltools infers nothing are compared with PyTorch in
``test_coreml_kernels.py``. The summary of the tests lists the operators of MIL that neither
judged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.coreml_samples import DRAWN, is_covered, model_of
from support.gaps import case, unknown_gaps
from support.mil_apple import Proof
from support.mil_executor import execute
from support.mil_values import check_types
from support.samples import build
from support.tiers import versions_of_exporters

from serde.core.report import Report
from serde.coreml.exporter import from_relay
from serde.coreml.mlprogram.ops import TABLE
from serde.coreml.model import operations
from serde.coreml.options import CoremlExportOptions
from serde.relay.ir.registry import Sample, all_ops

TOLERANCE = {"float16": 4e-3, "float32": 2e-5}
HELD = dict.fromkeys(("bool", "int8", "int16", "int64", "uint8", "uint16"), "int32")
HELD |= {"float64": "float32"}
"""dtypes of inputs and outputs by those that a Core ML model has for them."""

TARGETS = {"iOS15": 15, "iOS18": 18}
CONSENT = frozenset({"int64-as-int32", "float64-as-float32"})


def samples() -> list[Any]:
    """One parameter set for each target and sample of each operator written or decomposed.

    First is one sample of each operator, at the newest target and those at which another exporter
    writes the operator.
    """
    first = {name: versions_of_exporters(TABLE, name, list(TARGETS.values())) for name in all_ops()}
    return [
        case(
            "coreml-sample",
            f"{name}-{index}-{target}",
            name,
            given,
            target,
            wide=index > 0 or TARGETS[target] not in first[name],
        )
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        for target in TARGETS
        if is_covered(name)
    ]


@pytest.mark.wide
def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-sample", {each.id for each in samples()}) == []


def held(array: np.ndarray, target: str) -> np.ndarray:
    """An array in the dtype that a Core ML model has for it at its ends."""
    dtype = HELD.get(array.dtype.name, array.dtype.name)
    if dtype == "float16" and target == "iOS15":
        dtype = "float32"
    return array.astype(dtype)


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("name", "given", "target"), samples())
@pytest.mark.thin(2)
def test_coreml_agrees_with_kernel(
    name: str, given: Sample, target: str, record_property: Callable[[str, object], None]
) -> None:
    built = build(all_ops()[name], given)
    source = model_of(built)
    options = CoremlExportOptions(
        minimum_deployment_target=target, compute_precision="float32", allow=CONSENT
    )
    model = from_relay(source, options, Report())
    arrays = {
        name: held(np.atleast_1d(array), target)
        for name, array in zip(source.meta.inputs, built.arrays, strict=True)
    }
    check_types(model)
    proof = Proof()
    found = execute(model, arrays, proof)
    made = {op.type for op in operations(model.spec) if op.type != "const"}
    record_property("mil_exported", sorted(made))
    record_property("mil_judged", sorted(proof.agreed))
    assert proof.differing == []
    for expected, actual in zip(built.run(), found, strict=True):
        wanted = held(expected, target)
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        if name in DRAWN:
            continue
        tolerance = TOLERANCE.get(expected.dtype.name, 2e-5 if wanted.dtype.kind == "f" else 0)
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
