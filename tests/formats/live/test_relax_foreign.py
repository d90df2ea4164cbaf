"""Operators that Relay does not know, as modules of Relax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tvm")

from support.relax_run import compile_model, write_function

import serde.relay as relay
from serde.errors import UnsupportedModelError
from serde.relax.options import RelaxExportOptions
from serde.relay.ir.foreign import Foreign
from serde.relay.ir.types import TensorType

_NAME = "com.acme::Scale"


def _model() -> relay.Function:
    node = Foreign(
        framework="onnx",
        name="Scale",
        domain="com.acme",
        version=1,
        attributes={"factor": 2.5, "times": 3, "mode": "up", "axes": (1, 2), "sure": True},
        results=(TensorType((2, 3), "float32"),),
    )
    x = relay.var("x", shape=(2, 3))
    return relay.Function([x], relay.add(node.build([relay.negative(x)]), relay.const(1.0)))


def test_custom_operators_call_functions_of_their_name() -> None:
    model = write_function(_model(), RelaxExportOptions(custom_ops=(_NAME,)))
    given: list[Any] = []

    def scale(x: Any, *rest: Any) -> None:
        *attributes, out = rest
        given.extend(list(each) if hasattr(each, "__len__") else each for each in attributes)
        out.copyfrom(x.numpy() * np.float32(attributes[0]))

    register = pytest.importorskip("tvm_ffi").register_global_func
    register(_NAME, scale, override=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (found,) = compile_model(model)(x)
    np.testing.assert_array_equal(found, -x * np.float32(2.5) + 1)
    assert given == [2.5, 3, list("up"), [1, 2], True]


def test_custom_operators_need_consent() -> None:
    with pytest.raises(UnsupportedModelError, match=r"custom_ops=\['com.acme::Scale'\]"):
        write_function(_model())
