"""Quantised tensors of NNEF: graph.quant, stored codes, and what needs consent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serde
import serde.relay as relay
from serde.core.weights import ArrayWeight
from serde.engine.interpreter import RelayEngine
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.registry import call

nnef = pytest.importorskip("nnef")
from support.nnef_reference import run as reference  # noqa: E402

SCALE = relay.const(np.float32(0.1))
SCALES = relay.const(np.array([0.1, 0.2, 0.3], np.float32))
X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32) * 3


def _zero(value: Any, dtype: str = "int32") -> Any:
    return relay.const(np.asarray(value, dtype))


def _model(body: Any, weights: dict[str, Any] | None = None) -> RelayModel:
    weights = weights or {}
    x = relay.var("x", shape=X.shape, dtype="float32")
    held = [relay.var(name, shape=w.shape, dtype=str(w.dtype)) for name, w in weights.items()]
    mod = relay.IRModule.from_expr(relay.Function([x, *held], body(x, *held)))
    params = {name: ArrayWeight(w) for name, w in weights.items()}
    return RelayModel(relay.transform.InferType()(mod), params, ModelMeta(("x",), ("y",)))


def _write(model: RelayModel, folder: Path, **options: Any) -> tuple[str, str]:
    """Write a model; return the texts of the graph and of graph.quant."""
    serde.export_model(model, format="nnef", path=folder, **options)
    quant = folder / "graph.quant"
    return (folder / "graph.nnef").read_text(), quant.read_text() if quant.exists() else ""


def _agrees(model: RelayModel, folder: Path, tolerance: float = 1e-5) -> None:
    """Compare a model with its folder, as we and as the reference read it."""
    wanted = RelayEngine(model).run({"x": X})
    again = serde.to_relay(folder)
    np.testing.assert_array_equal(RelayEngine(again).run({"x": X})[0], wanted[0])
    graph = nnef.load_graph(str(folder))
    nnef.infer_shapes(graph)
    (found,) = reference(graph, {"x": X}).values()
    np.testing.assert_allclose(found, wanted[0], atol=tolerance)


def _pair(x: Any, scale: Any, zero: Any, axis: int = -1, dtype: str = "int8") -> Any:
    codes = relay.qnn.op.quantize(x, scale, zero, axis, dtype)
    return relay.qnn.op.dequantize(codes, scale, zero, axis)


def test_what_is_computed_and_read_once_is_named_in_graph_quant(tmp_path: Path) -> None:
    model = _model(lambda x: _pair(relay.nn.relu(x), SCALE, _zero(3)))
    graph, quant = _write(model, tmp_path / "net")
    assert graph.endswith("    x = external(shape = [2, 3, 4]);\n    y = relu(x);\n}\n")
    assert quant == (
        '"y": zero_point_linear_quantize(zero_point = 3, scale = 0.1, bits = 8, signed = true, '
        "symmetric = false);\n"
    )
    _agrees(model, tmp_path / "net")


def test_what_is_read_elsewhere_too_is_quantised_by_a_fragment(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        y = relay.nn.relu(x)
        return relay.add(y, _pair(y, SCALE, _zero(3), dtype="uint16"))

    graph, quant = _write(_model(body), tmp_path / "net")
    assert "zero_point_linear_quantize(relu1, 3, 0.1, bits = 16, signed = false" in graph
    assert not quant
    _agrees(_model(body), tmp_path / "net")


def test_an_input_is_quantised_by_a_fragment(tmp_path: Path) -> None:
    model = _model(lambda x: _pair(x, SCALES, _zero([1, 2, 3]), axis=1))
    graph, quant = _write(model, tmp_path / "net")
    assert "value = [1, 2, 3]" in graph
    assert not quant
    _agrees(model, tmp_path / "net")


def test_codes_without_the_number_least_of_all_are_symmetric(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        codes = relay.qnn.op.quantize(relay.nn.relu(x), SCALE, _zero(0), -1, "int8")
        return relay.qnn.op.dequantize(relay.clip(codes, -127, 127), SCALE, _zero(0))

    _, quant = _write(_model(body), tmp_path / "net")
    assert "symmetric = true" in quant
    _agrees(_model(body), tmp_path / "net")


def test_codes_that_stay_are_integers(tmp_path: Path) -> None:
    def body(x: Any) -> Any:
        return relay.cast(relay.qnn.op.quantize(x, SCALE, _zero(3), -1, "int8"), "float32")

    graph, _ = _write(_model(body), tmp_path / "net")
    assert "cast<integer>" in graph
    _agrees(_model(body), tmp_path / "net")


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("per_row", [False, True])
def test_weights_are_stored_as_codes(tmp_path: Path, dtype: str, per_row: bool) -> None:
    codes = np.random.default_rng(1).integers(0, 100, (2, 3, 4)).astype(dtype)
    scale, zero = (SCALE, _zero(3, dtype))
    if per_row:
        scale, zero = relay.const(np.array([0.5, 0.3], np.float32)), _zero([1, 2], dtype)

    def body(x: Any, w: Any) -> Any:
        return relay.add(x, call("serde.dequantize_linear", w, scale, zero, axis=0))

    model = _model(body, {"w": codes})
    graph, quant = _write(model, tmp_path / "net")
    assert "w = variable(shape = [2, 3, 4], label = 'w');" in graph
    assert quant.startswith('"w": zero_point_linear_quantize(zero_point = ')
    assert (tmp_path / "net/w.dat").stat().st_size == 128 + codes.nbytes
    _agrees(model, tmp_path / "net")


def test_weights_read_as_integers_too_are_stored_twice(tmp_path: Path) -> None:
    codes = np.random.default_rng(1).integers(0, 100, (2, 3, 4)).astype("int8")

    def body(x: Any, w: Any) -> Any:
        values = call("serde.dequantize_linear", w, SCALE, _zero(3, "int8"))
        return relay.add(relay.add(x, values), relay.cast(w, "float32"))

    model = _model(body, {"w": codes})
    _, quant = _write(model, tmp_path / "net")
    assert quant.count("zero_point_linear_quantize") == 1
    _agrees(model, tmp_path / "net")


HALVES = _model(
    lambda x: call(
        "serde.dequantize_linear",
        call("serde.quantize_linear", relay.nn.relu(x), SCALE, _zero(3, "uint8")),
        SCALE,
        _zero(3, "uint8"),
    )
)


@pytest.mark.parametrize("name", ["w", "a weight: of a net"])
@pytest.mark.parametrize("kinds", ["0.5 0.25", "0.5 codes", "codes 0.5", "codes 0.5 0.25 0.5"])
def test_weights_that_stand_for_several_things(tmp_path: Path, name: str, kinds: str) -> None:
    """Other scales, and the codes themselves, are files of their own."""
    codes = np.arange(-12, 12, dtype=np.int8).reshape(2, 3, 4)

    def body(x: Any, w: Any) -> Any:
        place = relay.cast(relay.argmax(x), "int32")
        for each in kinds.split():
            if each == "codes":
                term = relay.cast(call("take", w, place, axis=0, mode="clip"), "float32")
            else:
                scale = relay.const(np.float32(each))
                term = call("serde.dequantize_linear", w, scale, _zero(0, "int8"), axis=0)
            x = relay.add(x, term)
        return x

    model = _model(body, {name: codes})
    _write(model, tmp_path / "m_nnef")
    _agrees(model, tmp_path / "m_nnef")


def test_halves_to_even_are_spelled_out(tmp_path: Path) -> None:
    _, quant = _write(HALVES, tmp_path / "net")
    assert not quant
    _agrees(HALVES, tmp_path / "net")


def test_halves_away_from_zero_need_consent(tmp_path: Path) -> None:
    report = serde.Report()
    graph, quant = _write(HALVES, tmp_path / "net", allow={"quantised-as-floats"}, report=report)
    assert graph.endswith("    y = relu(x);\n}\n")
    assert quant.startswith('"y": zero_point_linear_quantize(zero_point = 3, scale = 0.1')
    assert [issue.op for issue in report.allowed] == ["quantize_linear"]


def _integers(x: Any) -> Any:
    codes = relay.qnn.op.quantize(x, SCALE, _zero(3), -1, "int8")
    args = (SCALE, _zero(3), SCALE, _zero(3), SCALE, _zero(0))
    return relay.qnn.op.dequantize(relay.qnn.op.add(codes, codes, *args), SCALE, _zero(0))


def test_arithmetic_of_codes_needs_consent(tmp_path: Path) -> None:
    with pytest.raises(serde.UnsupportedModelError, match="allow 'quantised-as-floats'"):
        _write(_model(_integers), tmp_path / "net")
    assert not (tmp_path / "net").exists()


def test_arithmetic_of_codes_on_floats(tmp_path: Path) -> None:
    model = _model(_integers)
    _, quant = _write(model, tmp_path / "net", allow={"quantised-as-floats"})
    assert quant.startswith('"y": zero_point_linear_quantize')
    (found,) = RelayEngine(serde.to_relay(tmp_path / "net")).run({"x": X})
    (wanted,) = RelayEngine(model).run({"x": X})
    steps = np.abs(found - wanted) / 0.1
    assert steps.max() < 1.001  # both round, and may do so one step apart
    assert np.mean(steps > 0.5) < 0.1


def _folder(path: Path, quant: str, data: Any, *, quantized: bool) -> Path:
    path.mkdir()
    (path / "graph.nnef").write_text(
        "version 1.0;\ngraph net( x ) -> ( y )\n{\n"
        "    x = external<scalar>(shape = [2, 3, 4]);\n"
        "    w = variable<scalar>(shape = [2, 3, 4], label = 'w');\n    y = add(x, w);\n}\n"
    )
    (path / "graph.quant").write_text(quant)
    with (path / "w.dat").open("wb") as file:
        nnef.write_tensor(file, data, quantized=quantized)
    return path


def test_codes_that_nothing_explains_are_refused(tmp_path: Path) -> None:
    data = np.zeros((2, 3, 4), np.int8)
    folder = _folder(tmp_path / "net", "", data, quantized=True)
    with pytest.raises(serde.UnsupportedModelError, match="nothing tells what they stand for"):
        serde.to_relay(folder)


def test_codes_of_a_logarithm_are_refused(tmp_path: Path) -> None:
    data = np.zeros((2, 3, 4), np.int8)
    quant = '"w": logarithmic_quantize(max = 1.0, bits = 8);'
    folder = _folder(tmp_path / "net", quant, data, quantized=True)
    with pytest.raises(serde.UnsupportedModelError, match="does not say how codes"):
        serde.to_relay(folder)


def test_floats_of_a_variable_are_quantised(tmp_path: Path) -> None:
    data = np.array([[[-2.0, -0.3, 0.1, 5.0]] * 3] * 2, np.float32)
    quant = '"w": linear_quantize(min = -1.0, max = 1.0, bits = 2);'
    folder = _folder(tmp_path / "net", quant, data, quantized=False)
    (found,) = RelayEngine(serde.to_relay(folder)).run({"x": np.zeros_like(X)})
    np.testing.assert_allclose(found[0, 0], [-1.0, -1 / 3, 1 / 3, 1.0], rtol=1e-6)


def _products(depth: int) -> RelayModel:
    a = relay.var("a", shape=(2, depth), dtype="uint8")
    b = relay.var("b", shape=(depth, 3), dtype="int8")
    body = call("serde.matmul_integer", a, b, _zero(7, "uint8"), relay.Tuple(()))
    mod = relay.IRModule.from_expr(relay.Function([a, b], body))
    return RelayModel(relay.transform.InferType()(mod), {}, ModelMeta(("a", "b"), ("y",)))


def test_products_of_bytes_that_scalars_hold(tmp_path: Path) -> None:
    model = _products(258)
    _write(model, tmp_path / "net")
    a, b = np.full((2, 258), 255), np.full((258, 3), -128)
    (wanted,) = RelayEngine(model).run({"a": a.astype(np.uint8), "b": b.astype(np.int8)})
    narrow = {"a": a.astype(np.int32), "b": b.astype(np.int32)}
    (found,) = RelayEngine(serde.to_relay(tmp_path / "net")).run(narrow)
    np.testing.assert_array_equal(found, wanted)


def test_longer_sums_are_refused(tmp_path: Path) -> None:
    with pytest.raises(serde.UnsupportedModelError, match="sums of 259 products"):
        _write(_products(259), tmp_path / "net")
