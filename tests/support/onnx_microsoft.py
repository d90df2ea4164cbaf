"""Nodes of ONNX Runtime's own domain, each a model of its own, judged by ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.onnx_suite import interpret
from support.runtime import OLD_RUNTIME, open_session

import serde

RNG = np.random.default_rng(7)

needs_newer_runtime = pytest.mark.skipif(
    OLD_RUNTIME, reason="ONNX Runtime 1.23 crashes in it, or gives other numbers"
)


def floats(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.normal(0, 1, shape).astype(dtype)


def levels(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def model_of(
    op: str, inputs: list[Any], outputs: int, domain: str, fixed: set[int], attrs: dict[str, Any]
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model of one node whose inputs at the places `fixed` are initializers."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    given = {name: np.asarray(x) for name, x in zip(names, inputs, strict=True) if name}
    kept = {name: x for name, x in given.items() if int(name[1:]) not in fixed}
    results = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, domain=domain, **attrs)],
        "g",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for n, x in kept.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(x, n) for n, x in given.items() if n not in kept],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), kept


def check(
    op: str,
    inputs: list[Any],
    *,
    outputs: int = 1,
    domain: str = "com.microsoft",
    fixed: set[int] | None = None,
    target: int = 17,
    rtol: float = 1e-5,
    atol: float = 1e-5,
    **attrs: Any,
) -> None:
    """Compare the interpreter, and an export to the operator set `target`, with ONNX Runtime."""
    model, given = model_of(op, inputs, outputs, domain, fixed or set(), attrs)
    expected = open_session(model.SerializeToString()).run(None, given)
    relay = serde.to_relay(model)
    again = serde.from_relay(relay, format="onnx", opset=target)
    second = open_session(again.SerializeToString()).run(None, given)
    for found in (interpret(relay, given), second):
        for wanted, value in zip(expected, found, strict=True):
            if wanted.dtype.kind == "f":
                assert (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(value, wanted, rtol, atol)
            else:
                np.testing.assert_array_equal(value, wanted, strict=True)
