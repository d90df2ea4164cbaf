"""Profiles of runtimes: what they tell, and models that are written for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.defs import get_schema

import serde
from serde.errors import OptionError
from serde.onnx import aiming
from serde.onnx.profile import profile_names, read_supported

FLOAT, INT32, INT64 = (getattr(onnx.TensorProto, name) for name in ("FLOAT", "INT32", "INT64"))
NAMES = [
    "directml", "onnxruntime", "onnxruntime-web", "openvino", "rknn", "tensorrt", "webnn",
]  # fmt: skip


def test_the_names_are_those_of_the_files() -> None:
    assert list(profile_names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_names_its_source_and_date(name: str) -> None:
    found = read_supported(name)
    assert found.name
    assert found.source
    assert found.date.startswith("2026-")
    assert found.operators is not None
    assert {"Conv", "MatMul", "Softmax", "Concat"} <= found.operators.keys()


def test_onnx_runtime_has_the_kernels_that_it_lists() -> None:
    listed = read_supported("onnxruntime").operators
    assert listed is not None
    state = onnxruntime.capi.onnxruntime_pybind11_state
    kernels = {each.op_name for each in state.get_all_opkernel_def() if not each.domain}
    missing = [op for op in listed if op not in kernels]
    # What has no kernel is spelled out by ONNX itself, or is a value.
    newest = onnx.defs.onnx_opset_version()
    schemas = [get_schema(op, newest, "") for op in missing if op != "Constant"]
    assert all(each.has_function or each.has_context_dependent_function for each in schemas)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[Any]]],
    outputs: dict[str, tuple[int, list[Any] | None]],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *each) for name, each in inputs.items()],
        [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(proto)
    return proto


def run(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    types = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(float)": np.float32}
    cast = {each.name: feeds[each.name].astype(types[each.type]) for each in session.get_inputs()}
    return session.run(None, cast)


def written_for(
    name: Any, proto: onnx.ModelProto, **options: Any
) -> tuple[onnx.ModelProto, serde.Report]:
    report = serde.Report()
    made = serde.export_model(proto, format="onnx", profile=name, report=report, **options)
    onnx.checker.check_model(made, full_check=True)
    return made, report


TOKENS = model(
    [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("Cast", ["mask"], ["m"], to=FLOAT),
        helper.make_node("Unsqueeze", ["m", "last"], ["m3"]),
        helper.make_node("Mul", ["x", "m3"], ["y"]),
        helper.make_node("ReduceMean", ["y"], ["mean"], axes=[1], keepdims=0),
        helper.make_node("ArgMax", ["mean"], ["best"], axis=-1, keepdims=0),
        helper.make_node("Add", ["ids", "one"], ["next"]),
    ],
    {"ids": (INT64, [2, 7]), "mask": (INT64, [2, 7])},
    {"mean": (FLOAT, [2, 8]), "best": (INT64, [2]), "next": (INT64, [2, 7])},
    {
        "table": np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32),
        "last": np.array([2]),
        "one": np.array(1),
    },
)
FEEDS = {
    "ids": np.random.default_rng(1).integers(0, 50, (2, 7)),
    "mask": np.random.default_rng(2).integers(0, 2, (2, 7)),
}


@pytest.mark.parametrize("name", NAMES)
def test_tokens_give_the_same_in_every_profile(name: str) -> None:
    made, report = written_for(name, TOKENS)
    for ours, theirs in zip(run(made, FEEDS), run(TOKENS, FEEDS), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    assert report.facts["outside"] == {}


def test_indices_and_what_is_computed_of_them_become_int32() -> None:
    made, report = written_for("webnn", TOKENS)
    ends = (*made.graph.input, *made.graph.output)
    found = {each.name: each.type.tensor_type.elem_type for each in ends}
    assert found == {"ids": INT32, "mask": INT32, "mean": FLOAT, "best": INT32, "next": INT32}
    assert "int32 instead of int64: ids, mask, best, next" in report.notes


def elementwise(op: str, *operands: str, **weights: np.ndarray) -> onnx.ModelProto:
    return model(
        [helper.make_node(op, operands, ["y"])], {"x": (INT64, [3])}, {"y": (INT64, [3])}, weights
    )


@pytest.mark.parametrize(
    ("op", "operands", "weights", "fits"),
    [
        # Of an input nothing is known but that it holds 32 bits.
        ("Add", "xx", {}, False),
        ("Mul", "xx", {}, False),
        ("Mul", "xc", {"c": np.array(1)}, True),
        ("Add", "xc", {"c": np.array(1)}, False),
        ("Div", "xc", {"c": np.array(2)}, True),
        ("Min", "xc", {"c": np.array(9)}, True),
        ("Max", "xc", {"c": np.array(2**40)}, False),
        ("Neg", "x", {}, False),
    ],
)
def test_integers_stay_wide_where_their_numbers_may_not_fit(
    op: str, operands: str, weights: dict[str, np.ndarray], fits: bool
) -> None:
    proto = elementwise(op, *operands, **weights)
    made, _report = written_for("webnn", proto)
    assert made.graph.input[0].type.tensor_type.elem_type == INT32
    assert made.graph.output[0].type.tensor_type.elem_type == (INT32 if fits else INT64)
    extreme = {"x": np.array([2**31 - 1, -(2**31) + 1, 7])}
    np.testing.assert_array_equal(run(made, extreme)[0], run(proto, extreme)[0])


FAR = np.array([2**63 - 1])


@pytest.mark.parametrize(
    ("nodes", "feeds", "weights"),
    [
        # An end beyond the axis is the axis.
        ([helper.make_node("Slice", ["data", "x", "far"], ["y"])], [2], {"far": FAR}),
        # What is no place of the depth is none.
        ([helper.make_node("OneHot", ["x", "depth", "values"], ["y"])], [2**32 + 1],
         {"depth": np.array(4), "values": np.float32([0, 1])}),
        ([helper.make_node("Range", ["zero", "x0", "step"], ["z"]),
          helper.make_node("Div", ["z", "step"], ["q"]),
          helper.make_node("Cast", ["q"], ["y"], to=FLOAT)], [2**40],
         {"zero": np.array(0), "step": np.array(2**38)}),
        ([helper.make_node("Pow", ["two", "x"], ["z"]),
          helper.make_node("Cast", ["z"], ["y"], to=FLOAT)], [40], {"two": np.array([2])}),
    ],
    ids=["Slice", "OneHot", "Range", "Pow"],
)  # fmt: skip
def test_what_is_no_index_stays_wide(
    nodes: list[onnx.NodeProto], feeds: list[int], weights: dict[str, np.ndarray]
) -> None:
    """By way of int32 where an input holds it, and of a constant where it does not."""
    large = feeds[0] >= 2**31
    inputs = {"data": (FLOAT, [9])} if "data" in nodes[0].input else {}
    if not large:
        inputs["x"] = (INT64, [1])
    else:
        halves = [helper.make_node("Mul", ["half", "two32"], ["x"])]
        halves += [helper.make_node("Squeeze", ["x"], ["x0"])]
        nodes = [*halves, *nodes]
        inputs["half"] = (INT64, [1])
        weights = {**weights, "two32": np.array(2**20)}
    rank = {"OneHot": 2}.get(nodes[-1].op_type, 1)
    shape = [f"d{axis}" for axis in range(rank)]
    proto = model(nodes, inputs, {"y": (FLOAT, shape)}, weights)
    made, _ = written_for("openvino", proto)
    given = {"data": np.arange(9.0), "x": np.array(feeds), "half": np.array([feeds[0] >> 20])}
    np.testing.assert_array_equal(run(made, given)[0], run(proto, given)[0])


def positions(last: str) -> onnx.ModelProto:
    """Rows of a table by positions that a mask counts; and where these go besides."""
    nodes = [
        helper.make_node("CumSum", ["mask", "axis"], ["counted"]),
        helper.make_node("Mul", ["counted", "mask"], ["kept"]),
        helper.make_node("Sub", ["kept", "one"], ["position"]),
        helper.make_node("Gather", ["table", "position"], ["rows"]),
        helper.make_node(last, ["counted" if last == "Abs" else "rows"], ["y"]),
    ]
    kind = (INT64, [2, 5]) if last == "Abs" else (FLOAT, [2, 5, 8])
    rows = {"rows": (FLOAT, [2, 5, 8])} if last == "Abs" else {}
    table = np.random.default_rng(0).normal(size=(9, 8)).astype(np.float32)
    weights = {"axis": np.array(1), "one": np.array(1), "table": table}
    return model(nodes, {"mask": (INT64, [2, 5])}, {"y": kind, **rows}, weights)


@pytest.mark.parametrize(("last", "wide"), [("Relu", 0), ("Abs", 3)])
def test_what_becomes_an_index_alone_is_computed_in_32_bits(last: str, wide: int) -> None:
    """Sums of a mask are not known, but as a position they are; what is given out may be any."""
    proto = positions(last)
    made, _ = written_for("webnn", proto)
    graph = onnx.shape_inference.infer_shapes(made).graph
    held = {each.name for each in graph.initializer}
    types = {each.name: each.type.tensor_type.elem_type for each in graph.value_info}
    types |= {each.name: each.type.tensor_type.elem_type for each in graph.output}
    found = [name for name, kind in types.items() if kind == INT64 and name not in held]
    assert len(found) >= wide
    assert bool(found) == bool(wide)
    feeds = {"mask": np.array([[1, 1, 1, 0, 1], [0, 1, 0, 1, 1]])}
    for ours, theirs in zip(run(made, feeds), run(proto, feeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_bodies_of_loops_stay_as_they_are() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "x"], ["t"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, []),
            helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", INT64, [3]),
        ],
        [
            helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", INT64, [3]),
        ],
    )
    proto = model(
        [helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)],
        {"x": (INT64, [3])},
        {"y": (INT64, [3])},
        {"n": np.array(40)},
    )
    made, report = written_for("openvino", proto, simplify=False)
    feeds = {"x": np.array([2**31 - 1, 5, -9])}
    np.testing.assert_array_equal(run(made, feeds)[0], run(proto, feeds)[0])
    assert report.facts["profile"] == "OpenVINO"


@pytest.mark.parametrize(
    ("op", "profile"),
    [("Softplus", ["Exp", "Add", "Log", "Max", "Abs", "Neg", "Mul", "Sub", "Relu"]),
     ("LayerNormalization", ["ReduceMean", "Sub", "Mul", "Add", "Sqrt", "Div", "Reshape"])],
)  # fmt: skip
def test_what_a_runtime_lacks_is_said_in_others(
    op: str, profile: list[str], tmp_path: Path
) -> None:
    weights = {"s": np.linspace(0.5, 2, 8, dtype=np.float32)} if "Layer" in op else {}
    proto = model(
        [helper.make_node(op, ["x", *weights], ["y"])],
        {"x": (FLOAT, [2, 8])},
        {"y": (FLOAT, [2, 8])},
        weights,
    )
    path = tmp_path / "chip.json"
    path.write_text(f'{{"operators": {str(profile).replace(chr(39), chr(34))}}}', "utf-8")
    made, report = written_for(str(path), proto)
    assert {node.op_type for node in made.graph.node} <= set(profile)
    assert report.facts["outside"] == {}
    feeds = {"x": np.random.default_rng(0).normal(size=(2, 8)) * 3}
    np.testing.assert_allclose(run(made, feeds)[0], run(proto, feeds)[0], rtol=1e-5, atol=1e-6)


def test_the_version_with_the_fewest_nodes_left_is_taken() -> None:
    proto = model(
        [helper.make_node("Gelu", ["x"], ["y"])],
        {"x": (FLOAT, [2, 8])},
        {"y": (FLOAT, [2, 8])},
        opset=20,
    )
    profile = {"operators": {"Gelu": True}}
    assert read_supported(profile).operators
    made, report = written_for("webnn", proto, opset="auto")
    assert report.facts["outside"] == {}
    assert made.opset_import[0].version == 17


def test_no_version_is_written_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = aiming._write

    def counted(profile: Any, given: Any, version: int, *rest: Any) -> Any:
        written.append(version)
        return write(profile, given, version, *rest)

    monkeypatch.setattr(aiming, "_write", counted)
    node = helper.make_node("Det", ["x"], ["y"])
    proto = model([node], {"x": (FLOAT, [8, 8])}, {"y": (FLOAT, [])})
    _, report = written_for("webnn", proto, opset="auto")
    assert report.facts["outside"] == {"Det": 1}
    assert len(written) > 1
    assert written == sorted(set(written))


def test_lengths_that_are_open_are_told() -> None:
    proto = model(
        [helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, ["N", 8])}, {"y": (FLOAT, ["N", 8])}
    )
    _, report = written_for("webnn", proto)
    assert report.facts["outside"] == {"Relu": 1}
    assert any("the shape of x is not fixed" in note for note in report.notes)
    _, report = written_for("webnn", proto, input_shapes={"x": (2, 8)})
    assert report.facts["outside"] == {}


def test_weights_that_are_too_large_are_told(tmp_path: Path) -> None:
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (FLOAT, [2, 8])},
        {"y": (FLOAT, [2, 64])},
        {"w": np.ones((8, 64), np.float32)},
    )
    path = tmp_path / "chip.toml"
    path.write_text("largest_constant = 1024\n[operators]\nGemm = true\nMatMul = true\n", "utf-8")
    _, report = written_for(str(path), proto)
    assert report.facts["outside"] == {"Gemm": 1}
    assert any("w has 2,048 bytes" in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('operators = ["Rleu"]', "'Rleu' is no operator of ONNX; meant Relu?"),
        ('operators = ["Relu"]\nint64 = 3', "int64: expected true or false, found int 3"),
        ('operators = ["Relu"]\nsets = 3', "sets: expected a table, found int 3"),
        ('dtypes = "floats"\noperators = ["Relu"]', "dtypes: expected a list that is not empty"),
        ('[sets]\nfloats = ["float31"]\n[operators]\nRelu = true',
         "sets: floats: expected the name of a dtype"),
        ('domains = [3]\noperators = ["Relu"]', "domains: expected a text, found int 3"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_profile_is_told(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(OptionError, match=what.replace("?", r"\?")):
        serde.export_model(TOKENS, format="onnx", profile=str(path))


def test_an_unknown_name_tells_those_that_are_known() -> None:
    with pytest.raises(OptionError, match=r"one of directml, onnxruntime, .*webnn"):
        serde.export_model(TOKENS, format="onnx", profile="wbnn")


def test_a_version_that_a_runtime_does_not_read_is_refused() -> None:
    with pytest.raises(OptionError, match="opset 21: RKNN-Toolkit2 reads at most 19"):
        serde.export_model(TOKENS, format="onnx", profile="rknn", opset=21)
