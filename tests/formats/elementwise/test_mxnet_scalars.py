"""Element-wise operators of MXNet's older interface: scalars, sparse forms, casts, shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree, same
from support.oracle import PlainMxnet

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.run.interpreter import run

ARITHMETIC = (
    "_plus", "_minus", "_rminus", "_mul", "_div", "_rdiv", "_mod", "_rmod", "_power", "_rpower",
    "_maximum", "_minimum", "_hypot", "_scatter_plus", "_scatter_minus",
)  # fmt: skip
COMPARED = (
    "_equal", "_not_equal", "_greater", "_greater_equal", "_lesser", "_lesser_equal",
    "_logical_and", "_logical_or", "_logical_xor",
)  # fmt: skip


def node(name: str, *inputs: Any, **attrs: Any) -> Any:
    mx = import_mxnet()
    home = mx.sym if hasattr(mx.sym, name) else mx.sym._internal
    return getattr(home, name)(*inputs, **attrs)


@pytest.mark.sparse(3)
@pytest.mark.thin(2)
@pytest.mark.parametrize(("scalar", "is_int"), [(2, True), (2.5, False), (2.5, True)])
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "uint8", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARED])
def test_scalars(name: str, dtype: str, scalar: float, is_int: bool) -> None:
    """A scalar that is no integer makes float64 of integers."""
    x = import_mxnet().sym.var("x")
    made = node(f"{name}_scalar", x, scalar=scalar, is_int=is_int)
    agree(made, {"x": np.array([1, 2, 3]).astype(dtype)})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("name", "scalar", "data"),
    [
        ("_rdiv", 2**30 - 1, [6, 7, -9]),
        ("_div", 7, [2**30 - 1, 2**24 + 7, -(2**29) - 3]),
        ("_power", 11, [7, 5, 3]),
        ("_rpower", 7, [11, 9, 3]),
    ],
)
def test_scalars_with_integers_that_float32_does_not_hold(
    name: str, scalar: int, data: list[int], dtype: str
) -> None:
    made = node(f"{name}_scalar", import_mxnet().sym.var("x"), scalar=scalar)
    agree(made, {"x": np.array(data, dtype)})


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_squares_that_float32_does_not_hold(dtype: str) -> None:
    agree(node("square", import_mxnet().sym.var("x")), {"x": np.array([46340, -32769], dtype)})


@pytest.mark.parametrize("scalar", ["inf", "1e30"])
def test_a_scalar_beyond_the_integers_is_refused(scalar: str) -> None:
    made = node("_maximum_scalar", import_mxnet().sym.var("x"), scalar=scalar)
    with pytest.raises(UnsupportedModelError, match="beyond its range"):
        serde.to_relay(made, input_shapes={"x": (2,)}, input_dtypes={"x": "int32"})


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_division_of_the_stored_elements(dtype: str) -> None:
    mx = import_mxnet()
    made = node("_scatter_elemwise_div", mx.sym.var("x"), mx.sym.var("y"))
    agree(made, {"x": np.array([4, 0, -8], dtype), "y": np.array([2, 5, 3], dtype)})


def test_identity_with_the_attributes_of_another() -> None:
    mx = import_mxnet()
    made = node("_identity_with_attr_like_rhs", mx.sym.var("x"), mx.sym.var("y"))
    model = agree(made + 1, {"x": np.float32([1, 2]), "y": np.float32([0, 0])})
    assert list(model.meta.inputs) == ["x"]


def test_a_copy_to_another_device() -> None:
    """Read from a graph only: MXNet's own functions make none."""
    net = json.loads(json.dumps(NET))
    net["nodes"][1]["op"] = "_CrossDeviceCopy"
    agree(import_mxnet().sym.load_json(json.dumps(net)), {"x": np.float32([1, 2])})


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32"])
@pytest.mark.parametrize("name", ["_hypot", "broadcast_hypot"])
def test_lengths(name: str, dtype: str) -> None:
    mx = import_mxnet()
    made = node(name, mx.sym.var("x"), mx.sym.var("y"))
    agree(made, {"x": np.array([1, 3, 8], dtype), "y": np.array([3, 4, 6], dtype)})


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rint_of_what_has_no_half(dtype: str) -> None:
    """Numbers to which adding a half is rounded away."""
    values = np.array([1025, 1027, -1025, 2047, 8388609, 0.5, -0.5, 2.5, 0.49999997])
    with np.errstate(over="ignore"):
        agree(import_mxnet().sym.rint(import_mxnet().sym.var("x")), {"x": values.astype(dtype)})


@pytest.mark.parametrize("name", ["degrees", "radians"])
def test_angles_take_a_factor_of_float32(name: str) -> None:
    mx = import_mxnet()
    agree(node(name, mx.sym.var("x")), {"x": np.array([1.0, -123.456, 1e5])})


@pytest.mark.wide
@pytest.mark.parametrize(
    "name", ["exp", "sqrt", "log", "sinh", "tan", "sigmoid", "cbrt", "radians"]
)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_functions_of_large_integers(name: str, dtype: str) -> None:
    mx = import_mxnet()
    agree(node(name, mx.sym.var("x")), {"x": np.array([3, 20, 21], dtype)})


@pytest.mark.parametrize("cast_narrow", [False, True])
@pytest.mark.parametrize(
    "dtypes",
    [("float16", "float32"), ("float32", "float16", "float16"), ("float16", "float16"),
     ("int32", "float32"), ("float32", "float32")],
    ids=str,
)  # fmt: skip
def test_amp_multicast(
    plain_mxnet: PlainMxnet, tmp_path: Path, dtypes: tuple[str, ...], cast_narrow: bool
) -> None:
    mx = import_mxnet()
    names = [f"x{i}" for i in range(len(dtypes))]
    inputs = {name: np.array([0.1, 2, -3]).astype(d) for name, d in zip(names, dtypes, strict=True)}
    made = mx.sym.amp_multicast(
        *map(mx.sym.var, names), num_outputs=len(names), cast_narrow=cast_narrow
    )
    made.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(str(tmp_path / "net-0000.params"), {})
    expected = plain_mxnet.run(tmp_path / "net", inputs, tmp_path)
    model = serde.to_relay(
        made,
        input_shapes={name: (3,) for name in names},
        input_dtypes=dict(zip(names, dtypes, strict=True)),
    )
    same(run(model.main, list(inputs.values()), mod=model.mod), expected)


NET = {
    "nodes": [
        {"op": "null", "name": "x", "attrs": {}, "inputs": []},
        {"op": "exp", "name": "y", "inputs": [[0, 0, 0]]},
    ],
    "arg_nodes": [0],
    "node_row_ptr": [0, 1, 2],
    "heads": [[1, 0, 0]],
}


def noted(shape: str, *, as_numpy: bool) -> Any:
    """A net whose input has a shape noted on it."""
    net = json.loads(json.dumps(NET))
    net["nodes"][0]["attrs"] = {"__shape__": shape}
    net["attrs"] = {"mxnet_version": ["int", 10901]}
    if as_numpy:
        net["attrs"]["is_np_shape"] = ["int", 1]
    return import_mxnet().sym.load_json(json.dumps(net))


@pytest.mark.parametrize(("text", "shape"), [("()", ()), ("(0, 3)", (0, 3)), ("(2,)", (2,))])
def test_a_noted_shape_may_be_a_scalar_or_empty_as_in_numpy(
    text: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    path = tmp_path / "net-symbol.json"
    with import_mxnet().util.np_shape(True):
        noted(text, as_numpy=True).save(str(path))
    (x,) = serde.to_relay(path).main.params
    assert x.type.concrete_shape == shape


def test_a_shape_is_read_as_mxnet_rewrites_it_for_numpy(tmp_path: Path) -> None:
    """A net from without NumPy's shapes that is loaded and saved with them."""
    path = tmp_path / "net-symbol.json"
    with import_mxnet().util.np_shape(True):
        noted("(2, 3)", as_numpy=False).save(str(path))
    assert '"__shape__": "[2,3]"' in path.read_text()
    (x,) = serde.to_relay(path).main.params
    assert x.type.concrete_shape == (2, 3)


@pytest.mark.parametrize(
    ("text", "as_numpy"),
    [("[-1,3]", True), ("(-1, 3)", True), ("None", True), ("()", False), ("(0, 3)", False)],
)
def test_a_noted_shape_that_is_not_known_is_asked_for(
    text: str, as_numpy: bool, tmp_path: Path
) -> None:
    path = tmp_path / "net-symbol.json"
    net = json.loads(json.dumps(NET))
    net["nodes"][0]["attrs"] = {"__shape__": text}
    net["attrs"] = {"mxnet_version": ["int", 10901], "is_np_shape": ["int", int(as_numpy)]}
    path.write_text(json.dumps(net))
    with pytest.raises(serde.errors.OptionError, match="x"):
        serde.to_relay(path)


@pytest.mark.parametrize("name", ["ones_like", "zeros_like"])
def test_a_dtype_that_is_not_read(name: str) -> None:
    """CenterNet of gluoncv names one; the result has that of the operand."""
    build = getattr(import_mxnet().sym, name)
    symbol = build(import_mxnet().sym.var("x"), dtype="int64")
    agree(symbol, {"x": np.ones((2, 3), "float32")})
