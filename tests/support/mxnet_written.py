"""Expressions of Relay as MXNet runs what is written of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import serde.relay as relay
from serde.compat import import_mxnet
from serde.core.report import Report
from serde.errors import MissingDependency
from serde.mxnet.engine import MxnetEngine, mxnet_program
from serde.mxnet.exporter import from_relay
from serde.relay.ir.expr import Expr, Function, Var
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType

__all__ = ["run_built", "run_written"]


def run_written(
    params: Sequence[Var], body: Expr, arrays: Sequence[Any], *, outputs: int = 1
) -> list[np.ndarray]:
    """The results of a function, written for MXNet 1.9.1 and run there.

    Args:
        params: Its parameters.
        body: What it gives.
        arrays: A value for each parameter.
        outputs: How many tensors it gives.
    """
    try:
        mxnet = import_mxnet()
    except MissingDependency as error:
        pytest.skip(str(error))
    mod = relay.transform.InferType()(IRModule.from_expr(Function(params, body)))
    names = tuple(param.name_hint for param in params)
    model = RelayModel(mod, {}, ModelMeta(names, tuple(f"out{i}" for i in range(outputs))))
    engine = MxnetEngine(mxnet, mxnet_program(from_relay(model, Report()), model))
    return engine.run(dict(zip(names, arrays, strict=True)))


def run_built(build: Callable[..., Expr], *arrays: np.ndarray) -> Any:
    """What an expression of variables like `arrays` gives in MXNet for these."""
    params = [Var(f"x{i}", TensorType(x.shape, x.dtype.name)) for i, x in enumerate(arrays)]
    return run_written(params, build(*params), arrays)[0]
