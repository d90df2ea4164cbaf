"""Expressions as ONNX models, and what ONNX Runtime computes for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from support.runtime import newest_runtime_opset, open_session

import serde.relay as relay
from serde.onnx.lower import from_relay
from serde.relay.expr import Expr, Var
from serde.relay.model import ModelMeta, RelayModel
from serde.relay.module import IRModule
from serde.report import Report

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


def run(
    body: Expr, variables: list[Var], arrays: list[np.ndarray], opset: int = 17, outputs: int = 1
) -> list[np.ndarray]:
    """What ONNX Runtime computes for an expression."""
    proto = export(body, variables, opset, outputs)
    feeds = {each.name_hint: array for each, array in zip(variables, arrays, strict=True)}
    return open_session(proto.SerializeToString()).run(None, feeds)
