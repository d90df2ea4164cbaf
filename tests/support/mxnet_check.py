"""One graph of MXNet in Relay's interpreter and in ONNX Runtime, against MXNet itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support.oracle import run_mxnet
from support.runtime import newest_runtime_opset, run_onnx

import serde
from serde.compat import import_mxnet
from serde.errors import UnsupportedModelError
from serde.relay.ir.model import RelayModel
from serde.relay.run.interpreter import run

TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-11}


def run_under(symbol: Any, inputs: Mapping[str, np.ndarray], *, numpy: bool) -> list[np.ndarray]:
    """The outputs that MXNet computes, with NumPy's shapes (scalars, empty tensors) or its own."""
    with import_mxnet().util.np_shape(numpy):
        return run_mxnet(symbol, {}, inputs)


def agree(
    symbol: Any,
    inputs: Mapping[str, np.ndarray],
    *,
    numpy: bool = False,
    tolerance: float | None = None,
    opsets: Sequence[int] | None = None,
    not_in_onnx: str | None = None,
    returns: bool = False,
    expected: Sequence[np.ndarray] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> RelayModel:
    """Compare all outputs of a graph without parameters: values, shapes and dtypes.

    Args:
        symbol: The graph.
        inputs: Values of all its variables, in order.
        numpy: Whether MXNet runs it with NumPy's shapes.
        tolerance: Relative and absolute; by the dtype if left out, none for integers.
        opsets: Versions of ONNX; the newest that the runtime takes if left out.
        not_in_onnx: What the refusal to write ONNX says, where ONNX cannot say the graph.
        returns: Whether the graph is written back to MXNet and compared there too.
        expected: What MXNet computes, where it does so at once only and not as a graph.
        shapes: Shapes of inputs that are converted with lengths open, by name.
    """
    if expected is None:
        expected = run_under(symbol, inputs, numpy=numpy)
    model = serde.to_relay(
        symbol,
        input_shapes={name: value.shape for name, value in inputs.items()} | dict(shapes or {}),
        input_dtypes={name: value.dtype.name for name, value in inputs.items()},
    )
    fed = {name: inputs[name] for name in model.meta.inputs}
    result = run(model.main, list(fed.values()), mod=model.mod)
    same(result if isinstance(result, tuple) else (result,), expected, tolerance)
    if not_in_onnx is not None:
        with pytest.raises(UnsupportedModelError, match=not_in_onnx):
            serde.from_relay(model, format="onnx")
    else:
        for opset in opsets or [newest_runtime_opset()]:
            proto = serde.from_relay(model, format="onnx", opset=opset)
            same(run_onnx(proto.SerializeToString(), fed)[1], expected, tolerance)
    if returns:
        shapes = {name: value.shape for name, value in inputs.items()}
        dtypes = {name: value.dtype.name for name, value in inputs.items()}
        again, params = serde.import_model(symbol, input_shapes=shapes, input_dtypes=dtypes)
        marked = numpy or '"is_np_shape"' in again.tojson()
        with import_mxnet().util.np_shape(marked):
            left = {name: fed[name] for name in fed if name in again.list_inputs()}
            same(run_mxnet(again, params, left), expected, tolerance)
    return model


def same(
    found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float | None = None
) -> None:
    """Compare lists of results."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        bound = TOLERANCE.get(theirs.dtype.name, 0.0) if tolerance is None else tolerance
        np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)
