"""Relay functions as modules of Relax, compiled and run by TVM."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from serde.core.report import Report
from serde.relax.engine import RelaxEngine
from serde.relax.exporter import from_relay
from serde.relax.model import RelaxModel
from serde.relax.options import RelaxExportOptions
from serde.relay.ir.expr import Function
from serde.relay.ir.leaves import leaf_names, value_types
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule

__all__ = ["compile_model", "run_function", "write_function"]


def write_function(function: Function, options: RelaxExportOptions | None = None) -> RelaxModel:
    """Return a function without weights as a module.

    Raises:
        UnsupportedModelError: Relax cannot say it.
    """
    mod = IRModule({"main": function})
    main = mod["main"]
    inputs = [
        name for each in main.params for name in leaf_names(each.name_hint, each.checked_type)
    ]
    outputs = [f"out{place}" for place in range(len(value_types(main.body.checked_type)))]
    model = RelayModel(mod, {}, ModelMeta(tuple(inputs), tuple(outputs)))
    return from_relay(model, options or RelaxExportOptions(), Report())


def compile_model(model: RelaxModel) -> Callable[..., list[np.ndarray]]:
    """Return what runs a module without weights on its inputs, in order."""
    engine = RelaxEngine(model.module, model.inputs, model.outputs, [])

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        return engine.run(dict(zip(model.inputs, map(np.asarray, arrays), strict=True)))

    return run


def run_function(function: Function, *arrays: np.ndarray) -> list[np.ndarray]:
    """Return what TVM computes for a function."""
    return compile_model(write_function(function))(*arrays)
