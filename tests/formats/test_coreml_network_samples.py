"""Every sample of every operator that NeuralNetworks can say: our kernel against their layers.

The file is written and read again by Apple's messages, and an executor of layers that shares
nothing with the bridge runs it; our importer must give the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.coreml_models import tools
from support.coreml_samples import DRAWN, is_covered, model_of
from support.gaps import case, unknown_gaps
from support.nn_layers import evaluate_network
from support.samples import build

import serde
from serde.coreml.bridge import CoremlExportOptions
from serde.coreml.lower import from_relay
from serde.coreml.writer import save
from serde.relay.interpreter import run
from serde.relay.registry import Sample, all_ops
from serde.report import Report

TARGETS = ("iOS13", "iOS14")
CONSENT = frozenset({"integers-as-float32", "float64-as-float32"})
TOLERANCE = {"float16": 4e-3}
"""A network computes in float32 what is float16 in Relay."""


def samples() -> list[Any]:
    """One parameter set for each target and sample of each operator written or decomposed."""
    return [
        case("coreml-network", f"{name}-{index}-{target}", name, given, target)
        for name, definition in all_ops().items()
        for index, given in enumerate(definition.samples)
        for target in TARGETS
        if is_covered(name)
    ]


def test_gaps_name_cases() -> None:
    assert unknown_gaps("coreml-network", {each.id for each in samples()}) == []


@pytest.mark.parametrize(("name", "given", "target"), samples())
def test_network_agrees_with_kernel(name: str, given: Sample, target: str, tmp_path: Path) -> None:
    built = build(all_ops()[name], given)
    source = model_of(built)
    options = CoremlExportOptions(minimum_deployment_target=target, allow=CONSENT)
    path = save(from_relay(source, options, Report()), tmp_path / "net.mlmodel")
    arrays = {
        name: np.atleast_1d(array)
        for name, array in zip(source.meta.inputs, built.arrays, strict=True)
    }
    message = tools().proto.Model_pb2.Model.FromString(path.read_bytes())
    assert message.specificationVersion == {"iOS13": 4, "iOS14": 5}[target]
    found = evaluate_network(message, arrays)
    back = serde.to_relay(path)
    fed = {each.name_hint: arrays[each.name_hint].astype(each.type.dtype) for each in back.inputs()}
    fed |= {name: weight.array() for name, weight in back.params.items()}
    again = run(back.main, [fed[each.name_hint] for each in back.main.params], mod=back.mod)
    ours = list(again) if isinstance(again, tuple) else [again]
    for output, expected, read in zip(source.meta.outputs, built.run(), ours, strict=True):
        wanted = np.atleast_1d(expected)
        tolerance = TOLERANCE.get(wanted.dtype.name, 2e-5)
        for actual in (found[output], read):
            assert actual.shape == wanted.shape
            assert actual.dtype.kind == ("f" if wanted.dtype.kind == "f" else "i")
            if name not in DRAWN:
                np.testing.assert_allclose(
                    actual.astype(np.float64), wanted.astype(np.float64), tolerance, tolerance
                )
