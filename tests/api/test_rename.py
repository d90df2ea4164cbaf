"""Other names for inputs and outputs, for every target; ONNX Runtime and MXNet are the judges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from support.mil_executor import execute
from support.runtime import run_onnx
from support.tiers import first_of

import serde
from serde.bridge.formats import get_bridge
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import OptionError

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2, 3] a, float[2, 3] b) => (float[2, 3] y, float[2, 3] z)
<float[3] w = {1, 2, 3}>
{
    inner = Sub (a, b)
    y = Mul (inner, w)
    z = Relu (b)
}
"""

NAMES: dict[str, Any] = {"rename_inputs": {"a": "b", "b": "a"}, "rename_outputs": {"y": "inner"}}
"""Two inputs change places, and an output is called like a tensor inside."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {name: rng.normal(size=(2, 3)).astype(np.float32) for name in "ab"}


TARGETS = {"n.onnx": {}, "n-symbol.json": {}, "n.relay": {}, "n.mlpackage": {}, "n.mlmodel": {}}
TARGETS["n.mlmodel"] = {"minimum_deployment_target": "iOS14"}
TARGETS["n.mlpackage"] = {"compute_precision": "float32"}


@pytest.mark.parametrize("target", first_of(TARGETS, ["n.onnx", "n.mlpackage"]))
def test_every_target_has_the_names_and_passes_the_check(
    target: str, source: Path, tmp_path: Path
) -> None:
    mapping = tmp_path / "names.json"
    report = serde.convert(
        source, tmp_path / target, check=True, tensor_mapping=mapping, **NAMES, **TARGETS[target]
    )
    assert report.passed
    found = json.loads(mapping.read_text())
    assert found["inputs"] == {"a": "b", "b": "a"}
    bridge = get_bridge(report.facts["target"])
    native = bridge.load(tmp_path / target, None, bridge.import_options())
    names = bridge.names(native)
    assert names.inputs == ("b", "a")
    assert [name.removesuffix("_output") for name in names.outputs] == ["inner", "z"]
    assert {**found["outputs"]} == dict(zip("yz", names.outputs, strict=True))


def test_numbers_of_onnx(source: Path, tmp_path: Path) -> None:
    serde.convert(source, tmp_path / "n.onnx", **NAMES)
    given = arrays()
    turned = {"b": given["a"], "a": given["b"]}
    expected = run_onnx(source, given)[1]
    found = run_onnx(tmp_path / "n.onnx", turned)[1]
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.wide
def test_numbers_of_core_ml(source: Path) -> None:
    native = serde.export_model(source, format="coreml", compute_precision="float32", **NAMES)
    given = arrays()
    found = execute(native, {"b": given["a"], "a": given["b"]})
    for left, right in zip(found, run_onnx(source, given)[1], strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)


@pytest.mark.wide
def test_numbers_of_mxnet(source: Path) -> None:
    mx = import_mxnet()
    symbol, params = serde.import_model(source, **NAMES)
    given = {name: mx.nd.array(value) for name, value in arrays().items()}
    args = {"b": given["a"], "a": given["b"], **params.arg}
    bound = symbol.bind(mx.cpu(), args=args, grad_req="null")
    for left, right in zip(bound.forward(), run_onnx(source, arrays())[1], strict=True):
        np.testing.assert_allclose(left.asnumpy(), right, rtol=1e-6)


def test_a_cut_part_is_renamed(source: Path, tmp_path: Path) -> None:
    report = serde.convert(
        source, tmp_path / "n.onnx", check=True, outputs=["inner"], rename_outputs={"inner": "d"}
    )
    assert report.passed
    assert [each.name for each in onnx.load(tmp_path / "n.onnx").graph.output] == ["d"]


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown input": ({"rename_inputs": {"x": "c"}}, r"rename_inputs: 'x' is none of a, b"),
    "unknown output": ({"rename_outputs": {"inner": "c"}}, r"rename_outputs: 'inner' is none of"),
    "another input": ({"rename_inputs": {"a": "b"}}, r"'b' is the name of another already"),
    "a weight": ({"rename_inputs": {"a": "w"}}, r"'w' is the name of a weight already"),
    "an output": ({"rename_inputs": {"a": "y"}}, r"an input and an output would both be called"),
    "no name": ({"rename_inputs": {"a": ""}}, r"'a' needs a name"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, source: Path, tmp_path: Path) -> None:
    options, message = FAULTS[name]
    with pytest.raises(OptionError, match=message):
        serde.convert(source, tmp_path / "n.onnx", **options)


def test_what_is_known_of_an_input_goes_with_it(source: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.mlpackage", tmp_path / "second.mlpackage"
    serde.convert(source, first, descriptions={"a": "the first"})
    serde.convert(first, second, rename_inputs={"a": "left"})
    bridge = get_bridge("coreml")
    described = bridge.load(second, None, bridge.bind_import({})).spec.description
    assert {each.name: each.shortDescription for each in described.input}["left"] == "the first"


def test_flags(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "n.onnx"
    words = ["convert", str(source), str(path), "--rename-input", "a=c", "--rename-output", "y=d"]
    assert main(words) == 0
    graph = onnx.load(path).graph
    assert [each.name for each in graph.input] == ["c", "b"]
    assert [each.name for each in graph.output] == ["d", "z"]
    assert main([*words[:3], "--rename-input", "a"]) == 2
    assert "expected OLD=NEW" in capsys.readouterr().err
