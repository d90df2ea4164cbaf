"""TfIdfVectorizer through Relay and back, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.onnx_suite import interpret
from support.runtime import open_session

import serde
from serde.errors import LimitError, UnsupportedModelError

ROWS = np.array([[1, 2, 3, 1, 2, 5], [2, 1, 5, 5, 5, 1], [9, 9, 9, 9, 9, 9]], np.int64)
POOL: dict[str, Any] = {
    "min_gram_length": 1,
    "max_gram_length": 3,
    "max_skip_count": 0,
    "ngram_counts": [0, 3, 7],
    "ngram_indexes": [4, 0, 1, 2, 3, 5],
    "pool_int64s": [1, 2, 5, 1, 2, 5, 5, 1, 2, 5],
}
WEIGHTS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]


def model_of(x: np.ndarray, shape: Any = None, **attrs: Any) -> onnx.ModelProto:
    node = helper.make_node("TfIdfVectorizer", ["x"], ["y"], **{**POOL, **attrs})
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = helper.make_tensor_value_info("x", element, x.shape if shape is None else shape)
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(x: np.ndarray, shape: Any = None, **attrs: Any) -> None:
    model = model_of(x, shape, **attrs)
    (expected,) = open_session(model.SerializeToString()).run(None, {"x": x})
    relay = serde.to_relay(model)
    again = serde.from_relay(relay, format="onnx", opset=17)
    (found,) = interpret(relay, {"x": x})
    (second,) = open_session(again.SerializeToString()).run(None, {"x": x})
    for each in (found, second):
        assert (each.dtype, each.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(each, expected, 1e-6)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("skips", [0, 1, 3])
def test_modes_weights_and_skips(mode: str, weights: list[float] | None, skips: int) -> None:
    given = {} if weights is None else {"weights": weights}
    check(ROWS, mode=mode, max_skip_count=skips, **given)


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 2), (2, 3), (3, 3)])
@pytest.mark.parametrize("skips", [0, 2])
def test_lengths_that_are_counted(low: int, high: int, skips: int) -> None:
    check(ROWS, mode="TF", min_gram_length=low, max_gram_length=high, max_skip_count=skips)


@pytest.mark.parametrize("indices", [[0, 1, 2, 0, 1, 2], [9, 3, 0, 3, 3, 9]])
def test_n_grams_that_share_entries(indices: list[int]) -> None:
    check(ROWS, mode="TF", ngram_indexes=indices)
    check(ROWS, mode="IDF", ngram_indexes=indices)


def test_a_vector_of_int32() -> None:
    check(ROWS[0].astype(np.int32), mode="TF")


@pytest.mark.parametrize("length", [1, 2, 6])
def test_rows_of_an_open_length(length: int) -> None:
    check(ROWS[:, :length], ["N", "L"], mode="TF", max_skip_count=1)


@pytest.mark.parametrize(
    ("attrs", "match"),
    [
        ({"pool_int64s": [1, 1, 5, 1, 2, 5, 5, 1, 2, 5]}, "given twice"),
        ({"ngram_counts": [0, 2, 7]}, "length 2 from 2 to 7"),
        ({"ngram_indexes": [0, 1]}, "2 indices"),
        ({"mode": "BM25"}, "mode 'BM25'"),
        ({"ngram_indexes": [0, 1, 2, 3, 4, -1]}, "entry -1"),
        ({"max_skip_count": -1}, "up to -1 items"),
    ],
)
def test_pools_that_are_not_sound(attrs: dict[str, Any], match: str) -> None:
    with pytest.raises(UnsupportedModelError, match=match):
        serde.to_relay(model_of(ROWS, **{"mode": "TF", **attrs}))


@pytest.mark.parametrize(
    "attrs", [{"ngram_indexes": [0, 1, 2, 3, 4, 2**62]}, {"max_skip_count": 2**62}]
)
def test_pools_that_take_too_much(attrs: dict[str, Any]) -> None:
    with pytest.raises(LimitError, match="--limit"):
        serde.to_relay(model_of(ROWS, **{"mode": "TF", **attrs}))
