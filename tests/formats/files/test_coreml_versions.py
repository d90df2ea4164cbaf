"""The same twelve nets as coremltools 5.2 to 9.0 wrote them; ``golden/coreml/make.py`` made them.

They are judged by what PyTorch gives for the same weights.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from support.coreml_layers import evaluate

import serde
from serde.coreml.model import operations
from serde.coreml.reader import load

GOLDEN = Path(__file__).parents[2] / "golden" / "coreml"
VERSIONS = ("5.2", "6.3", "7.2", "8.3", "9.0")
NETS = (
    "attention",
    "classifier",
    "compressed",
    "conv_float16",
    "conv_float32",
    "flexible",
    "gru",
    "image",
    "lstm",
    "multi_output",
    "network",
    "resnet",
)
HALF = ("classifier", "conv_float16", "image")
"""Nets that compute in float16."""

KEPT = {"5.2": "", "6.3": "affine_dequantize", "7.2": "affine_dequantize"}
"""How eight bits are kept in the compressed net, where not in blocks."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("versions")
    for version in VERSIONS:
        with zipfile.ZipFile(GOLDEN / f"coremltools-{version}.zip") as archive:
            archive.extractall(root / version)
    return root


@pytest.fixture(scope="module")
def expected() -> dict[str, np.ndarray]:
    with np.load(GOLDEN / "expected.npz") as found:
        return dict(found)


def place(folder: Path, version: str, net: str) -> Path:
    return folder / version / f"{net}.{'mlmodel' if net == 'network' else 'mlpackage'}"


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("version", VERSIONS)
def test_net(version: str, net: str, folder: Path, expected: dict[str, np.ndarray]) -> None:
    model = serde.to_relay(place(folder, version, net))
    (name,) = model.meta.inputs
    found = evaluate(model, {name: expected[net]})
    wanted = [value for key, value in expected.items() if key.startswith(f"{net}.")]
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape
        tolerance = 5e-3 if net in HALF else 2e-6
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * theirs.std())


@pytest.mark.parametrize("version", VERSIONS)
def test_weights_were_compressed(version: str, folder: Path) -> None:
    spec = load(place(folder, version, "compressed")).spec
    found = {op.type for op in operations(spec) if op.type.startswith("constexpr_")}
    eight = KEPT.get(version, "blockwise_shift_scale")
    kinds = {eight, "lut_to_dense", "sparse_to_dense"} if eight else set()
    assert found == {f"constexpr_{each}" for each in kinds}
