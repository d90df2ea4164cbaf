"""Conditionals of ONNX whose branches differ in rank, as PyTorch writes ``squeeze(dim)``."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser
from support.onnx_suite import interpret

import serde
import serde.relay as relay
from serde.core.report import Report
from serde.errors import UnsupportedModelError

HEAD = '<ir_version: 8, opset_import: ["" : 16]>'

SQUEEZE = """
    one = Constant <value = int64[1] {1}> ()
    shape = Shape (x)
    length = Gather <axis = 0> (shape, one)
    is_one = Equal (length, one)
    squeezed = If (is_one) <
        then_branch = then_graph () => (float[N, 4] a) {
            axes = Constant <value = int64[1] {1}> ()
            a = Squeeze (x, axes)
        },
        else_branch = else_graph () => (float[N, C, 4] b) { b = Identity (x) }>
"""
"""What PyTorch 2.13 writes for ``x.squeeze(1)`` (dynamo=False) where axis 1 is open."""

WEIGHTS = "<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}>"


def model_of(rest: str, output: str, weights: str = "", body: str = SQUEEZE) -> onnx.ModelProto:
    text = f"{HEAD} g (float[N, C, 4] x) => ({output}) {weights} {{ {body} {rest} }}"
    return parser.parse_model(text)


def reference(proto: onnx.ModelProto, **inputs: np.ndarray) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, inputs)


def assert_kept(proto: onnx.ModelProto, *shapes: tuple[int, ...], **options: Any) -> Report:
    """Compare the Relay model and the model that is written with the source."""
    report = Report()
    model = serde.to_relay(proto, report=report, **options)
    written = serde.from_relay(model, format="onnx")
    for shape in shapes:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        expected = reference(proto, x=x)
        for found in (interpret(model, {"x": x}), reference(written, x=x)):
            for value, wanted in zip(found, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-5)
    return report


def operators(model: Any) -> set[str]:
    return {node.op_type for node in serde.from_relay(model, format="onnx").graph.node}


def test_a_node_that_onnx_refuses_for_one_branch_decides() -> None:
    proto = model_of("y = Gemm (squeezed, w)", "float[N, 2] y", WEIGHTS)
    report = assert_kept(proto, (3, 1, 4))
    assert report.notes == [
        "squeezed: only its then branch is read, since with else y (Gemm) is not sound"
    ]
    assert operators(serde.to_relay(proto)) == {"Squeeze", "Gemm"}


def test_a_decision_tells_the_length_of_an_input() -> None:
    model = serde.to_relay(model_of("y = Gemm (squeezed, w)", "float[N, 2] y", WEIGHTS))
    assert model.main.params[0].type == relay.TensorType(("N", 1, 4), "float32")


def test_what_decides_may_come_late() -> None:
    rest = "z = Relu (squeezed) t = Transpose <perm = [1, 0]> (z) y = MatMul (t, z)"
    assert_kept(model_of(rest, "float y"), (3, 1, 4))


def test_the_rank_of_a_declared_output_decides() -> None:
    proto = model_of("y = Mul (squeezed, squeezed)", "float[N, 4] y")
    report = assert_kept(proto, (3, 1, 4))
    assert report.notes == [
        "squeezed: only its then branch is read, since with else output y has not the 2 axes "
        "that it declares"
    ]


def test_branches_that_end_alike_stay_a_conditional() -> None:
    rest = "flat = Constant <value = int64[1] {-1}> () r = Reshape (squeezed, flat) y = Exp (r)"
    proto = model_of(rest, "float[M] y")
    assert_kept(proto, (3, 1, 4), (3, 2, 4))
    assert "If" in operators(serde.to_relay(proto))


def test_outputs_of_one_condition_are_one_conditional() -> None:
    rest = """flat = Constant <value = int64[1] {-1}> ()
        y = Reshape (squeezed, flat) squared = Mul (squeezed, squeezed) z = Reshape (squared, flat)
        """
    proto = model_of(rest, "float[M] y, float[M] z")
    assert_kept(proto, (3, 1, 4), (3, 2, 4))
    nodes = serde.from_relay(serde.to_relay(proto), format="onnx").graph.node
    assert [node.op_type for node in nodes].count("If") == 1


def undeclared(proto: onnx.ModelProto) -> onnx.ModelProto:
    for each in proto.graph.output:
        each.type.tensor_type.ClearField("shape")
    return proto


def test_what_nothing_decides_is_refused_with_a_hint() -> None:
    proto = undeclared(model_of("y = Relu (squeezed)", "float[N, 4] y"))
    with pytest.raises(UnsupportedModelError, match=r"nothing tells.*give input_shapes"):
        serde.to_relay(proto)


@pytest.mark.parametrize("length", [1, 2])
def test_given_shapes_decide(length: int) -> None:
    proto = undeclared(model_of("y = Relu (squeezed)", "float[N, 4] y"))
    report = assert_kept(proto, (3, length, 4), input_shapes={"x": ("N", length, 4)})
    assert report.notes == []


def test_a_branch_that_is_not_taken_may_hold_anything() -> None:
    body = """one = Constant <value = int64[1] {1}> () shape = Shape (x)
        length = Gather <axis = 0> (shape, one) is_one = Equal (length, one)
        y = If (is_one) <
            then_branch = then_graph () => (float[N, C, 4] a) { a = Relu (x) },
            else_branch = else_graph () => (float[N, C, 4] b) { b = test.unknown.Missing (x) }>"""
    proto = model_of("", "float[N, C, 4] y", body=body)
    proto.opset_import.add(domain="test.unknown", version=1)
    with pytest.raises(UnsupportedModelError, match="Missing"):
        serde.to_relay(proto)
    model = serde.to_relay(proto, input_shapes={"x": ("N", 1, 4)})
    assert operators(model) == {"Relu"}


MISSING = f"""{SQUEEZE} two = Constant <value = int64 {{2}}> () dims = Shape (squeezed)
    rank = Size (dims) is_matrix = Equal (rank, two)
    y = If (is_matrix) <
        then_branch = then_2 () => (float c) {{ c = Relu (squeezed) }},
        else_branch = else_2 () => (float d) {{ d = test.unknown.Missing (squeezed) }}>"""


def test_a_gap_in_one_of_the_cases_counts() -> None:
    proto = model_of("", "float[N, 4] y", body=MISSING)
    proto.opset_import.add(domain="test.unknown", version=1)
    with pytest.raises(UnsupportedModelError, match="Missing") as refusal:
        serde.to_relay(proto)
    assert len(refusal.value.report.issues) == 1


def test_a_gap_in_the_case_that_falls_away_does_not_count() -> None:
    proto = model_of("z = Gemm (squeezed, w)", "float[N, 4] y, float[N, 2] z", WEIGHTS, MISSING)
    proto.opset_import.add(domain="test.unknown", version=1)
    assert operators(serde.to_relay(proto)) == {"Squeeze", "Relu", "Gemm"}


def test_both_branches_may_be_unsound() -> None:
    proto = model_of("y = Conv (squeezed, w)", "float y", "<float[2, 2, 1, 1] w = {1, 2, 3, 4}>")
    with pytest.raises(UnsupportedModelError, match="ONNX refuses it"):
        serde.to_relay(proto)


def test_what_only_one_branch_of_another_condition_decides_is_refused() -> None:
    """Where the sum is negative, the source runs with any length."""
    body = f"""{SQUEEZE} zero = Constant <value = float {{0}}> () total = ReduceSum (x)
        sum = Squeeze (total) positive = Greater (sum, zero)
        flat = Constant <value = int64[1] {{-1}}> ()
        y = If (positive) <
            then_branch = p_graph () => (float[M] c) {{
                p = Gemm (squeezed, w) c = Reshape (p, flat)
            }},
            else_branch = n_graph () => (float[M] d) {{ d = Reshape (squeezed, flat) }}>"""
    proto = model_of("", "float[M] y", WEIGHTS, body)
    with pytest.raises(UnsupportedModelError, match=r"rank 3 in node Gemm.*give input_shapes"):
        serde.to_relay(proto)
    assert_kept(proto, (3, 1, 4), input_shapes={"x": ("N", 1, 4)})


class TestSqueezeWithoutAxes:
    """An open length may be 1, and its axis goes then."""

    def test_what_follows_leaves_two_ways(self) -> None:
        proto = model_of("s = Squeeze (x) y = Gemm (s, w)", "float[C, 2] y", WEIGHTS, "")
        assert_kept(proto, (1, 3, 4), (3, 1, 4))

    def test_what_nothing_decides_is_refused(self) -> None:
        proto = undeclared(model_of("y = Squeeze (x)", "float[N, 4] y", "", ""))
        with pytest.raises(UnsupportedModelError, match=r"nothing tells.*give input_shapes"):
            serde.to_relay(proto)

    def test_one_open_length(self) -> None:
        proto = model_of("s = Squeeze (x) y = Gemm (s, w)", "float y", WEIGHTS, "")
        assert_kept(proto, (1, 3, 4), input_shapes={"x": (1, "C", 4)})

    @pytest.mark.parametrize("shape", [(3, 5, 4), (3, 1, 4), (1, 1, 4), (1, 5, 4)])
    def test_all_results_are_told_apart(self, shape: tuple[int, ...]) -> None:
        rest = """s = Squeeze (x) n = Shape (s) z = Size (n)
            t = ReduceSum <keepdims = 0> (s) y = Mul (t, t)"""
        proto = model_of(rest, "float y, int64 z", "", "")
        model = serde.to_relay(proto)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        found, rank = interpret(model, {"x": x})
        expected, wanted = reference(proto, x=x)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert rank == wanted == sum(each != 1 for each in shape)

    def test_too_many_are_refused(self) -> None:
        axes = ", ".join("ABCDEFG")
        proto = parser.parse_model(
            f"{HEAD} g (float[{axes}] x) => (float y) {{ s = Squeeze (x) y = ReduceSum (s) }}"
        )
        with pytest.raises(UnsupportedModelError, match="7 open lengths"):
            serde.to_relay(proto)


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("c = Equal (n, n)", "Relu"),
        ("m = Add (n, one) c = Equal (m, zero)", "Exp"),
        ("c = Less (n, zero)", "Exp"),
        ("c = GreaterOrEqual (n, zero)", "Relu"),
        ("d = Less (n, zero) c = Not (d)", "Relu"),
        ("d = Less (n, zero) e = Equal (n, n) c = And (d, e)", "Exp"),
        ("d = Less (n, zero) e = Equal (n, n) c = Or (d, e)", "Relu"),
        ("d = Less (n, zero) e = Equal (n, n) c = Xor (d, e)", "Relu"),
        ("m = Add (n, one) c = Cast <to = 9> (m)", "Relu"),
        ("m = Add (n, one) c = Greater (m, n)", "Relu"),
    ],
)
def test_shapes_over_symbols_decide(condition: str, taken: str) -> None:
    text = f"""{HEAD} g (float[N, 4] x) => (float[N, 4] y) {{
        zero = Constant <value = int64 {{0}}> () one = Constant <value = int64 {{1}}> ()
        shape = Shape (x) n = Gather (shape, zero) {condition}
        y = If (c) <then_branch = a () => (float[N, 4] p) {{ p = Relu (x) }},
                    else_branch = b () => (float[N, 4] q) {{ q = Exp (x) }}> }}"""
    assert operators(serde.to_relay(parser.parse_model(text))) == {taken}


@pytest.mark.parametrize(
    "condition",
    [
        "c = Equal (n, one)",
        "c = Greater (n, zero)",
        "c = Cast <to = 9> (n)",
        "m = Sub (n, two) k = Div (m, two) c = Less (k, zero)",
    ],
)
def test_a_length_that_may_be_either_does_not_decide(condition: str) -> None:
    text = f"""{HEAD} g (float[N, 4] x) => (float[N, 4] y) {{
        zero = Constant <value = int64 {{0}}> () one = Constant <value = int64 {{1}}> ()
        two = Constant <value = int64 {{2}}> ()
        shape = Shape (x) n = Gather (shape, zero) {condition}
        y = If (c) <then_branch = a () => (float[N, 4] p) {{ p = Relu (x) }},
                    else_branch = b () => (float[N, 4] q) {{ q = Exp (x) }}> }}"""
    assert "If" in operators(serde.to_relay(parser.parse_model(text)))
