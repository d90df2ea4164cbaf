"""Memory of conversions, measured in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serde.relay as relay
from serde.core.allocation import at_positions
from serde.core.limits import budget, spending
from serde.core.weights import Array
from serde.relay.transform import EvaluateConstants, InferType

ROOT = Path(__file__).resolve().parents[3]
STATUS = Path("/proc/self/status")
RUN = """
import sys
import serde
from serde.errors import SerdeError

def peak():
    with open("/proc/self/status") as file:
        return int(file.read().split("VmHWM:")[1].split()[0]) / 1000

small, source, target = sys.argv[1:]
serde.convert(small, target, overwrite=True)
before = peak()
try:
    serde.convert(source, target, overwrite=True)
except SerdeError as error:
    print(type(error).__name__, file=sys.stderr)
print(peak() - before)
"""
CHAIN = """
import sys
sys.path.insert(0, "benchmarks")
import load
from pathlib import Path
load.measure_nodes(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
"""

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="Linux alone tells the peak")


def save(path: Path, nodes: list[onnx.NodeProto], constants: dict[str, Array]) -> Path:
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 1, 4])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "net", [data], [result], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, path)
    return path


def resize(path: Path, mode: str, size: int) -> Path:
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode)
    return save(path, [node], {"scales": np.float32([1, 1, 1, size / 4])})


def pool(path: Path, size: int) -> Path:
    pads = [0, 2, 0, size + 2]
    return save(
        path, [helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[1, 4], pads=pads)], {}
    )


def fold(path: Path, size: int) -> Path:
    nodes = [
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(np.zeros(size, "f"))),
        helper.make_node("Constant", [], ["axis"], value=numpy_helper.from_array(np.int64(0))),
        helper.make_node("CumSum", ["c", "axis"], ["sums"]),
        helper.make_node("ReduceMax", ["sums"], ["most"], keepdims=0),
        helper.make_node("Add", ["x", "most"], ["y"]),
    ]
    return save(path, nodes, {})


SOURCES = {
    "cubic": lambda path: resize(path, "cubic", 2_000_000),
    "linear": lambda path: resize(path, "linear", 2_000_000),
    "nearest": lambda path: resize(path, "nearest", 2_000_000),
    "windows": lambda path: pool(path, 2_000_000),
    "fold": lambda path: fold(path, 6_500_000),
}


@pytest.mark.wide
@pytest.mark.parametrize("target", ["o-symbol.json", "o.mlpackage"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_small_file_takes_no_more_than_is_promised(
    source: str, target: str, tmp_path: Path
) -> None:
    """64 MB and twice the file; a quarter more, as allocators keep what they were given."""
    small = save(tmp_path / "small.onnx", [helper.make_node("Relu", ["x"], ["y"])], {})
    path = SOURCES[source](tmp_path / "m.onnx")
    names = [str(small), str(path), str(tmp_path / target)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *names], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 1.25 * (64 + 2 * path.stat().st_size / 1e6), done.stderr


@pytest.mark.parametrize(
    "format",
    [
        pytest.param("onnx", marks=pytest.mark.wide),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("coreml", "mxnet", "nnef")),
    ],
)
def test_a_node_takes_three_kilobytes(format: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHAIN, format, "30000", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *_, written, read = (float(each) for each in done.stdout.split("|"))
    assert written < 3.3
    assert written + read < 4


def test_what_is_computed_piece_by_piece_is_the_same() -> None:
    found = at_positions(200_000, lambda i: np.cos(i / 7) * 3)
    np.testing.assert_array_equal(found, np.cos(np.arange(200_000) / 7) * 3)
    assert at_positions(0, lambda i: i + 1).shape == (0,)


def test_a_fold_is_afforded_with_what_it_holds_meanwhile() -> None:
    with spending({"constants": 1000}):
        assert budget().may_hold(1000)
        assert not budget().may_hold(1001)
        budget().draw("constants", 600, "something")
        assert not budget().may_hold(401)
        budget().grow(nbytes=1)
        assert budget().may_hold(402)


@pytest.mark.parametrize(("constants", "kept"), [(2_000_000, True), (10_000_000, False)])
def test_a_fold_that_holds_too_much_meanwhile_is_left(constants: int, kept: bool) -> None:
    """Of 200,000 entries the sums take 0.8 MB, and two arrays of float64 3.2 MB more."""
    sums = relay.cumsum(relay.const(np.ones(200_000, np.float32)), axis=0)
    module = relay.IRModule.from_expr(relay.Function([], relay.max(sums)))
    with spending({"constants": constants}):
        folded = EvaluateConstants()(InferType()(module))
    assert ("cumsum" in folded.astext()) == kept
