"""Models written as NNEF, and what judges make of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from support import nnef_reference
from support.samples import BuiltSample

from serde.core.report import Report
from serde.nnef import codec, writer
from serde.nnef.exporter import from_relay
from serde.nnef.importer import to_relay
from serde.nnef.model import NnefModel
from serde.nnef.options import NnefExportOptions, NnefImportOptions
from serde.relay.ir.leaves import leaf_types, value_types
from serde.relay.ir.model import ModelMeta, RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType, accepts
from serde.relay.run.interpreter import run

TOLERANCE = {"bfloat16": 2e-2, "float16": 2e-3, "float32": 2e-5, "float64": 2e-5}
"""By the dtype of the source; scalars of NNEF are read as float32 where no variable is wider."""

DRAWN = (
    "serde.bernoulli",
    "serde.multinomial",
    "serde.random_gamma",
    "serde.random_normal",
    "serde.random_poisson",
    "serde.random_uniform",
)
"""Operators of which the range is told only."""


def model_of(built: BuiltSample) -> RelayModel:
    """A sample as a model."""
    outputs = tuple(f"out{i}" for i in range(len(value_types(built.call.checked_type))))
    inputs = tuple(variable.name_hint for variable in built.variables)
    return RelayModel(IRModule({"main": built.function}), {}, ModelMeta(inputs, outputs))


@dataclass(frozen=True)
class Written:
    """A model that was written.

    Attributes:
        native: What serde reads of the folder.
        graph: What Khronos' parser reads of it, shapes inferred.
        names: What the source calls inputs, by identifier.
    """

    native: NnefModel
    graph: Any
    names: Mapping[str, str]

    def interpret(self, values: Mapping[str, Any]) -> list[np.ndarray]:
        """Return what Relay's interpreter gives; values have the dtypes that NNEF has for them."""
        return interpret(self.native, self._given(values))

    def evaluate(self, values: Mapping[str, Any]) -> list[np.ndarray]:
        """Return what the specification, read in NumPy, gives."""
        found = nnef_reference.run(self.graph, self._given(values))
        return [found[name] for name in self.graph.outputs]

    def _given(self, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return {name: np.asarray(values[self.names[name]]) for name in self.native.inputs}


def write(model: RelayModel, folder: Path) -> Written:
    """Write a model as a folder that Khronos' parser reads and infers as we do.

    Raises:
        UnsupportedModelError: It is refused.
    """
    native = from_relay(model, NnefExportOptions(), Report())
    writer.save(native, folder)
    nnef = importlib.import_module("nnef")
    graph = nnef.load_graph(str(folder), stdlib="", lowered=[])
    nnef.infer_shapes(graph)
    wanted = leaf_types(model.main.body.checked_type)
    for name, type_ in zip(graph.outputs, wanted, strict=True):
        found = graph.tensors[name].shape
        assert accepts(type_, TensorType(found, type_.dtype)), f"{name}: {found}"
        assert graph.tensors[name].dtype == _element(type_), f"{name}: elements"
    return Written(codec.load(folder), graph, native.names)


def _element(type_: TensorType) -> str:
    kind = np.dtype(type_.dtype).kind if type_.dtype != "bfloat16" else "f"
    return {"f": "scalar", "b": "logical"}.get(kind, "integer")


def interpret(native: NnefModel, values: Mapping[str, Any]) -> list[np.ndarray]:
    """Read a model into Relay and run that; the values have the dtypes that NNEF has for them."""
    model = to_relay(native, NnefImportOptions(), Report())
    arguments = []
    for parameter in model.main.params:
        name = parameter.name_hint
        if name in model.params:
            arguments.append(model.params[name].array())
        else:
            arguments.append(fitting(values[name], parameter.checked_type))
    result = run(model.main, arguments)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def fitting(value: Any, type_: Any) -> np.ndarray:
    """A value of an input in the dtype that it has where the file is read."""
    array = np.asarray(value)
    fitted = array.astype(type_.dtype)
    if array.dtype.kind in "iub":
        np.testing.assert_array_equal(fitted, array)
    return fitted


def compare(
    found: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float | None = None
) -> None:
    """Fail unless results are the same but for rounding and for widths of elements."""
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected, strict=True):
        wanted = np.asarray(wanted)
        kind = kind_of(wanted)
        assert actual.shape == wanted.shape
        assert kind_of(actual) == kind
        allowed = TOLERANCE.get(wanted.dtype.name, 0) if tolerance is None else tolerance
        if kind == "f":
            np.testing.assert_allclose(
                actual.astype(np.float64), wanted.astype(np.float64), rtol=allowed, atol=allowed
            )
        else:
            np.testing.assert_array_equal(actual, wanted)


def kind_of(array: np.ndarray) -> str:
    """``f``, ``i`` or ``b``, whatever the width of elements, those that NumPy lacks included."""
    dtype = np.asarray(array).dtype
    if dtype.type.__module__.startswith("ml_dtypes"):
        return "i" if "int" in dtype.name else "f"
    return "i" if dtype.kind == "u" else dtype.kind
