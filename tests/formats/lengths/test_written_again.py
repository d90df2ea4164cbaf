"""Models that random graphs found: engines judge the files, and what is read of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.differential_judges import JUDGES, evaluate

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relay.ir.dims import symbol
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call

Array = np.ndarray
RNG = np.random.default_rng(11)
A, B, C = map(symbol, "abc")
AROUND = relay.const(np.array([[-28, 2048], [1, 93]], np.int32))
NOTHING = relay.const(np.array([[True], [False], [True]]))


def draw(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def suppressed(x: Expr) -> Expr:
    anchors = relay.const(np.ones((1, 4, 3), np.float32))
    return relay.vision.regular_non_max_suppression(
        x, anchors, max_detections_per_class=2, max_detections=5, num_classes=3,
        iou_threshold=1.125, score_threshold=3.0,
    )[0]  # fmt: skip


def reversed_rows(x: Expr) -> Expr:
    lengths = relay.const([3, -1, 7, 0, 2], "int32")
    return relay.reverse_sequence(x, lengths, seq_axis=1, batch_axis=0)


CASES: dict[str, tuple[Callable[..., Expr], list[tuple[tuple[object, ...], Array]], set[str]]] = {
    "a step of an open axis": (
        lambda x: call("serde.dft", x, axis=0),
        [((A, B, 2), draw(4, 3, 2))],
        {"mxnet", "onnx"},
    ),
    "as long as what is open": (
        lambda x, y: relay.broadcast_to_like(y, x),
        [((A, B, C), draw(2, 3, 4)), ((3, 1), draw(3, 1))],
        {"mxnet", "onnx"},
    ),
    "a bias of open length": (
        lambda x, y: relay.nn.bias_add(x, y, axis=-1),
        [((2, 3, 4), draw(2, 3, 4)), ((A,), draw(4))],
        {"mxnet", "onnx", "coreml"},
    ),
    "unknown counts": (suppressed, [((1, 4, 4), draw(1, 4, 4))], {"coreml", "onnx"}),
    "lengths outside the axis": (
        reversed_rows,
        [((5, 4, 2), draw(5, 4, 2))],
        {"coreml", "mlmodel", "mxnet", "onnx", "nnef"},
    ),
    "lengths outside an open axis": (
        reversed_rows,
        [((A, B, 2), draw(5, 4, 2))],
        {"coreml", "mlmodel", "mxnet", "onnx", "tflite"},
    ),
    "a query that attends to nothing": (
        lambda x: call("serde.attention", x, x, x, NOTHING, is_causal=True),
        [((1, 1, 3, 2), draw(1, 1, 3, 2))],
        {"coreml", "mlmodel", "mxnet", "nnef", "onnx", "tflite"},
    ),
    "integers of four bits": (
        lambda x: relay.cast(relay.cast(relay.cast(x, "int4"), "int8"), "float32"),
        [((4,), np.array([1, -2, 7, -8], np.float32))],
        {"tflite"},
    ),
    "no numbers of 16 bits": (
        lambda x: relay.cast(relay.zeros_like(relay.cast(x, "int16")), "float32"),
        [((A, 3), draw(4, 3))],
        {"onnx", "tflite"},
    ),
    "indices that wrap around": (
        lambda x: relay.take(x, AROUND, axis=-1, mode="wrap"),
        [((2, 3), draw(2, 3))],
        {"coreml", "mlmodel", "mxnet", "onnx", "tflite"},
    ),
    "integers made of a fraction": (
        lambda x: relay.cast(relay.full(relay.mean(x), (2, 2), "int32"), "float32"),
        [((4,), draw(4))],
        {"coreml", "mlmodel", "mxnet", "onnx", "tflite"},
    ),
    "nothing turned around": (
        lambda x: relay.reverse(x, axis=0),
        [((2, 0), draw(2, 0))],
        {"mxnet", "onnx", "tflite"},
    ),
    "nothing in another shape": (
        lambda x: relay.reshape(x, (3, 0), allowzero=True),
        [((0, 3), draw(0, 3))],
        {"onnx", "relay", "tflite"},
    ),
}


@pytest.mark.parametrize(
    ("case", "name"), [(case, name) for case, row in CASES.items() for name in sorted(row[2])]
)
def test_a_file_and_what_is_read_of_it(case: str, name: str, tmp_path: Path) -> None:
    build, inputs, _formats = CASES[case]
    params = [
        Var(f"x{i}", relay.TensorType(shape, "float32")) for i, (shape, _) in enumerate(inputs)
    ]
    feeds = {each.name_hint: value for each, (_, value) in zip(params, inputs, strict=True)}
    mod = relay.IRModule.from_expr(relay.Function(params, build(*params)))
    meta = ModelMeta(inputs=tuple(feeds), outputs=("y",))
    model = RelayModel(relay.transform.InferType()(mod), {}, meta)
    (expected,) = evaluate(model, feeds)
    judge = JUDGES[name]
    path = judge.write(model, tmp_path)
    (found,) = judge.run(path, model, list(feeds.values()))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    (read,) = evaluate(judge.read(path, model), feeds)
    np.testing.assert_allclose(read, expected, rtol=1e-4, atol=1e-4)


def test_open_lengths_that_a_file_declares_are_no_batch_of_one(tmp_path: Path) -> None:
    """The 1 in a reshape of a bias is none of the source's lengths."""
    x, bias = relay.var("x", shape=(2, 3, 4)), relay.var("b", shape=(A,))
    mod = relay.IRModule.from_expr(relay.Function([x, bias], relay.nn.bias_add(x, bias, axis=-1)))
    meta = ModelMeta(inputs=("x", "b"), outputs=("y",))
    model = RelayModel(relay.transform.InferType()(mod), {}, meta)
    path = JUDGES["mxnet"].write(model, tmp_path)
    again = JUDGES["mxnet"].read(path, model)
    assert again.meta.opened is None
    assert "newshape=[1, 1, -1]" in again.mod.astext()


@pytest.mark.parametrize("name", ["coreml", "mlmodel"])
def test_an_input_of_six_axes_that_is_the_output_is_refused(name: str, tmp_path: Path) -> None:
    x = relay.var("x", shape=(2, 1, 1, 1, 1, 3))
    mod = relay.IRModule.from_expr(relay.Function([x], x))
    model = RelayModel(
        relay.transform.InferType()(mod), {}, ModelMeta(inputs=("x",), outputs=("y",))
    )
    with pytest.raises(UnsupportedModelError, match="6 axes; Core ML has 5 at most"):
        JUDGES[name].write(model, tmp_path)
