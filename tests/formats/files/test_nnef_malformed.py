"""Operations that the language allows and no fragment can compute: refused, never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any as AnyValue

import nnef
import numpy as np
import pytest
from support.nnef_files import VERSION, graph, write_folder

import serde
from serde.core.weights import numpy_dtype
from serde.engine.interpreter import RelayEngine
from serde.errors import FormatError, UnsupportedModelError
from serde.nnef.bridge import BRIDGE
from serde.nnef.codec import load

BATCH = "f = external<scalar>(shape = [1, 2, 4, 4]); b = external<integer>(shape = [3]); "
REGIONS = BATCH + "q = external<scalar>(shape = [3, 4]); "
BODIES = {
    "a split beyond the axes": ("[y, z] = split(x, axis = 4, ratios = [1, 2]);", "axis 4 is out"),
    "a split by nothing": ("[y, z] = split(x, axis = 0, ratios = [0, 0]);", "expected positive"),
    "a split backwards": ("[y, z] = split(x, axis = 0, ratios = [-1, -1]);", "expected positive"),
    "a slice beyond the axes": (
        "y = slice(x, axes = [5], begin = [0], end = [1]);", "axis 5 is outside",
    ),
    "a product with a number": ("y = matmul(x, 2.0);", "matrices have two axes"),
    "a layer of a number": ("y = linear(x, 1.0);", "both are matrices"),
    "a layer of many axes": ("y = linear(f, f);", "both are matrices"),
    "a constant of no shape": ("y = constant(shape = [-1, 2], value = [1.0, 2.0]);", r"\[-1, 2\]"),
    "windows over nothing": (
        "y = conv(x, x, padding = [(1, 1)]);", "no spatial axes, but padding",
    ),
    "strides over nothing": ("y = deconv(x, x, stride = [2]);", "no spatial axes, but padding"),
    "a shape of other axes": ("y = deconv(f, f, output_shape = [4]);", r"\[4\] of 4 axes"),
    "regions of one number": (
        "y = max_roi_pool(f, x, b, output_size = [1, 1]);", "four numbers and an index",
    ),
    "regions of one image": (
        "y = roi_resample(f, q, 0, output_size = [1, 1]);", "four numbers and an index",
    ),
    "regions of one axis": (
        "y = avg_roi_align(f, q, b, output_size = [1], sampling_rate = [2, 2]);", "regions of two",
    ),
    "regions of no size": ("y = avg_roi_pool(f, q, b, output_size = [0, 1]);", "regions of two"),
}  # fmt: skip


@pytest.mark.parametrize("case", BODIES)
def test_operations_that_nothing_computes(case: str, tmp_path: Path) -> None:
    body, message = BODIES[case]
    path = tmp_path / "net.nnef"
    outputs = "y, z" if "z]" in body else "y"
    path.write_text(graph(REGIONS + body, inputs="x, f, b, q", outputs=outputs))
    with pytest.raises(UnsupportedModelError, match=message):
        serde.to_relay(path)


def built(op: str, inputs: AnyValue, attributes: AnyValue, data: AnyValue = None) -> AnyValue:
    """Return a graph of one operation of ``x`` and a variable ``w``."""
    external = nnef.Operation("external", {"shape": [2]}, {}, {"output": "x"}, "scalar")
    variable = nnef.Operation(
        "variable", {"shape": [2], "label": "w"}, {}, {"output": "w"}, "scalar"
    )
    last = nnef.Operation(op, attributes, inputs, {"y": "y"}, None)
    values = np.ones(2, np.float32) if data is None else data
    tensors = {
        name: nnef.Tensor(name, "scalar", None, values if name == "w" else None, {})
        for name in ("x", "w", "y")
    }
    return nnef.Graph("net", tensors, [external, variable, last], ["x"], ["y"])


X = nnef.Identifier("x")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (built("concat", {"values": []}, {"axis": 0}), "a list of no tensors"),
        (built("stack", {"values": []}, {"axis": 0}), "a list of no tensors"),
        (built("split", {"value": X}, {"axis": 0, "ratios": []}), "expected positive integers"),
        (built("constant", {}, {"shape": [2], "value": "text"}), "a constant of 'text'"),
        (built("add", {"x": X, "y": 1e300}, {}), "float32 has no 1e.300"),
        (built("add", {"x": X, "y": 1e5}, {}, np.ones(2, np.float16)), "float16 has no 100000"),
        (built("softabs", {"x": X}, {"epsilon": 1e300}), "float32 has no 1e.300"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_operations_in_memory_that_nothing_computes(source: AnyValue, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        serde.to_relay(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (built("add", {"x": X, "y": None}, {}), "expected a tensor or a number, found None"),
        (built("add", {"x": X, "y": 10**400}, {}), "too large"),
        (built("add", {"x": X, "y": "w"}, {}, np.ones(2, np.longdouble)), "'w': expected numbers"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_numbers_in_memory_that_are_none(source: AnyValue, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(source)


@pytest.mark.parametrize(("one", "other"), [("float16", "float32"), ("float64", "float16"),
                                            ("float32", "float64")])  # fmt: skip
def test_variables_of_several_floats_are_read_as_the_widest(
    one: str, other: str, tmp_path: Path
) -> None:
    text = (
        VERSION + "graph net(x) -> (y, n) { x = external<scalar>(shape = [3]);"
        "a = variable<scalar>(shape = [3], label = 'a');"
        "b = variable<scalar>(shape = [3], label = 'b'); s = variable<scalar>(shape = [3],"
        "label = 's'); u = add(x, a); t = mul(u, b); y = concat([t, a, b], axis = 0);"
        "n = update(s, t); }"
    )
    values = np.array([0.1, 1 / 3, 2.7])
    tensors = {"a": values.astype(one), "b": values.astype(other), "s": values.astype(other)}
    model = serde.to_relay(write_folder(tmp_path / "net", text, tensors))
    wide = np.result_type(numpy_dtype(one), numpy_dtype(other))
    assert {each.checked_type.dtype for each in model.main.params[:2]} == {str(wide)}
    x = np.array([1, 2, 3], wide)
    found = RelayEngine(model).run({"x": x, "s": np.zeros(3, wide)})
    a, b = (values.astype(each).astype(wide) for each in (one, other))
    np.testing.assert_allclose(found[0], np.concatenate([(x + a) * b, a, b]), 1e-6)
    assert [each.dtype for each in found] == [wide, wide]


def test_indices_of_all_integers(tmp_path: Path) -> None:
    body = "i = variable<integer>(shape = [2], label = 'i'); y = gather(x, i, axis = 1);"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for dtype in (np.int8, np.uint8, np.int64, np.uint64):
        folder = write_folder(
            tmp_path / dtype.__name__, graph(body), {"i": np.array([2, 0], dtype)}
        )
        (found,) = RelayEngine(serde.to_relay(folder)).run({"x": x})
        np.testing.assert_array_equal(found, x[:, [2, 0]])


@pytest.mark.wide
def test_texts_of_blanks_take_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "net.nnef"
    path.write_text("#\n" * 2**19 + graph("y = relu(x);"))
    code = (
        "import resource, sys; from serde.nnef.codec import load\n"
        "def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "before = most(); load(sys.argv[1]); print(most() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100


def test_summaries_tell_the_types_that_are_read(tmp_path: Path) -> None:
    text = graph("w = variable<scalar>(shape = [2, 3], label = 'w'); y = add(x, w);")
    folder = write_folder(tmp_path / "net", text, {"w": np.ones((2, 3), np.float16)})
    (summary,) = BRIDGE.summary(load(folder)).inputs
    assert summary.dtype == "float16"


@pytest.mark.parametrize(("label", "shape"), [("../w", [2, 3]), ("missing", [2, 3]), ("w", [3])])
def test_faults_of_variables_have_a_place(label: str, shape: AnyValue, tmp_path: Path) -> None:
    text = graph(f"v = variable<scalar>(shape = {shape}, label = '{label}'); y = relu(x);")
    folder = write_folder(tmp_path / "net", text, {"w": np.ones((2, 3), np.float32)})
    with pytest.raises(FormatError, match=r"graph.nnef: line 5, column 5: .*(label|variable) '"):
        load(folder)
