"""Casts that MXNet's mixed precision puts into a graph, against MXNet itself."""

from __future__ import annotations

import numpy as np
import pytest
from support.mxnet_check import agree

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError

mx = import_mxnet()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("given", ["float16", "float32", "int32", "int8", "uint8"])
def test_amp_cast(given: str, dtype: str) -> None:
    data = np.array([[1.7, 3.2, 9, 0]]).astype(given)
    agree(mx.sym.amp_cast(mx.sym.var("x"), dtype=dtype), {"x": data})


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_amp_cast_leaves_integers(dtype: str) -> None:
    agree(mx.sym.amp_cast(mx.sym.var("x"), dtype=dtype), {"x": np.array([1, -3, 9], np.int32)})


def test_amp_cast_refuses_what_depends_on_the_build() -> None:
    symbol = mx.sym.amp_cast(mx.sym.var("x"), dtype="int32")
    with pytest.raises(UnsupportedModelError, match="oneDNN rounds"):
        serde.to_relay(symbol, input_shapes={"x": (3,)})
