"""What the verdict says of an output that differs, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import serde
import serde.relay as relay
from serde.checking.verdict import compare
from serde.core.report import OutputVerdict, Report
from serde.engine.base import Engine
from serde.errors import CheckError
from serde.relay.ir.model import RelayModel

FLOAT = onnx.TensorProto.FLOAT


def saved(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    shape: Sequence[int],
    result: Sequence[int | str],
    **weights: Any,
) -> Path:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, result)],
        [numpy_helper.from_array(np.asarray(v, np.float32), name) for name, v in weights.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return path


def failed(source: Path, target: Path, **options: Any) -> OutputVerdict:
    report = Report()
    with pytest.raises(CheckError):
        serde.convert(source, target, check=True, report=report, **options)
    return report.verdicts[0]


def shifted(path: Path) -> Path:
    """Sums far from zero, of which float16 takes the bits that count."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], "first"),
        helper.make_node("Add", ["a", "c"], ["b"], "up"),
        helper.make_node("Sub", ["b", "c"], ["d"], "down"),
        helper.make_node("Tanh", ["d"], ["y"], "last"),
    ]
    return saved(path, nodes, (4, 64), (4, 64), c=1000)


@pytest.mark.wide
def test_float16_names_what_to_leave_in_float32(tmp_path: Path) -> None:
    source, target = shifted(tmp_path / "s.onnx"), tmp_path / "t.relay"
    options = {"float16": True, "keep_io_types": True}
    remark = failed(source, target, simplify=False, **options).remark
    assert remark.startswith("float16 moves it by 0.")
    flag = "--op-block-list "
    assert flag in remark
    names = remark.partition(flag)[2].partition(":")[0].split(",")
    assert set(names) == {"up", "down"}
    report = Report()
    serde.convert(
        source, target, simplify=False, check=True, report=report, op_block_list=names, **options
    )
    assert report.passed


def test_a_length_that_the_engine_rounds_otherwise_is_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Resize", ["x", "", "s"], ["u"], "up", mode="nearest"),
        helper.make_node("Relu", ["u"], ["y"], "y"),
    ]
    source = saved(tmp_path / "s.onnx", nodes, (1, 1, 10, 10), "abcd", s=[1, 1, 1.3, 1.3])
    remark = failed(source, tmp_path / "t.relay").remark
    assert "gives 1x1x13x13 where the model as read says 1x1x12x12" in remark
    assert "up resizes 10 by 1.3 to 12, and to 13" in remark


class Given(Engine):
    """Yields the same value for all inputs."""

    def __init__(self, value: Sequence[float]) -> None:
        self.name, self.inputs, self.outputs = "given", {"x": "float32"}, ["y"]
        self._value = np.asarray(value, np.float32)

    def run(self, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [self._value]


INF, NAN = np.inf, np.nan


def judged(source: Sequence[float], target: Sequence[float]) -> OutputVerdict:
    x = relay.var("x", shape=(4,))
    c = relay.const(np.asarray(source, np.float32))
    zero = relay.multiply(x, relay.const(np.float32(0)))
    model = RelayModel(relay.IRModule.from_expr(relay.Function([x], relay.add(zero, c))), {})
    report = Report()
    compare(Given(source), Given(target), model, report=report)
    return report.verdicts[0]


@pytest.mark.parametrize(
    ("source", "target", "remark"),
    [
        ([INF, -INF, 1, 2], [INF, -INF, 1, 2], None),
        ([INF, -INF, INF, INF], [INF, -INF, INF, INF], None),
        ([INF, -INF, INF, INF], [INF, INF, INF, INF], "it is inf at [1], where the source is -inf"),
        ([INF, 1, 2, 3], [65504, 1, 2, 3], "it is 65504 at [0], where the source is inf"),
        (
            [1, 2, 3, 4],
            [NAN, 2, INF, 4],
            "it is nan at [0], where the source is 1; 2 of 4 elements are like that",
        ),
    ],
)
def test_infinities_agree_where_they_are_equal(
    source: Sequence[float], target: Sequence[float], remark: str | None
) -> None:
    verdict = judged(source, target)
    assert verdict.passed is (remark is None)
    assert verdict.failed is (remark is not None)
    assert verdict.remark == (remark or "")
