"""Which nodes stay in float32 where a model in float16 is to be as near as is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.runtime import run_onnx

import serde
from serde.command.cli import main
from serde.errors import CheckError, OptionError

pytest.importorskip("onnxruntime")

WIDTH = 16
LEAST = np.finfo(np.float32).min


def save_net(path: Path, nodes: list[tuple[str, str, str]], rows: Any = "N", **more: Any) -> Path:
    """A net of nodes, named by what they yield, with weights w0, w1 and w2."""
    rng = np.random.default_rng(0)
    values = {f"w{i}": rng.normal(0, 0.25, (WIDTH, WIDTH)) for i in range(3)} | more
    graph = helper.make_graph(
        [helper.make_node(op, given.split(), [out], out) for op, given, out in nodes],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, "M"])],
        [numpy_helper.from_array(np.asarray(v, "f4"), name) for name, v in values.items()],
    )
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


PLANTED = [
    ("MatMul", "x w0", "first"), ("Relu", "first", "relu"), ("Mul", "relu big", "blown"),
    ("Div", "blown big", "back"), ("MatMul", "back w1", "second"), ("Tanh", "second", "tanh"),
    ("MatMul", "tanh w2", "y"),
]  # fmt: skip


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A net of which one value leaves the range of float16, between two nodes."""
    return save_net(tmp_path / "planted.onnx", PLANTED, big=6e4)


def draw(count: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(0, 1, (6, WIDTH)).astype("f4") for _ in range(count)]


def cosine(source: Path, target: Path, strictly: bool = False) -> float:
    """The least cosine of a sample, by ONNX Runtime or by what rounds after every node."""
    found = []
    for x in draw():
        x = x.astype(np.float16)
        wanted = run_onnx(source, {"x": x.astype("f4")})[1][0].ravel().astype("f8")
        with np.errstate(all="ignore"):
            run = ReferenceEvaluator(str(target)).run(None, {"x": x})
        y = (run if strictly else run_onnx(target, {"x": x})[1])[0].ravel().astype("f8")
        found.append(float(wanted @ y / np.sqrt((wanted @ wanted) * (y @ y))))
    return min(found)


def find(source: Path, target: Path, **options: Any) -> dict[str, Any]:
    report = serde.convert(source, target, float16="auto", check_data=draw(), **options)
    return report.facts


def test_nodes_around_an_overflow_stay_and_no_others(planted: Path, tmp_path: Path) -> None:
    facts = find(planted, tmp_path / "half.onnx")
    assert facts["op_block_list"] == "back,blown"
    assert facts["float16_runs"] == 1
    assert cosine(planted, tmp_path / "half.onnx") > 0.999
    assert cosine(planted, tmp_path / "half.onnx", strictly=True) > 0.999


def test_a_name_that_no_list_can_hold_is_told_by_its_operator(tmp_path: Path) -> None:
    nodes = [
        (op, given.replace("blown", "a,b"), out.replace("blown", "a,b"))
        for op, given, out in PLANTED
    ]
    source = save_net(tmp_path / "net.onnx", nodes, big=6e4)
    assert find(source, tmp_path / "half.onnx")["op_block_list"] == "back,multiply"


def test_the_cosine_told_is_that_of_onnx_runtime(planted: Path, tmp_path: Path) -> None:
    told = find(planted, tmp_path / "half.onnx")["float16_cosine"]
    assert told == pytest.approx(cosine(planted, tmp_path / "half.onnx"), abs=1e-8)


CANCELLING = [
    ("MatMul", "x w0", "first"), ("Add", "first far", "added"), ("Sub", "added far", "taken"),
    ("MatMul", "taken w1", "second"), ("Tanh", "second", "y"),
]  # fmt: skip


@pytest.mark.parametrize(("least", "expected"), [(0.9999, "added,taken"), (0.95, "")])
def test_no_more_stays_than_is_asked(tmp_path: Path, least: float, expected: str) -> None:
    """Numbers around 800 are rounded to halves, and what is left of them is around 1."""
    source = save_net(tmp_path / "net.onnx", CANCELLING, far=800.0)
    facts = find(source, tmp_path / "half.onnx", min_cosine=least)
    assert facts["op_block_list"] == expected
    found = cosine(source, tmp_path / "half.onnx", strictly=True)
    assert found > least
    assert (found > 0.9999) is bool(expected)


def test_the_list_gives_the_same_bytes(
    planted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, again = tmp_path / "a" / "half.onnx", tmp_path / "b" / "half.onnx"
    found.parent.mkdir(), again.parent.mkdir()
    assert main(["convert", "--float16", "auto", str(planted), str(found), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    names = report["facts"]["op_block_list"]
    assert any(f"--op-block-list {names};" in note for note in report["notes"])
    args = ["convert", str(planted), str(again), "--float16", "--op-block-list", names, "-q"]
    assert main(args) == 0
    assert again.read_bytes() == found.read_bytes()


def test_what_is_listed_stays_besides(planted: Path, tmp_path: Path) -> None:
    facts = find(planted, tmp_path / "half.onnx", op_block_list={"tanh", "nn.relu"})
    assert facts["op_block_list"] == "back,blown,nn.relu,tanh"


def test_inputs_may_keep_their_types(planted: Path, tmp_path: Path) -> None:
    target = tmp_path / "half.onnx"
    assert find(planted, target, keep_io_types=True)["op_block_list"] == "back,blown"
    assert onnx.load(target).graph.input[0].type.tensor_type.elem_type == TensorProto.FLOAT


def test_a_native_object_is_searched_likewise(planted: Path) -> None:
    report = serde.Report()
    proto = serde.export_model(planted, format="onnx", float16="auto", report=report)
    assert report.facts["op_block_list"] == "back,blown"
    assert TensorProto.FLOAT16 in {each.data_type for each in proto.graph.initializer}


def test_other_targets_are_run_by_their_own(planted: Path, tmp_path: Path) -> None:
    assert find(planted, tmp_path / "half.relay")["op_block_list"] == "back,blown"


def test_a_cosine_out_of_reach_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output itself is beyond float16, which no node in float32 mends."""
    source = save_net(tmp_path / "net.onnx", [("Mul", "x big", "y")], big=6e5)
    target = tmp_path / "half.onnx"
    target.write_bytes(b"old")
    assert main(["convert", str(source), str(target), "--float16", "auto"]) == 4
    assert "float16: cosine 0 with all nodes in float32, expected 0.999" in capsys.readouterr().err
    assert target.read_bytes() == b"old"
    assert {each.name for each in tmp_path.iterdir()} == {"net.onnx", "half.onnx"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_cosine": 0.9}, "^min_cosine: of float16='auto', or of what"),
        ({"min_cosine": 0.9, "float16": True}, "^min_cosine: of float16='auto', or of what"),
        ({"min_cosine": 1.5, "float16": "auto"}, "^min_cosine: expected a number from 0 to 1"),
        ({"float16": "auto", "int8": "dynamic"}, "^float16='auto' and int8: one of them"),
        ({"fp16": "auto", "int4": True}, "^float16='auto' and int4: one of them"),
        ({"float16": "some"}, "^float16: expected 'auto' or True or False, found 'some'"),
    ],
)
def test_options_that_do_not_fit(
    planted: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        serde.convert(planted, tmp_path / "half.onnx", **options)
    assert [each.name for each in tmp_path.iterdir()] == ["planted.onnx"]


def test_a_target_that_is_float16_in_any_case_has_nothing_to_choose(
    planted: Path, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match="the target's own options have it compute in float16"):
        serde.convert(planted, tmp_path / "Net.mlpackage", float16="auto")


def test_what_runs_nothing_cannot_search(planted: Path) -> None:
    with pytest.raises(OptionError, match="float16='auto': convert and export_model have it"):
        serde.from_relay(serde.to_relay(planted), format="onnx", float16="auto")


@pytest.mark.parametrize("flags", [["--min-cosine", "0.9"], ["--float16=none"]])
def test_flags_that_do_not_fit(planted: Path, tmp_path: Path, flags: list[str]) -> None:
    assert main(["convert", str(planted), str(tmp_path / "half.onnx"), *flags]) == 2


def attention(path: Path, *masking: tuple[str, str, str], **more: Any) -> Path:
    """An attention over the rows of x, with a mask between `scores` and `seen`."""
    nodes = [
        ("MatMul", "x w0", "query"), ("Transpose", "x", "keys"), ("MatMul", "query keys", "scores"),
        *masking, ("Softmax", "seen", "weights"), ("MatMul", "weights x", "y"),
    ]  # fmt: skip
    return save_net(path, nodes, 6, **more)


CAUSAL = np.tri(6)
SHOWN = np.where(CAUSAL, 1.0, 0.0)
SHOWN[3] = 0.0  # A row that is hidden wholly.
MASKS = {
    "stored": ([("Add", "scores m", "seen")], {"m": np.where(CAUSAL, 0.0, LEAST)}),
    "stored -1e9": ([("Add", "scores m", "seen")], {"m": np.where(CAUSAL, 0.5, -1e9)}),
    "chosen": (
        [("Cast", "m", "shown"), ("Where", "shown scores hidden", "seen")],
        {"m": SHOWN, "hidden": -131008.0},
    ),
    "added": (
        [
            ("Mul", "scores zero", "none"), ("Add", "none m", "level"), ("Cast", "level", "shown"),
            ("Where", "shown bias hidden", "mask"), ("Add", "mask scores", "seen"),
        ],
        {"m": SHOWN, "bias": 0.25, "hidden": LEAST, "zero": 0.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("kept", [(), ("seen",), ("seen", "weights"), ("nn.softmax",)])
def test_masks_saturate(tmp_path: Path, name: str, kept: tuple[str, ...]) -> None:
    """By ONNX Runtime in float32 and what rounds after every node; hidden rows are uniform."""
    masking, values = MASKS[name]
    source, target = attention(tmp_path / "net.onnx", *masking, **values), tmp_path / "half.onnx"
    proto = onnx.load(source)
    for node in proto.graph.node:
        if node.op_type == "Cast":
            node.attribute.append(helper.make_attribute("to", TensorProto.BOOL))
    onnx.save(proto, source)
    serde.convert(source, target, float16=True, op_block_list=kept)
    assert cosine(source, target) > 0.9999
    assert cosine(source, target, strictly=True) > 0.9999
    half = ReferenceEvaluator(str(target))
    x = draw()[0].astype(np.float16)
    wanted = run_onnx(source, {"x": x.astype("f4")})[1][0]
    np.testing.assert_allclose(half.run(None, {"x": x})[0], wanted, atol=4e-3)


REFUSED = {
    "a row is hidden": ([("Add", "scores m", "seen")], {"m": np.where(SHOWN, 0.0, LEAST)}),
    "a bias is no mask": ([("Add", "scores m", "seen")], {"m": np.where(CAUSAL, 0.0, -7e4)}),
    "more than a softmax reads it": (
        [("Add", "scores m", "masked"), ("Tanh", "masked", "t"), ("Add", "masked t", "seen")],
        {"m": np.where(CAUSAL, 0.0, LEAST)},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_masks_are_refused(tmp_path: Path, name: str) -> None:
    masking, values = REFUSED[name]
    source = attention(tmp_path / "net.onnx", *masking, **values)
    with pytest.raises(serde.UnsupportedModelError, match="beyond the range of float16"):
        serde.convert(source, tmp_path / "half.onnx", float16=True)


def test_other_masks_stay_float32(tmp_path: Path) -> None:
    masking, values = REFUSED["a row is hidden"]
    source = attention(tmp_path / "net.onnx", *masking, **values)
    names = find(source, tmp_path / "half.onnx")["op_block_list"]
    assert names == "seen,weights"
    assert cosine(source, tmp_path / "half.onnx", strictly=True) > 0.999


def test_int8_leaves_what_costs_most(tmp_path: Path) -> None:
    """One layer's data have a few numbers that are far larger than the rest.

    With weights of 7 bits, no processor's sums of products saturate.
    """
    pytest.importorskip("onnxruntime.quantization")
    spread = np.ones(WIDTH)
    spread[0] = 3e3
    nodes = [
        ("Mul", "x spread", "wide"), ("MatMul", "wide v", "second"), ("MatMul", "second w2", "y"),
    ]  # fmt: skip
    narrow = np.random.default_rng(2).normal(0, 0.25, (WIDTH, WIDTH)) / spread[:, None]
    source = save_net(tmp_path / "net.onnx", nodes, spread=spread, v=narrow)
    target, report = tmp_path / "int8.onnx", serde.Report()
    options: dict[str, Any] = {"int8": "dynamic", "check_data": draw(), "reduce_range": True}
    before = serde.convert(source, target, **options).accuracy[0].after.cosine
    serde.convert(source, target, **options, min_cosine=0.999, report=report)
    assert before < 0.999
    assert report.facts["int8_exclude"] == "second"
    pairs = [[run_onnx(p, {"x": x})[1][0] for x in draw()] for p in (source, target)]
    a, b = (np.concatenate(each).ravel().astype("f8") for each in pairs)
    assert float(a @ b / np.sqrt((a @ a) * (b @ b))) > 0.999
    kept = [each.op_type for each in onnx.load(target).graph.node]
    assert kept.count("MatMul") == kept.count("MatMulInteger") == 1


def test_int8_that_needs_all_in_floats_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime.quantization")
    source = save_net(tmp_path / "net.onnx", [("MatMul", "x w0", "y")])
    with pytest.raises(CheckError, match="below the least"):
        serde.convert(source, tmp_path / "int8.onnx", int8="dynamic", min_cosine=1.0)
    assert [each.name for each in tmp_path.iterdir()] == ["net.onnx"]
