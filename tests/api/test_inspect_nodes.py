"""``serde inspect --nodes``: every name that it lists cuts out a part, in every format."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import view_models

import serde
import serde.relay as relay
from serde.command.cli import main
from serde.command.inspection import inspect_model
from serde.relay.transform.cutting import cut, nameable_values


def split_net() -> Any:
    """A model with an operator of several results, a tuple, a residual and two outputs."""
    x = relay.var("data", shape=(2, 4), dtype="float32")
    weight = relay.var("weight", shape=(4, 4), dtype="float32")
    dense = relay.nn.dense(x, weight)
    first, second = relay.split(dense, indices_or_sections=2, axis=1)
    joined = relay.concatenate([relay.nn.relu(first), relay.tanh(second)], axis=1)
    body = relay.Tuple([relay.add(joined, x), relay.exp(second)])
    module = relay.IRModule.from_expr(relay.Function([x, weight], body))
    return module, {"weight": np.eye(4, dtype=np.float32)}


SUFFIXES = {
    "onnx": "net.onnx",
    "mxnet": "net-symbol.json",
    "coreml": "net.mlpackage",
    "nnef": "net.nnef",
    "relay": "net.relay",
    "relax": "net.relax",
}


def written(tmp_path: Path, format_name: str) -> Path:
    path = tmp_path / SUFFIXES[format_name]
    serde.from_relay(split_net(), format=format_name, path=path)
    return path


@pytest.mark.parametrize("format_name", sorted(SUFFIXES))
def test_every_name_cuts_out_its_value(tmp_path: Path, format_name: str) -> None:
    shapes = {"input_shapes": {"data": (2, 4)}} if format_name == "mxnet" else {}
    model = serde.to_relay(written(tmp_path, format_name), **shapes)
    listed = nameable_values(model)
    assert {each.operator for each in listed} >= {"", "exp", "add"}
    for each in listed:
        for name in (each.name, *each.also):
            part = cut(model, outputs=[name])
            assert part.meta.outputs == (name,)
            assert part.main.body.type == each.type


def test_names_inside_branches_are_accepted(tmp_path: Path) -> None:
    model = serde.to_relay(view_models.branches(tmp_path / "net.onnx"))
    names = [name for each in nameable_values(model) for name in (each.name, *each.also)]
    assert "choice/then/square" in names
    for name in names:
        assert cut(model, outputs=[name]).meta.outputs == (name,)


def test_what_lies_inside_a_called_function_is_left_out() -> None:
    x = relay.var("x", shape=(2,), dtype="float32")
    inner = relay.var("y", shape=(2,), dtype="float32")
    function = relay.Function([inner], relay.exp(inner))
    module = relay.IRModule.from_expr(relay.Function([x], relay.tanh(relay.Call(function, [x]))))
    (only, *rest) = nameable_values(serde.to_relay(module))
    assert (only.name, only.operator) == ("x", "")
    assert [each.operator for each in rest] == ["tanh"]


def test_they_stand_in_the_order_of_the_source(tmp_path: Path) -> None:
    path = view_models.chain(tmp_path / "net.onnx", 3)
    found = inspect_model(path, nodes=True)
    assert found.nodes is not None
    kinds = ("MatMul", "Relu", "Add", "Tanh")
    assert [each.name for each in found.nodes] == [
        "x",
        *(f"{kind}_{layer}" for layer in range(3) for kind in kinds),
    ]


def test_the_command_prints_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = view_models.chain(tmp_path / "net.onnx", 1)
    assert main(["inspect", str(path), "--nodes"]) == 0
    assert "MatMul_0" in capsys.readouterr().out
    assert main(["inspect", str(path), "--nodes", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    expected = {"name": "Relu_0", "shape": ["N", 8], "dtype": "float32", "operator": "nn.relu"}
    assert values[2] == {**expected, "also": ["r0"]}
    assert main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] is None


def test_a_model_with_gaps_has_none_to_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = view_models.with_gap(tmp_path / "net.onnx")
    assert main(["inspect", str(path), "--nodes"]) == 1
    assert "corp.Gate" in capsys.readouterr().err
