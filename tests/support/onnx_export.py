"""Expressions as ONNX models, and what ONNX Runtime computes for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from support.runtime import newest_runtime_opset, open_session

import serde.relay as relay
from serde.core.report import Report
from serde.onnx.exporter import from_relay
from serde.relay.ir.dims import Dim, symbol
from serde.relay.ir.expr import Expr, Tuple, TupleWrapper, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

OPSETS = [11, 13, 17, 21, newest_runtime_opset()]


def var(name: str, *shape: Any, dtype: str = "float32") -> Var:
    """An input; a dimension may be a symbol."""
    return relay.var(name, shape=shape, dtype=dtype)


def export(body: Expr, variables: list[Var], opset: int = 17, outputs: int = 1) -> onnx.ModelProto:
    """An expression of variables as a model."""
    names = tuple(each.name_hint for each in variables)
    mod = IRModule({"main": relay.Function(variables, body)})
    meta = ModelMeta(names, tuple(f"out{i}" for i in range(outputs)))
    return from_relay(RelayModel(mod, {}, meta), opset, True, Report()).complete()


def evaluate(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What ONNX Runtime computes, or ONNX's reference where that has no kernel."""
    try:
        session = open_session(proto.SerializeToString())
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(proto).run(None, feeds)
    return session.run(None, feeds)


def run(
    body: Expr, variables: list[Var], arrays: list[np.ndarray], opset: int = 17, outputs: int = 1
) -> list[np.ndarray]:
    """What ONNX Runtime computes for an expression."""
    proto = export(body, variables, opset, outputs)
    feeds = {each.name_hint: array for each, array in zip(variables, arrays, strict=True)}
    return open_session(proto.SerializeToString()).run(None, feeds)


def run_exported(
    build: Callable[..., Any],
    *arrays: np.ndarray,
    opset: int,
    symbolic: Sequence[tuple[int, int]] = (),
) -> list[np.ndarray]:
    """What a graph of variables for `arrays` gives in ONNX Runtime.

    Args:
        build: Makes the body of the function of its variables.
        arrays: Their values.
        opset: Version that is written.
        symbolic: (variable, axis) pairs whose lengths the model does not know.
    """

    def dim(number: int, axis: int, length: int) -> Dim:
        return symbol(f"d{number}_{axis}") if (number, axis) in symbolic else length

    variables = [
        var(f"x{number}", *[dim(number, *each) for each in enumerate(x.shape)], dtype=x.dtype)
        for number, x in enumerate(arrays)
    ]
    body = build(*variables)
    fields: list[Expr] = list(body) if isinstance(body, TupleWrapper) else [body]
    whole = Tuple(fields) if len(fields) > 1 else fields[0]
    return run(whole, variables, list(arrays), opset, len(fields))
