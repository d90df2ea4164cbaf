"""Linear quantisation against ONNX Runtime and ONNX's reference, whole and decomposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.kernels import infer, run_decomposed, run_kernel, run_reference

from serde.core.report import Report
from serde.errors import TypeInferenceError, UnsupportedModelError
from serde.onnx.exporter import from_relay
from serde.relay.ir.expr import Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.registry import call
from serde.relay.ir.types import TensorType
from serde.relay.run.interpreter import run
from serde.relay.transform import Decompose

ml_dtypes = pytest.importorskip("ml_dtypes")

BOTH = pytest.mark.parametrize("run_one", [run_kernel, run_decomposed])
X = np.random.default_rng(11).uniform(-40, 40, (3, 5, 4)).astype(np.float32)


@BOTH
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_halves_go_to_even(dtype: str, run_one: Any) -> None:
    x = (np.arange(-600, 600, dtype=np.float32) * 0.25).reshape(4, -1)
    scale, zero = np.array(0.5, np.float32), np.array(7, dtype)
    expected = run_reference("QuantizeLinear", x, scale, zero)
    found = run_one("serde.quantize_linear", x, scale, zero, out_dtype=dtype)
    np.testing.assert_array_equal(found, expected)


@BOTH
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_a_scale_for_each_index(axis: int, run_one: Any) -> None:
    length = X.shape[axis]
    scale = np.linspace(0.1, 0.7, length, dtype=np.float32)
    zero = np.arange(length, dtype=np.int8) - 2
    expected = run_reference("QuantizeLinear", X, scale, zero, axis=axis)
    found = run_one("serde.quantize_linear", X, scale, zero, axis=axis, out_dtype="int8")
    np.testing.assert_array_equal(found, expected)
    back = run_one("serde.dequantize_linear", found, scale, zero, axis=axis)
    real = run_reference("DequantizeLinear", expected, scale, zero, opset=19, axis=axis)
    np.testing.assert_array_equal(back, real)


@BOTH
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint16", "int16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks(axis: int, dtype: str, run_one: Any) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    shape = list(X.shape)
    shape[axis] = -(-shape[axis] // 2)
    scale = np.random.default_rng(12).uniform(0.1, 4, shape).astype(np.float32)
    zero = np.ones(shape, np.int8).astype(kind)
    attrs = {"axis": axis, "block_size": 2}
    expected = run_reference("QuantizeLinear", X, scale, zero, opset=21, **attrs)
    found = run_one("serde.quantize_linear", X, scale, zero, out_dtype=dtype, **attrs)
    np.testing.assert_array_equal(found.astype(np.int32), expected.astype(np.int32))
    back = run_one("serde.dequantize_linear", found, scale, zero, **attrs)
    real = run_reference("DequantizeLinear", expected, scale, zero, opset=21, **attrs)
    np.testing.assert_array_equal(back, real)


@BOTH
@pytest.mark.parametrize("saturate", [True, False])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz"])
def test_floats_of_eight_bits(dtype: str, saturate: bool, run_one: Any) -> None:
    x = np.concatenate([X.reshape(-1), [1e6, -1e6]]).astype(np.float32)
    kind = np.dtype(getattr(ml_dtypes, dtype))
    scale = np.array(0.07, np.float32)
    zero = np.zeros((), np.float32).astype(kind)
    expected = run_reference(
        "QuantizeLinear", x, scale, zero, opset=21, saturate=int(saturate)
    ).astype(np.float32)
    found = run_one("serde.quantize_linear", x, scale, zero, out_dtype=dtype, saturate=saturate)
    np.testing.assert_array_equal(found.astype(np.float32), expected)


@BOTH
def test_halves_are_divided_in_their_own_precision(run_one: Any) -> None:
    x = X.astype(np.float16)
    scale = np.array(0.3, np.float16)
    expected = np.clip(np.rint((x / scale).astype(np.float64)), 0, 255)
    zero = np.zeros((), np.uint8)
    found = run_one("serde.quantize_linear", x, scale, zero)
    np.testing.assert_array_equal(found, expected)
    wide = np.clip(np.rint(x.astype(np.float32) / np.float32(scale)), 0, 255)
    found = run_one("serde.quantize_linear", x, scale, zero, precision="float32")
    np.testing.assert_array_equal(found, wide)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("low", [-3.0, 0.0, 1.0])
def test_a_range_of_its_own(low: float, decomposed: bool) -> None:
    x = np.random.default_rng(13).uniform(low, 4, (6, 50)).astype(np.float32)
    variable = Var("x", TensorType(x.shape, "float32"))
    function = Function([variable], call("serde.dynamic_quantize_linear", variable))
    if decomposed:
        function = Decompose(frozenset()).transform(function)
    result, scale, zero = run(function, [x])
    least = min(x.min(), np.float32(0))
    step = (x.max() - least) / np.float32(255)
    np.testing.assert_allclose(scale, step, rtol=1e-6)
    assert zero == np.rint(-least / step)
    np.testing.assert_array_equal(result, np.clip(np.rint(x / step) + zero, 0, 255))


def _operators(name: str, opset: int, *types: TensorType, **attrs: Any) -> list[str]:
    variables = [Var(f"x{i}", type_) for i, type_ in enumerate(types)]
    function = Function(variables, call(name, *variables, **attrs))
    names = tuple(variable.name_hint for variable in variables)
    model = RelayModel(IRModule({"main": function}), {}, ModelMeta(names, ("out",)))
    return [node.op_type for node in from_relay(model, opset, False, Report()).proto.graph.node]


_MATRIX, _SCALAR = TensorType((4, 6)), TensorType(())


@pytest.mark.parametrize(
    ("opset", "types", "attrs"),
    [
        (11, (_MATRIX, _SCALAR), {}),
        (13, (_MATRIX, TensorType((6,))), {"out_dtype": "int8"}),
        (19, (_MATRIX, _SCALAR), {"out_dtype": "float8_e5m2", "saturate": False}),
        (21, (_MATRIX, _SCALAR), {"out_dtype": "int16"}),
        (21, (_MATRIX, TensorType((4, 3))), {"out_dtype": "uint4", "block_size": 2}),
        (23, (_MATRIX, _SCALAR), {"precision": "float16"}),
    ],
)
def test_one_operator_where_onnx_has_it(opset: int, types: Any, attrs: Any) -> None:
    assert _operators("serde.quantize_linear", opset, *types, **attrs) == ["QuantizeLinear"]


def test_an_older_version_spells_it_out() -> None:
    vector = TensorType((6,))
    assert "QuantizeLinear" not in _operators("serde.quantize_linear", 11, _MATRIX, vector)


def test_an_older_version_lacks_the_type() -> None:
    with pytest.raises(UnsupportedModelError, match="ONNX has no uint4 at version 19"):
        _operators("serde.quantize_linear", 19, _MATRIX, _SCALAR, out_dtype="uint4")


@pytest.mark.parametrize(
    ("name", "shapes", "attrs", "message"),
    [
        ("serde.quantize_linear", [(2, 3), (2,)], {}, "lengths 3 and 2 differ"),
        ("serde.quantize_linear", [(2, 3), (2, 3)], {}, "a scale of rank 1"),
        ("serde.quantize_linear", [(2, 3), (3,)], {"block_size": 2}, "a scale of rank 2"),
        ("serde.quantize_linear", [(2, 3), ()], {"out_dtype": "int32"}, "int32 is no type of"),
        ("serde.quantize_linear", [(2, 3), ()], {"block_size": -1}, "no negative number"),
        ("serde.quantize_linear", [(2, 3), (), ()], {}, "expected a zero point of uint8"),
        ("serde.dequantize_linear", [(2, 3), ()], {}, "float32 is no type of"),
    ],
)
def test_refusals(name: str, shapes: Any, attrs: Any, message: str) -> None:
    with pytest.raises(TypeInferenceError, match=message):
        infer(name, *shapes, **attrs)


def test_a_range_of_doubles_is_refused() -> None:
    with pytest.raises(TypeInferenceError, match="a float32 tensor"):
        infer("serde.dynamic_quantize_linear", (2, 3), dtype="float64")
