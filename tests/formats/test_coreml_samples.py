"""Every sample of every operator that ML Programs can say: our kernel against coremltools.

Each program is loaded as coremltools does, which checks the types of all values. Then its inputs
become constants and coremltools infers what it gives. Where it infers no value of an operator,
our importer and interpreter run the program instead, which is no judgement: the summary of the
tests lists the operators of MIL that no sample judged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_samples import DRAWN, is_covered, model_of
from support.gaps import case, unknown_gaps
from support.mil_values import check_types, infer
from support.samples import build

import serde
from serde.coreml.bridge import CoremlExportOptions
from serde.coreml.lower import from_relay
from serde.coreml.model import CoremlModel, operations
from serde.coreml.writer import save
from serde.relay.interpreter import run
from serde.relay.registry import Sample, all_ops
from serde.report import Report

TOLERANCE = {"float16": 4e-3, "float32": 2e-5}
HELD = dict.fromkeys(("bool", "int8", "int16", "int64", "uint8", "uint16"), "int32")
HELD |= {"float64": "float32"}
"""dtypes of inputs and outputs by those that a Core ML model has for them."""

TARGETS = ("iOS15", "iOS18")
CONSENT = frozenset({"int64-as-int32", "float64-as-float32"})


def samples() -> list[Any]:
    """One parameter set for each target and sample of each operator written or decomposed."""
    return [
        case("coreml-sample", f"{name}-{index}-{target}", name, given, target)
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        for target in TARGETS
        if is_covered(name)
    ]


def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-sample", {each.id for each in samples()}) == []


def held(array: np.ndarray, target: str) -> np.ndarray:
    """An array in the dtype that a Core ML model has for it at its ends."""
    dtype = HELD.get(array.dtype.name, array.dtype.name)
    if dtype == "float16" and target == "iOS15":
        dtype = "float32"
    return array.astype(dtype)


def read_back(model: CoremlModel, arrays: dict[str, np.ndarray], path: Path) -> list[np.ndarray]:
    """What our importer and interpreter make of a program."""
    found = serde.to_relay(save(model, path))
    given = arrays | {name: weight.array() for name, weight in found.params.items()}
    result = run(found.main, [given[each.name_hint] for each in found.main.params], mod=found.mod)
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize(("name", "given", "target"), samples())
def test_coreml_agrees_with_kernel(
    name: str,
    given: Sample,
    target: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
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
    inferred = infer(model, arrays)
    found = inferred.values
    made = {op.type for op in operations(model.spec) if op.type != "const"}
    judged = all(value is not None for value in found)
    record_property("coreml_judged" if judged else "coreml_unjudged", sorted(made))
    if not judged:
        read = read_back(model, arrays, tmp_path / "model.mlpackage")
        found = [
            ours if theirs is None else theirs for ours, theirs in zip(read, found, strict=True)
        ]
    for expected, actual in zip(built.run(), found, strict=True):
        wanted = held(expected, target)
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        if name in DRAWN:
            continue
        tolerance = TOLERANCE.get(expected.dtype.name, 2e-5 if wanted.dtype.kind == "f" else 0)
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
