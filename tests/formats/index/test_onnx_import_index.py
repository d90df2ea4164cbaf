"""What ONNX places by index and orders, as Relay: what onnx's backend suite does not cover."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator
from support.onnx_suite import interpret

import serde
from serde.errors import UnsupportedModelError


def model_of(text: str, opset: int) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


def check(proto: onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    """Compare import, and import and export, with the reference of onnx; return its results."""
    expected = ReferenceEvaluator(proto).run(None, inputs)
    model = serde.to_relay(proto)
    again = serde.from_relay(model, format="onnx", opset=max(13, proto.opset_import[0].version))
    for found in (interpret(model, inputs), ReferenceEvaluator(again).run(None, inputs)):
        for wanted, value in zip(expected, found, strict=True):
            np.testing.assert_array_equal(value, wanted)
            assert value.dtype == wanted.dtype
    return expected


X = np.array([[3, 1, 2, 5], [9, 7, 8, 6]], np.float32)


@pytest.mark.parametrize("k", [0, 1, 3, 4])
@pytest.mark.parametrize("largest", [0, 1])
def test_a_computed_number_of_greatest(k: int, largest: int) -> None:
    proto = model_of(
        f"g (float[N,4] x, int64[1] k) => (float[N,M] v, int64[N,M] i) "
        f"{{ v, i = TopK<axis=-1, largest={largest}>(x, k) }}",
        11,
    )
    order = np.argsort(-X if largest else X, axis=1)[:, :k]
    model = serde.to_relay(proto)
    values, places = interpret(model, {"x": X, "k": np.array([k])})
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, 1))
    assert (values.shape, places.dtype) == ((2, k), np.dtype("int64"))


@pytest.mark.parametrize("k", [0, 2])
def test_the_number_of_greatest_was_an_attribute(k: int) -> None:
    text = f"g (float[2,4] x) => (float[2,{k}] v, int64[2,{k}] i) {{ v, i = TopK<k={k}>(x) }}"
    values, places = interpret(serde.to_relay(model_of(text, 9)), {"x": X})
    order = np.argsort(-X, axis=1)[:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(X, order, 1))


def test_more_than_there_are() -> None:
    text = "g (float[2,4] x) => (float[2,5] v, int64[2,5] i) { v, i = TopK<k=5>(x) }"
    with pytest.raises(UnsupportedModelError, match="k 5 is more than the length 4"):
        serde.to_relay(model_of(text, 9))


@pytest.mark.parametrize("place", ["inside", "input"])
def test_negative_indices_of_tuples(place: str) -> None:
    indices = np.array([[-1, 0], [0, -3]])
    head = "i = Constant<value = int64[2,2] {-1, 0, 0, -3}>()" if place == "inside" else ""
    given = "" if place == "inside" else ", int64[2,2] i"
    proto = model_of(
        f"g (float[2,4] x, float[2] u{given}) => (float[2,4] y) "
        f"{{ {head} y = ScatterND(x, i, u) }}",
        13,
    )
    u = np.array([10, 20], np.float32)
    inputs = {"x": X, "u": u} | ({} if place == "inside" else {"i": indices})
    (found,) = check(proto, **inputs)
    np.testing.assert_array_equal(found, [[3, 20, 2, 5], [10, 7, 8, 6]])


def test_an_index_outside() -> None:
    text = (
        "g (float[4] x, float[1] u) => (float[4] y) "
        "{ i = Constant<value = int64[1,1] {4}>() y = ScatterND(x, i, u) }"
    )
    with pytest.raises(UnsupportedModelError, match=r"an index outside a shape of \[4\]"):
        serde.to_relay(model_of(text, 13))


@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_reductions_that_came_later(op: str) -> None:
    text = (
        "g (float[4] x, int64[1] i, float[1] u) => (float[4] y) "
        f'{{ y = {op}<reduction="max">(x, i, u) }}'
    )
    with pytest.raises(UnsupportedModelError, match="reduction='max' before version 18"):
        serde.to_relay(model_of(text, 16))


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("given", [False, True])
def test_a_cache_of_symbolic_lengths(mode: str, given: bool) -> None:
    extra, argument = (", int64[B] w", ", w") if given else ("", "")
    proto = model_of(
        f"g (float[B,H,S,D] p, float[B,H,L,D] u{extra}) => (float[B,H,S,D] y) "
        f'{{ y = TensorScatter<mode="{mode}">(p, u{argument}) }}',
        24,
    )
    past = np.zeros((2, 3, 5, 2), np.float32)
    update = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2) + 1
    first = np.array([1, 4 if mode == "circular" else 3]) if given else np.zeros(2, int)
    wanted = past.copy()
    for sample in range(2):
        for row in range(2):
            wanted[sample, :, (first[sample] + row) % 5] = update[sample, :, row]
    inputs = {"p": past, "u": update} | ({"w": first} if given else {})
    np.testing.assert_array_equal(interpret(serde.to_relay(proto), inputs)[0], wanted)
