"""Every sample of every operator that NeuralNetworks can say: our kernel against their layers.

The file is written and read again by Apple's messages, and an executor of layers that shares
nothing with the bridge runs it; our importer must give the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.coreml_networks import check_network, network
from support.coreml_samples import DRAWN, is_covered, model_of
from support.gaps import case, unknown_gaps
from support.samples import build
from support.tiers import versions_of_exporters

from serde.coreml.neuralnetwork.ops.table import LAYERS
from serde.relay.ir.registry import Sample, all_ops

TARGETS = {"iOS13": 4, "iOS14": 5}
"""Deployment targets and their versions of the specification."""

TOLERANCE = {"float16": 4e-3}
"""A network computes in float32 what is float16 in Relay."""


def samples() -> list[Any]:
    """One parameter set for each target and sample of each operator written or decomposed.

    First is one sample of each operator, at the newest target and those at which another exporter
    writes the operator.
    """
    first = {name: versions_of_exporters(LAYERS, name, [13, 14]) for name in all_ops()}
    return [
        case(
            "coreml-network",
            f"{name}-{index}-{target}",
            name,
            given,
            target,
            wide=index > 0 or int(target[3:]) not in first[name],
        )
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        for target in TARGETS
        if is_covered(name)
    ]


@pytest.mark.wide
def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-network", {each.id for each in samples()}) == []


@pytest.mark.sparse(3)
@pytest.mark.parametrize(("name", "given", "target"), samples())
@pytest.mark.thin(2)
def test_network_agrees_with_kernel(name: str, given: Sample, target: str) -> None:
    built = build(all_ops()[name], given)
    source = model_of(built)
    model = network(source, target)
    assert model.spec.specificationVersion == TARGETS[target]
    arrays = {
        name: np.atleast_1d(array)
        for name, array in zip(source.meta.inputs, built.arrays, strict=True)
    }
    expected = built.run()
    tolerance = max(TOLERANCE.get(each.dtype.name, 2e-5) for each in expected)
    check_network(model, arrays, expected, tolerance=tolerance, drawn=name in DRAWN)
