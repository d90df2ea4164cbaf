"""Shapes, regions and conversions of elements that are written as NNEF in another form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.expr import astuple
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call

nnef = pytest.importorskip("nnef")
from support.nnef_reference import run as reference  # noqa: E402

SHAPE = (3, 4)
VALUES = {
    "float32": np.random.default_rng(0).normal(size=SHAPE).astype(np.float32),
    "int32": np.random.default_rng(0).integers(-9, 9, SHAPE).astype(np.int32),
    "int8": np.random.default_rng(0).integers(-9, 9, SHAPE).astype(np.int8),
    "bool": np.random.default_rng(0).random(SHAPE) > 0.5,
}


def _model(body: Callable[..., Any], **inputs: tuple[tuple[int, ...], str]) -> RelayModel:
    variables = [relay.var(name, shape=s, dtype=d) for name, (s, d) in inputs.items()]
    function = relay.Function(variables, astuple(body(*variables)))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(function))
    result = mod["main"].body.checked_type
    count = len(getattr(result, "fields", (result,)))
    return RelayModel(mod, {}, ModelMeta(tuple(inputs), tuple(f"y{i}" for i in range(count))))


def _write(model: RelayModel, folder: Path) -> str:
    serde.export_model(model, format="nnef", path=folder)
    return (folder / "graph.nnef").read_text()


def _check(model: RelayModel, values: dict[str, Any], folder: Path) -> str:
    """Compare a model with its folder as we and the reference read it; return the text."""
    text = _write(model, folder)
    wanted = RelayEngine(model).run(values)
    narrow = {
        name: each.astype("int32") if each.dtype.kind in "iu" else each
        for name, each in values.items()
    }
    graph = nnef.load_graph(str(folder))
    nnef.infer_shapes(graph)
    judged = list(reference(graph, narrow).values())
    found = RelayEngine(serde.to_relay(folder)).run(narrow)
    for ours, theirs, right in zip(found, judged, wanted, strict=True):
        assert ours.shape == right.shape
        np.testing.assert_allclose(ours, right, rtol=1e-6)
        np.testing.assert_allclose(np.asarray(theirs), right, rtol=1e-6)
    return text


def _one(body: Callable[..., Any], tmp_path: Path, dtype: str = "float32") -> str:
    model = _model(body, x=(SHAPE, dtype))
    return _check(model, {"x": VALUES[dtype]}, tmp_path / "net")


@pytest.mark.parametrize("dtype", ["int32", "int8", "bool"])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_integers_are_padded_by_their_neighbours(tmp_path: Path, dtype: str, mode: str) -> None:
    value = relay.const(np.array(1, dtype))
    text = _one(lambda x: relay.nn.pad(x, ((1, 0), (2, 3)), value, mode), tmp_path, dtype)
    assert "pad(" not in text


def test_what_no_literal_says_is_padded_with_a_variable(tmp_path: Path) -> None:
    value = relay.const(np.float32(-np.inf))
    text = _one(lambda x: relay.nn.pad(x, ((1, 0), (0, 3)), value), tmp_path)
    assert "pad(" not in text
    assert "variable(" in text


def test_a_computed_value_is_repeated_around(tmp_path: Path) -> None:
    model = _model(
        lambda x, v: relay.nn.pad(x, ((1, 0), (0, 3)), v), x=(SHAPE, "float32"), v=((), "float32")
    )
    _check(model, {"x": VALUES["float32"], "v": np.array(2.5, np.float32)}, tmp_path / "net")


SLICES = {
    "to-the-end": ([1], [4], [1], [1], "begin = [1], end = [4])"),
    "backwards-to-the-first": ([-1], [-9], [-1], [1], "begin = [3], end = [-5], stride = [-1])"),
    "backwards": ([3], [0], [-2], [1], "begin = [3], end = [0], stride = [-2])"),
    "nothing": ([2], [2], [1], [1], "shape = [3, 0]"),
    "nothing-at-the-start": ([0], [0], [1], [0], "shape = [0, 4]"),
    "beyond": ([-99], [2], [1], [1], "begin = [0], end = [2])"),
    "both-ways": ([2, 0], [-9, 4], [-1, 2], [0, 1], "end = [-4, 4], stride = [-1, 2])"),
}


@pytest.mark.wide
@pytest.mark.parametrize("name", SLICES)
def test_bounds_of_slices(tmp_path: Path, name: str) -> None:
    begin, end, stride, axes, text = SLICES[name]
    found = _one(lambda x: relay.strided_slice(x, begin, end, stride, axes), tmp_path)
    assert text in found


def test_a_slice_of_all_is_none(tmp_path: Path) -> None:
    text = _one(lambda x: relay.nn.relu(relay.strided_slice(x, [0, 0], [9, 9])), tmp_path)
    assert "slice" not in text


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((1, 3, 1, 4), "y0 = unsqueeze(x, axes = [0, 2]);"),
        ((3, 4, 1), "y0 = unsqueeze(x, axes = [2]);"),
        ((4, 3), "y0 = reshape(x, shape = [4, 3]);"),
        ((12, 1), "y0 = reshape(x, shape = [12, 1]);"),
    ],
)
def test_axes_of_length_1_are_named(tmp_path: Path, shape: tuple[int, ...], text: str) -> None:
    assert text in _one(lambda x: relay.reshape(x, shape), tmp_path)


def test_axes_of_length_1_go(tmp_path: Path) -> None:
    model = _model(lambda x: relay.reshape(x, (3, 4)), x=((1, 3, 1, 4), "float32"))
    values = {"x": VALUES["float32"].reshape(1, 3, 1, 4)}
    assert "y0 = squeeze(x, axes = [0, 2]);" in _check(model, values, tmp_path / "net")


def test_parts_of_a_split_have_ratios(tmp_path: Path) -> None:
    text = _one(lambda x: relay.split(x, [2], 1), tmp_path)
    assert "[y0, y1] = split(x, axis = 1, ratios = [1, 1]);" in text


def test_a_part_of_no_elements_is_a_slice(tmp_path: Path) -> None:
    text = _one(lambda x: relay.split(x, [0, 3], 1), tmp_path)
    assert "split" not in text


INDICES = np.array([[0, -1, 7], [2, 3, -9]])


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_computed_indices_are_clipped(tmp_path: Path, dtype: str) -> None:
    model = _model(
        lambda x, i: relay.take(x, i, 1, mode="clip"), x=(SHAPE, "float32"), i=((2, 3), dtype)
    )
    values = {"x": VALUES["float32"], "i": INDICES.astype(dtype)}
    assert "clamp(" in _check(model, values, tmp_path / "net")


def test_computed_indices_of_few_bits_wrap_around(tmp_path: Path) -> None:
    model = _model(
        lambda x, i: relay.take(x, i, 1, mode="wrap"), x=(SHAPE, "float32"), i=((2, 3), "int8")
    )
    values = {"x": VALUES["float32"], "i": INDICES.astype("int8")}
    _check(model, values, tmp_path / "net")


def test_computed_indices_count_from_the_end(tmp_path: Path) -> None:
    model = _model(
        lambda x, i: call("serde.take", x, i, axis=1), x=(SHAPE, "float32"), i=((2, 3), "int64")
    )
    values = {"x": VALUES["float32"], "i": np.array([[0, -1, 3], [2, -3, -4]])}
    _check(model, values, tmp_path / "net")


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_known_indices_are_brought_into_range(tmp_path: Path, mode: str) -> None:
    indices = relay.const(INDICES.astype("int32"))
    text = _one(lambda x: relay.take(x, indices, 1, mode=mode), tmp_path)
    assert "y0 = gather(x, " in text


def test_indices_of_the_flat_tensor(tmp_path: Path) -> None:
    indices = relay.const(np.array([0, 11, 5], "int32"))
    assert "reshape(x, shape = [12])" in _one(lambda x: relay.take(x, indices), tmp_path)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_broadcast_is_a_tile(tmp_path: Path, dtype: str) -> None:
    text = _one(lambda x: relay.broadcast_to(x, (2, 3, 4)), tmp_path, dtype)
    assert "repeats = [2, 1, 1]" in text


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("float32", "int32"), ("float32", "bool"), ("int32", "float32"), ("bool", "int32")],
)
def test_conversions_of_elements(tmp_path: Path, given: str, wanted: str) -> None:
    _one(lambda x: relay.cast(x, wanted), tmp_path, given)


def test_wider_integers_are_the_same(tmp_path: Path) -> None:
    text = _one(lambda x: relay.transpose(relay.cast(x, "int64")), tmp_path, "int8")
    assert "cast" not in text


REFUSED: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "narrower": (lambda x: relay.cast(x, "int8"), "int32", "no width"),
    "other-scalars": (lambda x: relay.cast(x, "float16"), "float32", "one kind of scalar"),
    "wrapping": (
        lambda x: relay.take(relay.const(np.arange(4.0, dtype="float32")), x, 0, mode="wrap"),
        "int32",
        "arithmetic of integers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_said_is_refused(tmp_path: Path, name: str) -> None:
    body, dtype, reason = REFUSED[name]
    with pytest.raises(serde.UnsupportedModelError, match=reason):
        _write(_model(body, x=(SHAPE, dtype)), tmp_path / "net")


def test_regions_that_are_pooled(tmp_path: Path) -> None:
    rois = np.array([[1, 0, 1, 6.4, 5], [0, 2.5, -3, 4, 4]], np.float32)
    model = _model(
        lambda x, r: relay.vision.roi_pool(x, r, (3, 2), 0.5),
        x=((2, 3, 6, 5), "float32"),
        r=((2, 5), "float32"),
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 5)).astype(np.float32)
    text = _check(model, {"x": x, "r": rois}, tmp_path / "net")
    assert "max_roi_pool(x, " in text
