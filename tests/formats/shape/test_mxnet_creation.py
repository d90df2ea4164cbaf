"""Tensors that MXNet makes of numbers: filled, counting, diagonal, windows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from support.mxnet_check import agree

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

COUNTED = ("float16", "float32", "float64", "uint8", "int8", "int32", "int64")
FILLED = (*COUNTED, "bool")


def make(name: str, *, numpy: bool = True, **attrs: Any) -> Any:
    """A node without inputs."""
    mx = import_mxnet()
    is_npi = name.startswith("_npi_")
    home = mx.sym.np._internal if is_npi else mx.sym._internal
    with mx.util.np_shape(numpy):
        return getattr(home, name.removeprefix("_npi_") if is_npi else name)(**attrs)


def check(name: str, *, numpy: bool = True, **attrs: Any) -> None:
    agree(make(name, numpy=numpy, **attrs), {}, numpy=numpy)


@pytest.mark.parametrize("dtype", FILLED)
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_filled(name: str, dtype: str) -> None:
    check(f"_npi_{name}", shape=(2, 3), dtype=dtype)


@pytest.mark.parametrize("shape", [(), (0, 2), 3, (1,)])
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_filled_scalars_and_empty_tensors(name: str, shape: Any) -> None:
    check(f"_npi_{name}", shape=shape)


def test_full_by_its_numpy_name() -> None:
    check("_npi_full", shape=(), value=2.5)


@pytest.mark.parametrize("dtype", FILLED)
@pytest.mark.parametrize("length", [0, 1, 3])
def test_identity(length: int, dtype: str) -> None:
    check("_npi_identity", shape=(length, length), dtype=dtype)


def test_identity_of_no_square_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="square matrix"):
        serde.to_relay(make("_npi_identity", shape=(2, 3)))


@pytest.mark.parametrize(
    "attrs",
    [{"N": 3}, {"N": 2, "M": 3, "k": 1}, {"N": 3, "M": 2, "k": -1}, {"N": 2, "M": 3, "k": 7},
     {"N": 2, "M": 3, "k": -7}, {"N": 0, "M": 3}, {"N": 2, "M": 0}, {"N": 2, "dtype": "int32"},
     {"N": 2, "dtype": "float16"}, {"N": 2, "dtype": "uint8"}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", ["_npi_eye", "_eye"])
def test_eye(name: str, attrs: dict[str, Any]) -> None:
    """Of the two, only the older takes no columns for as many as rows."""
    check(name, **attrs)


RANGES: list[dict[str, Any]] = [
    {"start": 0, "stop": 5},
    {"start": 5},
    {"start": 1, "stop": 2, "step": 0.3},
    {"start": 1, "stop": 2, "step": 0.1},
    {"start": 0.5, "stop": 4},
    {"start": 5, "stop": 1, "step": -1.5},
    {"start": -3, "stop": 3},
    {"start": 0, "stop": 3, "step": 0.5},
    {"start": 100, "stop": 140, "step": 3},
]


@pytest.mark.parametrize("dtype", COUNTED)
@pytest.mark.parametrize("attrs", RANGES, ids=str)
@pytest.mark.parametrize("name", ["_npi_arange", "_arange"])
def test_ranges(name: str, attrs: dict[str, Any], dtype: str) -> None:
    check(name, dtype=dtype, **attrs)


@pytest.mark.parametrize("attrs", [{"start": 0, "stop": 0}, {"start": 3, "stop": 0}], ids=str)
def test_empty_ranges(attrs: dict[str, Any]) -> None:
    check("_npi_arange", **attrs)


@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("repeat", [2, 3])
def test_repeated_ranges(repeat: int, dtype: str) -> None:
    check("_arange", numpy=False, start=1, stop=8, step=2, repeat=repeat, dtype=dtype)


def test_a_range_of_unknown_length_is_refused() -> None:
    mx = import_mxnet()
    made = mx.sym.var("x") + mx.sym.arange(0, None, 2, infer_range=True)
    with pytest.raises(UnsupportedModelError, match="infer_range"):
        serde.to_relay(made, input_shapes={"x": (4,)})


SPACED: list[dict[str, Any]] = [
    {"start": 0, "stop": 1, "num": 5},
    {"start": 0, "stop": 1, "num": 5, "endpoint": False},
    {"start": -3, "stop": 10, "num": 7},
    {"start": 10.2, "stop": -3.7, "num": 6},
    {"start": 2, "stop": 10, "num": 1},
    {"start": 2, "stop": 10, "num": 0},
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("attrs", SPACED, ids=str)
def test_linspace(attrs: dict[str, Any], dtype: str) -> None:
    check("_linspace", dtype=dtype, **attrs)


POWERS: list[dict[str, Any]] = [
    {"start": 0, "stop": 1, "num": 5},
    {"start": 0, "stop": 1, "num": 5, "endpoint": False},
    {"start": 1, "stop": 3, "num": 4, "base": 2.0},
    {"start": -1, "stop": 2, "num": 3, "base": 3.0},
    {"start": 1, "stop": 3, "num": 1},
    {"start": 1, "stop": 3, "num": 0},
]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("attrs", POWERS, ids=str)
def test_logspace(attrs: dict[str, Any], dtype: str) -> None:
    check("_npi_logspace", dtype=dtype, **attrs)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float16", "uint8"])
@pytest.mark.parametrize("dimensions", [(2, 3), (4,), (0, 3), (2, 1, 3), ()], ids=str)
def test_indices(dimensions: tuple[int, ...], dtype: str) -> None:
    check("_npi_indices", dimensions=dimensions, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("length", [7, 4, 1, 0, -2])
@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman"])
def test_windows(name: str, length: int, dtype: str) -> None:
    check(f"_npi_{name}", M=length, dtype=dtype)


@pytest.mark.parametrize(("number", "dtype"), [(0, "float32"), (4, "int32"), (6, "int64")])
def test_zeros_whose_dtype_is_numbered(number: int, dtype: str) -> None:
    """Read from a graph only: MXNet's own functions take no such number."""
    attrs = {"shape": "(2, 3)", "dtype": str(number), "ctx": "cpu(0)"}
    node = {"op": "_zeros_without_dtype", "name": "z", "attrs": attrs, "inputs": []}
    net = {"nodes": [node], "arg_nodes": [], "heads": [[0, 0, 0]]}
    made = import_mxnet().sym.load_json(json.dumps(net))
    model = agree(made, {})
    assert model.main.body.checked_type.dtype == dtype


def test_zeros_whose_dtype_is_not_given_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="what they meet"):
        serde.to_relay(make("_zeros_without_dtype", shape=(2,)))


@pytest.mark.parametrize("name", ["zeros_like", "ones_like"])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_dtype_that_mxnet_notes_and_ignores(name: str, dtype: str) -> None:
    mx = import_mxnet()
    like = getattr(mx.sym, name)(mx.sym.var("x"), dtype=dtype)
    agree(like, {"x": np.ones((2, 3), np.float32)})
