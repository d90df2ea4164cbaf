"""Checks of whole conversions: which outputs belong together, precision, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiers import first_of

import serde
from serde.checking.outputs import match_outputs
from serde.command.cli import main
from serde.compat import import_mxnet
from serde.errors import CheckError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    """A net of MXNet of which three outputs have one name."""
    mx = import_mxnet()
    layer = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=8, name="fc")
    kinds = [mx.sym.Activation(layer, act_type=kind, name="act") for kind in ("tanh", "sigmoid")]
    mx.sym.Group([*kinds, mx.sym.softmax(layer, name="act")]).save(str(tmp_path / "m-symbol.json"))
    generator = np.random.default_rng(1)
    weights = {
        "arg:fc_weight": mx.nd.array(generator.standard_normal((8, 16))),
        "arg:fc_bias": mx.nd.array(generator.standard_normal(8)),
    }
    mx.nd.save(str(tmp_path / "m-0000.params"), weights)
    return tmp_path / "m-symbol.json"


def exchange_heads(path: Path) -> None:
    """Let the outputs of a model of ONNX be each other's."""
    model = onnx.load(path)
    first, second = (output.name for output in list(model.graph.output)[:2])
    names = {first: second, second: first}
    for node in model.graph.node:
        node.output[:] = [names.get(name, name) for name in node.output]
    onnx.save(model, path)


def test_names_decide_where_both_have_the_same() -> None:
    assert match_outputs(["a", "b"], ["b", "a"]) == [1, 0]


def test_places_decide_where_names_differ() -> None:
    assert match_outputs(["out", "act"], ["out_output", "act_output"]) == [0, 1]


def test_outputs_of_one_name_go_by_their_order() -> None:
    assert match_outputs(["act", "out", "act"], ["out", "act", "act"]) == [1, 0, 2]


def test_what_a_conversion_recorded_comes_first() -> None:
    assert match_outputs(["a", "b"], ["b", "a"], ["a", "b"]) == [1, 0]
    assert match_outputs(["a", "b"], ["b", "c"], ["c", "b"]) == [1, 0]


def test_an_output_too_few_is_missed_by_name() -> None:
    assert match_outputs(["a", "b", "c"], ["c", "a"]) == [1, None, 0]


def save_sum(path: Path, kind: int, length: int, *names: str) -> Path:
    """Write a sum of inputs of one type."""
    ports = [onnx.helper.make_tensor_value_info(name, kind, [1, length]) for name in (*names, "y")]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Sum", names, ["y"])], "g", ports[:-1], ports[-1:]
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("xw", "z is called w in the target"),
        pytest.param("zx", "in another order there: z, x", marks=pytest.mark.wide),
        pytest.param("x", "z is not there in the target", marks=pytest.mark.wide),
        ("xz", None),
    ],
)
def test_inputs_that_differ_are_told(tmp_path: Path, names: str, said: str | None) -> None:
    source = save_sum(tmp_path / "a.onnx", onnx.TensorProto.FLOAT, 4, "x", "z")
    target = save_sum(tmp_path / "b.onnx", onnx.TensorProto.FLOAT, 4, *names)
    notes = [note for note in serde.check(source, target).notes if note.startswith("inputs")]
    assert notes == ([] if said is None else [f"inputs differ: {said}"])


def test_types_of_inputs_that_differ_are_told(tmp_path: Path) -> None:
    source = save_sum(tmp_path / "a.onnx", onnx.TensorProto.FLOAT, 4, "x")
    other = save_sum(tmp_path / "b.onnx", onnx.TensorProto.DOUBLE, 4, "x")
    assert "inputs differ: x is float32, there float64" in serde.check(source, other).notes
    other = save_sum(tmp_path / "c.onnx", onnx.TensorProto.FLOAT, 5, "x", "z")
    told = "; inputs differ: z of the target is not in the source; x is 1x4, there 1x5$"
    with pytest.raises(CheckError, match=told):
        serde.check(source, other)


def test_outputs_of_one_name_are_checked_one_by_one(heads: Path, tmp_path: Path) -> None:
    target = tmp_path / "m.onnx"
    report = serde.convert(heads, target, input_shapes={"data": (2, 16)}, check=True)
    assert [verdict.passed for verdict in report.verdicts] == [True] * 3
    exchange_heads(target)
    report = serde.check(heads, target, input_shapes={"data": (2, 16)})
    assert [verdict.failed for verdict in report.verdicts] == [True, True, False]


@pytest.mark.parametrize(
    "target", first_of(["m.relay", "m.mlpackage", "back-symbol.json"], ["m.mlpackage"])
)
def test_a_target_that_renames_its_outputs_is_checked(
    heads: Path, tmp_path: Path, target: str
) -> None:
    serde.convert(heads, tmp_path / "m.onnx", input_shapes={"data": (2, 16)})
    model = onnx.load(tmp_path / "m.onnx")
    model.graph.output[0].name = "out"
    model.graph.node[-3].output[0] = "out"
    for node in model.graph.node:
        node.output[:] = ["out" if name == "act_output" else name for name in node.output]
    onnx.save(model, tmp_path / "m.onnx")
    report = serde.convert(tmp_path / "m.onnx", tmp_path / target, check=True)
    assert report.passed
    assert report.verdicts[0].output == "out"
    assert serde.check(tmp_path / "m.onnx", tmp_path / target).passed


@pytest.mark.wide
@pytest.mark.parametrize(
    "target", first_of(["n.onnx", "n.relay", "n.mlpackage", "n-symbol.json"], ["n.onnx"])
)
def test_what_computes_in_float16_is_converted_further(
    heads: Path, tmp_path: Path, target: str
) -> None:
    package = tmp_path / "m.mlpackage"
    serde.convert(heads, package, input_shapes={"data": (2, 16)}, check=True)
    assert serde.convert(package, tmp_path / target, check=True).passed


@pytest.mark.wide
def test_a_symbol_without_shapes_is_checked_by_those_of_the_source(
    heads: Path, tmp_path: Path
) -> None:
    target = tmp_path / "m.onnx"
    serde.convert(heads, target, input_shapes={"data": ("N", 16)})
    report = serde.check(target, heads)
    assert report.passed, report.verdicts


def constant_model(path: Path) -> Path:
    """A model of ONNX whose output is zero whatever is put in."""
    helper = onnx.helper
    ports = [helper.make_tensor_value_info(name, 1, [2, 3]) for name in ("x", "y")]
    zero = onnx.numpy_helper.from_array(np.float32(0), "zero")
    node = helper.make_node("Mul", ["x", "zero"], ["y"])
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], [zero])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.mark.wide
def test_a_conversion_of_which_outputs_say_nothing_is_not_written(tmp_path: Path) -> None:
    source, target = constant_model(tmp_path / "z.onnx"), tmp_path / "z.relay"
    with pytest.raises(CheckError, match="say nothing about it: all its values are equal"):
        serde.convert(source, target, check=True)
    assert not target.exists()


@pytest.mark.wide
def test_exit_codes_tell_right_wrong_and_unknown(
    heads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, zeros = tmp_path / "m.onnx", constant_model(tmp_path / "z.onnx")
    shape = ["--input-shape", "data:2,16"]
    assert main(["convert", str(heads), str(right), *shape, "--check", "-q"]) == 0
    assert main(["check", str(zeros), str(zeros), "-q"]) == 5
    exchange_heads(right)
    assert main(["check", str(heads), str(right), *shape, "-q"]) == 4
    capsys.readouterr()
    assert main(["check", str(heads), str(right), *shape, "--json"]) == 4
    told: Any = json.loads(capsys.readouterr().out)
    assert told["verdicts"][0]["factor"] > 100
    assert told["verdicts"][0]["distance"] > told["verdicts"][0]["own"]


@pytest.mark.wide
def test_a_table_tells_of_distances_and_of_what_says_nothing(
    heads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zeros = constant_model(tmp_path / "z.onnx")
    main(["check", str(zeros), str(zeros)])
    printed = capsys.readouterr().out
    assert "all its values are equal  ?" in printed
    assert printed.endswith("the output says nothing\n")
