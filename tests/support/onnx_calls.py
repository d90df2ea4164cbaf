"""Relay expressions written as ONNX and run in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from support.runtime import open_session

from serde.onnx.lower import from_relay
from serde.relay.dims import Dim, symbol
from serde.relay.expr import Expr, Function, Tuple, TupleWrapper, Var
from serde.relay.model import ModelMeta, RelayModel
from serde.relay.module import IRModule
from serde.relay.types import TensorType
from serde.report import Report

OPSETS = (11, 13, 17, 21)


def run_exported(
    build: Callable[..., Any],
    *arrays: np.ndarray,
    opset: int,
    symbolic: Sequence[tuple[int, int]] = (),
) -> list[np.ndarray]:
    """Return what a graph of the variables for `arrays` gives in ONNX Runtime.

    Args:
        build: Makes the body of the function of its variables.
        arrays: Their values.
        opset: Version that is written.
        symbolic: (variable, axis) pairs whose lengths the model does not know.
    """

    def dim(number: int, axis: int, length: int) -> Dim:
        return symbol(f"d{number}_{axis}") if (number, axis) in symbolic else length

    variables = [
        Var(f"x{number}", TensorType([dim(number, *each) for each in enumerate(x.shape)], x.dtype))
        for number, x in enumerate(arrays)
    ]
    body = build(*variables)
    fields: list[Expr] = list(body) if isinstance(body, TupleWrapper) else [body]
    outputs = tuple(f"out{place}" for place in range(len(fields)))
    whole = Tuple(fields) if len(fields) > 1 else fields[0]
    mod = IRModule({"main": Function(variables, whole)})
    inputs = tuple(each.name_hint for each in variables)
    model = RelayModel(mod, {}, ModelMeta(inputs, outputs))
    proto = from_relay(model, opset, False, Report()).complete()
    session = open_session(proto.SerializeToString())
    feeds = dict(zip(inputs, arrays, strict=True))
    return list(session.run(list(outputs), feeds))
