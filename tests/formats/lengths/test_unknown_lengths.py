"""Lengths of which nothing is known: two of them are not taken for one and the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.differential_judges import JUDGES

import serde.relay as relay
from serde.core.optional import is_installed
from serde.errors import UnsupportedModelError
from serde.relay.ir.expr import Expr, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call
from serde.relay.transform import InferType

RANDOM = np.random.default_rng(5)


def unknown(name: str, value: np.ndarray) -> Var:
    """Return a variable for an array, of which the rank alone is told."""
    return relay.var(name, shape=[relay.Any()] * value.ndim, dtype=value.dtype.name)


def run(form: str, body: Expr, feeds: dict[Var, np.ndarray], folder: Path) -> np.ndarray:
    """Return what a graph gives that is written in a format."""
    judge = JUDGES[form]
    if not is_installed(judge.package):
        pytest.skip(f"{judge.package} is not installed")
    mod = InferType()(relay.IRModule.from_expr(relay.Function(list(feeds), body)))
    model = RelayModel(mod, {}, ModelMeta(tuple(each.name_hint for each in feeds), ("y",)))
    (found,) = judge.run(judge.write(model, folder), model, list(feeds.values()))
    return np.asarray(found)


X = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("codes", "shape"),
    [
        ((0, -1), (2, 60)),
        ((0, 0, -3), (2, 3, 20)),
        ((-3, -2), (6, 4, 5)),
        ((-1, 0, 20), (2, 3, 20)),
        ((0, 0, -4, 2, -1, 0), (2, 3, 2, 2, 5)),
        ((0, 0, 0, 5), (2, 3, 4, 5)),
        ((-2,), (2, 3, 4, 5)),
    ],
    ids=str,
)
def test_pytorch_keeps_the_axes_that_codes_of_shapes_name(
    codes: tuple[int, ...], shape: tuple[int, ...], tmp_path: Path
) -> None:
    x = unknown("x", X)
    found = run("torch", relay.reshape(x, codes), {x: X}, tmp_path)
    np.testing.assert_array_equal(found, X.reshape(shape))


def test_pytorch_refuses_a_reshape_of_two_lengths_that_no_axis_shows(tmp_path: Path) -> None:
    x = unknown("x", X)
    with pytest.raises(UnsupportedModelError, match="not known before the model runs"):
        run("torch", relay.reshape(x, (-3, -3)), {x: X}, tmp_path)


def test_pytorch_matches_codes_from_the_right(tmp_path: Path) -> None:
    x = unknown("x", X)
    body = call("contrib_reverse_reshape", x, newshape=(-2, -3))
    np.testing.assert_array_equal(run("torch", body, {x: X}, tmp_path), X.reshape(2, 3, 20))


def test_pytorch_shapes_like_some_axes_of_another(tmp_path: Path) -> None:
    like = np.zeros((9, 2, 2), np.float32)
    x, other = unknown("x", X), unknown("like", like)
    body = relay.reshape_like(x, other, lhs_begin=2, lhs_end=3, rhs_begin=1)
    found = run("torch", body, {x: X, other: like}, tmp_path)
    np.testing.assert_array_equal(found, X.reshape(2, 3, 2, 2, 5))


def test_pytorch_arranges_blocks_in_blocks(tmp_path: Path) -> None:
    given = X.reshape(2, 12, 5, 1)
    x = unknown("x", given)
    found = run("torch", relay.layout_transform(x, "NCHW", "NCHW4c"), {x: given}, tmp_path)
    np.testing.assert_array_equal(found, given.reshape(2, 3, 4, 5, 1).transpose(0, 1, 3, 4, 2))


@pytest.mark.parametrize("form", ["torch", "onnx", "mxnet"])
def test_slices_are_as_long_as_what_they_are_like(form: str, tmp_path: Path) -> None:
    x, like = unknown("x", X), unknown("like", X[:1, :, :2])
    found = run(form, relay.slice_like(x, like, (0, 2)), {x: X, like: X[:1, :, :2]}, tmp_path)
    np.testing.assert_array_equal(found, X[:1, :, :2])


@pytest.mark.parametrize("form", ["torch", "mxnet"])
def test_sums_over_axes_that_nothing_shows_are_refused(form: str, tmp_path: Path) -> None:
    x, like = unknown("x", X), unknown("like", X[:, :1])
    with pytest.raises(UnsupportedModelError):
        run(form, relay.collapse_sum_like(x, like), {x: X, like: X[:, :1]}, tmp_path)


@pytest.mark.parametrize("form", ["onnx", "coreml"])
def test_sums_over_axes_that_the_run_shows(form: str, tmp_path: Path) -> None:
    x, like = unknown("x", X), unknown("like", X[:, :1])
    found = run(form, relay.collapse_sum_like(x, like), {x: X, like: X[:, :1]}, tmp_path)
    np.testing.assert_array_equal(found, X.sum(1, keepdims=True))


@pytest.mark.parametrize("form", ["torch", "onnx", "mxnet"])
def test_a_batch_of_one_matrix_serves_all_of_the_other(form: str, tmp_path: Path) -> None:
    left, right = RANDOM.normal(size=(2, 3, 4)), RANDOM.normal(size=(1, 5, 4))
    feeds = {unknown(n, v): v for n, v in (("a", left.astype("f")), ("b", right.astype("f")))}
    found = run(form, relay.nn.batch_matmul(*feeds), feeds, tmp_path)
    np.testing.assert_allclose(found, left @ right.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


def attention() -> tuple[Expr, dict[Var, np.ndarray], np.ndarray]:
    """Return an attention with fewer heads of keys than of queries, and what it gives."""
    query = RANDOM.normal(size=(1, 4, 3, 2)).astype(np.float32)
    key, value = (RANDOM.normal(size=(1, 2, 5, 2)).astype(np.float32) for _ in range(2))
    feeds = {
        unknown(name, each): each for name, each in zip("qkv", (query, key, value), strict=True)
    }
    products = np.exp(query @ key.repeat(2, 1).transpose(0, 1, 3, 2))
    expected = products / products.sum(-1, keepdims=True) @ value.repeat(2, 1)
    return call("serde.attention", *feeds, None, scale=1.0), feeds, expected


def test_pytorch_serves_several_heads_by_one(tmp_path: Path) -> None:
    body, feeds, expected = attention()
    np.testing.assert_allclose(run("torch", body, feeds, tmp_path), expected, rtol=1e-5)


def test_tvm_is_not_asked_for_heads_that_may_serve_several(tmp_path: Path) -> None:
    body, feeds, _ = attention()
    with pytest.raises(UnsupportedModelError, match="heads cannot be decomposed"):
        run("relax", body, feeds, tmp_path)


def test_pytorch_keeps_an_axis_beside_one_of_no_length(tmp_path: Path) -> None:
    x = relay.var("x", shape=(relay.Any(), 0, 3))
    body = relay.reshape(x, (0, -2, 1))
    found = run("torch", body, {x: np.zeros((2, 0, 3), np.float32)}, tmp_path)
    assert found.shape == (2, 0, 3, 1)


@pytest.mark.parametrize("form", ["coreml", "mlmodel"])
def test_core_ml_refuses_indices_that_may_be_fewer_than_data(form: str, tmp_path: Path) -> None:
    """Its operator wants as many along the other axes, of which nothing tells the lengths."""
    data, indices = X[0, 0], np.array([[2, 0]], np.int32)
    feeds = {unknown("data", data): data, unknown("indices", indices): indices}
    with pytest.raises(UnsupportedModelError, match="a length that is not known"):
        run(form, relay.gather(next(iter(feeds)), 0, [*feeds][1]), feeds, tmp_path)


@pytest.mark.parametrize("form", ["torch", "onnx", "coreml", "relax"])
def test_convolutions_in_groups_of_unknown_filters_are_refused(form: str, tmp_path: Path) -> None:
    """TVM's weights may have filters of each channel along the axis of the channels of a group."""
    x, weight = X[:1].reshape(1, 4, 15), np.ones((4, 2, 3), np.float32)
    data, filters = unknown("x", x), unknown("w", weight)
    body = relay.nn.conv1d(data, filters, groups=4)
    with pytest.raises(UnsupportedModelError, match="filters of each channel"):
        run(form, body, {data: x, filters: weight}, tmp_path)
