"""NumPy's products of tensors in MXNet, against MXNet itself."""

from __future__ import annotations

import json
import types
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, run_under, same
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
import serde.relay as relay
from serde.compat import import_mxnet
from serde.mxnet.ops.linalg.product import _as_dot
from serde.relay.ir.module import IRModule

FLOATS = ("float32", "float64")


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


def numbers(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Small whole numbers, whose products every dtype holds."""
    count = int(np.prod(shape))
    return (
        (np.arange(count) * 7 % 5 - (0 if dtype in ("bool", "uint8") else 2))
        .reshape(shape)
        .astype(dtype)
    )


def variables(mx: Any, names: str) -> list[Any]:
    return [mx.sym.var(name).as_np_ndarray() for name in names]


def compare(mx: Any, symbol: Any, *inputs: np.ndarray) -> None:
    agree(symbol, dict(zip("abcde", inputs, strict=False)), numpy=True)


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)), ((), (2, 3)), ((2, 3), ()), ((), ()), ((2, 3), (3,)), ((3,), (3, 2)),
        ((2, 3), (3, 2)), ((2, 2, 3), (3,)), ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)),
        ((3,), (2, 3, 2)), ((2, 3), (4, 3, 2)), ((4, 3, 2), (5, 4, 2, 3)), ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ],
)  # fmt: skip
def test_dot(mx: Any, left: Any, right: Any, dtype: str) -> None:
    symbol = mx.sym.np.dot(*variables(mx, "ab"))
    compare(mx, symbol, numbers(*left, dtype=dtype), numbers(*right, dtype=dtype))


@pytest.mark.thin(2)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((2, 2, 3), (3,)),
        ((2, 2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 2, 3), (1, 3, 2)), ((3,), (2, 3, 2)),
        ((2, 3), (4, 3, 2)), ((4, 3, 2), (5, 4, 2, 3)), ((2, 1, 2, 3), (4, 3, 2)), ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
    ],
)  # fmt: skip
def test_matmul(mx: Any, left: Any, right: Any, dtype: str) -> None:
    symbol = mx.sym.np._internal.matmul(*variables(mx, "ab"))
    compare(mx, symbol, numbers(*left, dtype=dtype), numbers(*right, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2, 2, 2), (2, 2, 3), 0), ((2, 2, 2), (2, 2, 3), 1), ((2, 2, 2), (2, 2, 3), 2),
        ((2, 3), (3, 4), 1), ((2, 0), (0, 3), 1), ((2, 3), (2, 3), 2),
    ],
)  # fmt: skip
def test_tensordot_of_neighbours(mx: Any, left: Any, right: Any, axes: int, dtype: str) -> None:
    symbol = mx.sym.np.tensordot(*variables(mx, "ab"), axes)
    compare(mx, symbol, numbers(*left, dtype=dtype), numbers(*right, dtype=dtype))


@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2, 3, 4), (4, 2, 5), ((0, -1), (1, 0))),
        ((2, 3), (2, 3), ((0, 1), (0, 1))),
        ((2, 3, 4), (4, 3, 2), ((1,), (1,))),
        ((2,), (3,), ((), ())),
    ],
)
def test_tensordot(mx: Any, left: Any, right: Any, axes: Any) -> None:
    symbol = mx.sym.np._internal.tensordot(
        *variables(mx, "ab"), a_axes_summed=axes[0], b_axes_summed=axes[1]
    )
    compare(mx, symbol, numbers(*left), numbers(*right))


@pytest.mark.wide
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", *FLOATS])
@pytest.mark.parametrize(("count", "shape"), [(3, (2, 2)), (1, ()), (0, (2,)), (5, (3,))])
def test_polyval(mx: Any, count: int, shape: tuple[int, ...], dtype: str) -> None:
    symbol = mx.sym.np._internal.polyval(*variables(mx, "ab"))
    compare(mx, symbol, numbers(count, dtype=dtype), numbers(*shape, dtype=dtype))


EINSUMS = [
    ("ij,jk", (2, 3), (3, 2)), ("ii", (3, 3)), ("ii->i", (3, 3)), ("ij->ji", (2, 3)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)), ("i,i", (3,), (3,)), ("i,j", (2,), (3,)),
    ("ij->", (2, 3)), (" i j , j k -> i k ", (2, 3), (3, 2)), ("ba", (2, 3)),
    ("ij...,jk...->ik...", (2, 3, 2), (3, 2, 2)), ("bi,ij,bj->b", (2, 3), (3, 3), (2, 3)),
    ("iI,Ij", (2, 3), (3, 2)), ("iij->j", (2, 2, 3)), ("i...->...", (2, 3)),
    ("ii...->i...", (2, 2, 3)), ("ij,ij->ij", (1, 3), (2, 3)), ("...", (2, 3)),
    ("...,...", (2, 1), (1, 3)), ("ijk,ilm,njm,nlk,abc->", *((2, 2, 2),) * 5), (",", (), ()),
    ("ij,j->i", (2, 0), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("optimize", [0, 1])
@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(mx: Any, case: Any, optimize: int) -> None:
    subscripts, *shapes = case
    names = "abcde"[: len(shapes)]
    symbol = mx.sym.np._internal.einsum(
        *variables(mx, names), subscripts=subscripts, optimize=optimize
    )
    compare(mx, symbol, *(numbers(*shape) for shape in shapes))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float64"])
def test_einsum_of_other_dtypes(mx: Any, dtype: str) -> None:
    symbol = mx.sym.np._internal.einsum(*variables(mx, "ab"), subscripts="ij,jk->ik")
    compare(mx, symbol, numbers(2, 3, dtype=dtype), numbers(3, 2, dtype=dtype))


@pytest.mark.parametrize("name", ["dot", "matmul", "tensordot", "polyval"])
def test_symbolic_batch(mx: Any, name: str) -> None:
    a, b = variables(mx, "ab")
    build = {
        "dot": lambda: mx.sym.np.dot(a, b),
        "matmul": lambda: mx.sym.np._internal.matmul(a, b),
        "tensordot": lambda: mx.sym.np.tensordot(a, b, 1),
        "polyval": lambda: mx.sym.np._internal.polyval(b, a),
    }[name]
    weight = numbers(4) if name == "polyval" else numbers(3, 4)
    inputs = {"a": numbers(5, 2, 3), "b": weight}
    model = serde.to_relay(build(), input_shapes={"a": ("n", 2, 3), "b": weight.shape})
    expected = run_under(build(), inputs, numpy=True)
    fed = {name: inputs[name] for name in model.meta.inputs}
    proto = serde.from_relay(model, format="onnx", opset=newest_runtime_opset())
    same(run_onnx(proto.SerializeToString(), fed)[1], expected)


@pytest.mark.parametrize(
    ("equation", "left", "right"),
    [
        ("abk,kc->abc", (2, 3, 4), (4, 5)),
        ("abk,kcd->abcd", (2, 3, 4), (4, 2, 5)),
        ("kab,kc->abc", (4, 2, 3), (4, 5)),
        ("abk,cdk->abcd", (2, 3, 4), (3, 2, 4)),
        ("k,kab->ab", (4,), (4, 2, 3)),
        ("ak,k->a", (3, 4), (4,)),
    ],
)
def test_sums_over_one_axis_are_dot(mx: Any, equation: str, left: Any, right: Any) -> None:
    """``dot`` contracts an end of the one with an end of the other, of any rank."""
    variables = [relay.var(name, shape=shape) for name, shape in (("a", left), ("b", right))]
    mod = IRModule({"main": relay.Function(variables, relay.einsum(variables, equation))})
    symbol, params = serde.import_model(mod)
    arrays = {"a": numbers(*left), "b": numbers(*right)}
    found = run_mxnet(symbol, params, arrays)[0]
    np.testing.assert_allclose(found, np.einsum(equation, *arrays.values()), rtol=1e-6)
    nodes = json.loads(symbol.tojson())["nodes"]
    assert [node["op"] for node in nodes if node["op"] != "null"] == ["dot"]


@pytest.mark.parametrize("equation", ["abk,kc->acb", "akb,kc->abc", "aak,kc->ac", "ab,bc->"])
def test_other_sums_are_not(equation: str) -> None:
    assert _as_dot(equation) is None


@pytest.mark.wide
@pytest.mark.parametrize(
    ("left", "right", "flags"),
    [
        ((2, 3, 4), (4, 5), (False, False)),
        ((4, 2, 3), (5, 4), (True, True)),
        ((2, 3, 4), (4, 2, 5), (False, False)),
        ((4,), (3, 4), (False, True)),
        ((2, 4), (4,), (False, False)),
        ((4,), (4,), (False, False)),
    ],
)
def test_dot_of_mxnet_comes_back(mx: Any, left: Any, right: Any, flags: Any) -> None:
    symbol = mx.sym.dot(
        mx.sym.var("a"), mx.sym.var("b"), transpose_a=flags[0], transpose_b=flags[1]
    )
    arrays = {"a": numbers(*left), "b": numbers(*right)}
    agree(symbol, arrays)
    shapes = {name: each.shape for name, each in arrays.items()}
    again, params = serde.import_model(symbol, input_shapes=shapes)
    wanted = run_mxnet(symbol, {}, arrays)[0]
    np.testing.assert_allclose(run_mxnet(again, params, arrays)[0], wanted, rtol=1e-6)
