"""What inputs of a check reach, and what is done and said where they do not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
from serde.command.cli import main

FLOAT = onnx.TensorProto.FLOAT


def saved(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int] = (2, 8),
    result: Sequence[int] = (2, 8),
    **weights: Any,
) -> Path:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, result)],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def node(op: str, inputs: Sequence[str], output: str = "y", **attrs: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], output, **attrs)


LIMITS = {"low": np.float32(0), "high": np.float32(6)}


def relu6(path: Path) -> Path:
    return saved(path, [node("Clip", ["x", "low", "high"])], **LIMITS)


@pytest.mark.wide
def test_a_clip_that_usual_inputs_do_not_reach_is_reached(tmp_path: Path) -> None:
    source = relu6(tmp_path / "s.onnx")
    report = serde.check(source, saved(tmp_path / "t.onnx", [node("Relu", ["x"])]))
    assert not report.passed
    report = serde.check(source, relu6(tmp_path / "t.onnx"))
    assert report.passed
    assert report.unexercised == []
    assert any("4 times as large, which shows 1 clip" in note for note in report.notes)


def hidden_clip(path: Path, limit: float) -> Path:
    nodes = [node("Tanh", ["x"], "a"), node("Clip", ["a", "", "high"], "b"), node("Exp", ["b"])]
    return saved(path, nodes, high=np.float32(limit))


def test_a_clip_that_no_input_reaches_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = hidden_clip(tmp_path / "s.onnx", 6), tmp_path / "t.onnx"
    assert main(["convert", str(source), str(target), "--check"]) == 0
    assert "the output agrees; not exercised: 1 clip" in capsys.readouterr().err
    assert main(["check", str(source), str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unexercised"] == ["clip b: above 6"]


@pytest.mark.wide
@pytest.mark.parametrize("limit", [0.5, 65504.0, float(np.finfo(np.float32).max)])
def test_what_is_reached_or_guards_is_not_told(tmp_path: Path, limit: float) -> None:
    source = hidden_clip(tmp_path / "s.onnx", limit)
    assert serde.check(source, hidden_clip(tmp_path / "t.onnx", limit)).unexercised == []


def branch(path: Path, limit: float, other: str = "Cos") -> Path:
    """One function where the sum of squares is above a limit, else another."""
    result = [helper.make_tensor_value_info("r", FLOAT, (2, 8))]
    sides = [helper.make_graph([node(op, ["x"], "r")], op, [], result) for op in ("Sin", other)]
    nodes = [
        node("ReduceSumSquare", ["x"], "sum", keepdims=0),
        node("Greater", ["sum", "limit"], "is_large"),
        node("If", ["is_large"], then_branch=sides[0], else_branch=sides[1]),
    ]
    return saved(path, nodes, limit=np.float32(limit))


@pytest.mark.wide
def test_a_branch_that_larger_inputs_take_is_compared(tmp_path: Path) -> None:
    source = branch(tmp_path / "s.onnx", 100)
    assert serde.check(source, branch(tmp_path / "t.onnx", 100)).unexercised == []
    nodes = [node("Cos", ["x"])]
    assert not serde.check(source, saved(tmp_path / "t.onnx", nodes)).passed


def test_a_branch_that_no_input_takes_is_told(tmp_path: Path) -> None:
    source = branch(tmp_path / "s.onnx", -1)
    report = serde.check(source, branch(tmp_path / "t.onnx", -1, "Tanh"))
    assert report.passed
    assert [each.split(" ")[0] for each in report.unexercised] == ["branch"]


def detector(path: Path, threshold: float, overlap: float) -> Path:
    """Suppression among boxes that the input moves by as good as nothing."""
    grid = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1], [3, 3, 4, 4], [5, 5, 6, 6]], np.float32)
    nodes = [
        node("Sigmoid", ["x"], "scores"),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], "kept"),
        node("Cast", ["kept"], to=FLOAT),
    ]
    weights = {
        "boxes": grid[None],
        "most": np.int64(9),
        "overlap": np.float32(overlap),
        "least": np.float32(threshold),
    }
    return saved(path, nodes, (1, 2, 4), ("n", 3), **weights)


@pytest.mark.parametrize(
    ("threshold", "overlap", "told"),
    [
        (0.5, 0.5, []),
        (0.5, 0.99, ["threshold kept: a box suppressed"]),
        (0.0, 0.5, ["threshold kept: a score below the threshold"]),
    ],
)
def test_thresholds_that_decide_nothing_are_told(
    tmp_path: Path, threshold: float, overlap: float, told: list[str]
) -> None:
    paths = [detector(tmp_path / name, threshold, overlap) for name in ("s.onnx", "t.onnx")]
    assert serde.check(*paths).unexercised == told


LAST = [
    # Sums with the logarithm of a negative number are NaN; there are none of positive inputs.
    ("Log", ["x"], "ReduceSum", (1, 1)),
    # Nothing is above 9 but of inputs that are larger.
    ("Sub", ["x", "nine"], "Relu", (2, 8)),
]


@pytest.mark.parametrize(("first", "inputs", "last", "shape"), LAST)
def test_an_output_that_says_nothing_is_drawn_again(
    tmp_path: Path, first: str, inputs: list[str], last: str, shape: tuple[int, ...]
) -> None:
    made, nine = [node(first, inputs, "a"), node(last, ["a"], "b")], np.float32(9)
    paths = [tmp_path / name for name in ("s.onnx", "same.onnx", "t.onnx")]
    ends = [node("Identity", ["b"]), node("Identity", ["b"]), node("Mul", ["b", "nine"])]
    for path, end in zip(paths, ends, strict=True):
        saved(path, [*made, end], result=shape, nine=nine)
    assert serde.check(*paths[:2]).passed
    report = serde.check(paths[0], paths[2])
    assert not report.passed
    assert not report.says_nothing


@pytest.mark.wide
def test_inputs_of_a_user_are_not_drawn_again(tmp_path: Path) -> None:
    source = relu6(tmp_path / "s.onnx")
    data = np.full((2, 8), 2.5, np.float32)
    data[0, 0] = 1
    report = serde.check(source, relu6(tmp_path / "t.onnx"), check_data=data)
    assert report.unexercised == ["clip y: below 0", "clip y: above 6"]


@pytest.mark.wide
def test_without_the_yardstick_nothing_is_looked_for(tmp_path: Path) -> None:
    source = hidden_clip(tmp_path / "s.onnx", 6)
    assert serde.check(source, source, yardstick=False).unexercised == []
