"""Engines: what can run a model on arrays, to compare two of them.

The source is run by its own framework where that is installed and by the Relay
interpreter otherwise; an ONNX file by ONNX Runtime where that is installed and
by ONNX's reference implementation otherwise; a file of another format is read
back and run by the Relay interpreter. What is written in C++ runs in a process
of its own (:mod:`serde.checking.process`).
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any as AnyValue
from typing import Protocol

from serde._optional import require
from serde.bridge import Bridge, get_bridge
from serde.checking import process
from serde.checking.fitting import match_names
from serde.checking.frameworks import (
    MxnetEngine,
    OnnxReferenceEngine,
    OnnxRuntimeEngine,
    RelayEngine,
    first_line,
    mxnet_program,
)
from serde.errors import (
    CheckError,
    MissingDependency,
    OptionError,
    RelayError,
    UnsupportedModelError,
)
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import TensorType
from serde.report import Report
from serde.weights import Array

__all__ = [
    "Engine",
    "RememberingEngine",
    "engine_for_path",
    "engine_for_source",
    "plain_engine",
    "read_target",
    "renamed_engine",
    "run_engine",
]


class Engine(Protocol):
    """Something that runs one model.

    Attributes:
        name: What runs it, with its version.
        inputs: dtype of each input by name, in the model's order; empty where not known.
        outputs: Names of the outputs in the model's order; several may have one name.
    """

    name: str
    inputs: Mapping[str, str]
    outputs: Sequence[str]

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order, for inputs by name or else by place."""
        ...

    def close(self) -> None:
        """Let go of what the engine holds; it cannot run afterwards."""
        ...


def run_engine(engine: Engine, inputs: Mapping[str, Array]) -> list[Array]:
    """Run an engine; its results are as many as its outputs.

    Raises:
        CheckError: The engine failed; it is named.
    """
    try:
        results = engine.run(inputs)
    except CheckError:
        raise
    except Exception as error:
        raise CheckError(f"{engine.name} failed: {first_line(error)}") from error
    if len(results) != len(engine.outputs):
        raise CheckError(
            f"{engine.name}: expected {len(engine.outputs)} outputs, found {len(results)}"
        )
    return results


def plain_engine(engine: Engine) -> Engine | None:
    """Return an engine without its optimisations, None where it has none to leave off.

    Raises:
        CheckError: It refuses the model then.
    """
    find = getattr(engine, "plain", None)
    return None if find is None else find()


class RememberingEngine:
    """An engine that, given the same inputs again, returns the results that it had."""

    def __init__(self, engine: Engine) -> None:
        self.name = engine.name
        self.inputs = engine.inputs
        self.outputs = engine.outputs
        self._engine = engine
        self._known: tuple[Mapping[str, Array], list[Array]] | None = None

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order."""
        if self._known is None or self._known[0] is not inputs:
            self._known = None
            self._known = inputs, self._engine.run(inputs)
        return self._known[1]

    def plain(self) -> Engine | None:
        """Return the engine without its optimisations, None where it has none to leave off."""
        return plain_engine(self._engine)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def engine_for_source(format_name: str, native: AnyValue, model: RelayModel) -> Engine:
    """Return what runs the source of a conversion.

    MXNet has no float16 matrix product on the CPU, so the Relay interpreter runs
    models with float16 weights.

    Args:
        format_name: Format of the source.
        native: The model as its bridge loaded it.
        model: The same as Relay.

    Raises:
        CheckError: The framework is there but refuses the model.
    """
    narrow = any(weight.dtype == "float16" for weight in model.params.values())
    if format_name == "onnx":
        return _onnx_engine(native)
    if format_name == "mxnet" and not narrow and _is_installed("mxnet"):
        return _mxnet_engine(native, model)
    return RelayEngine(model)


def renamed_engine(engine: Engine, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Engine:
    """Return an engine under other names; the engine itself if there are none.

    Args:
        engine: The engine.
        inputs: New names of inputs by their names.
        outputs: New names of outputs by their names.
    """
    return _Renamed(engine, inputs, outputs) if inputs or outputs else engine


class _Renamed:
    def __init__(
        self, engine: Engine, inputs: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        self.name = engine.name
        self.inputs: Mapping[str, str] = {inputs.get(k, k): v for k, v in engine.inputs.items()}
        self.outputs: Sequence[str] = [outputs.get(name, name) for name in engine.outputs]
        self._engine = engine
        self._names = inputs, outputs
        self._own = {new: old for old, new in inputs.items()}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the engine on inputs under its own names."""
        return self._engine.run({self._own.get(k, k): value for k, value in inputs.items()})

    def plain(self) -> Engine | None:
        """Return the engine without its optimisations, if it has such a form."""
        open_plain = getattr(self._engine, "plain", None)
        engine = None if open_plain is None else open_plain()
        return None if engine is None else _Renamed(engine, *self._names)

    def close(self) -> None:
        """Let go of what the engine holds."""
        self._engine.close()


def engine_for_path(
    format_name: str, path: Path, declared: Mapping[str, TensorType] | None = None
) -> Engine:
    """Return what runs a file.

    Args:
        format_name: Its format.
        path: Where it is.
        declared: Types of the inputs of the model that it is compared with, for a file that does
            not tell them itself, as MXNet's symbols; inputs belong together by name, or else by
            their place.

    Raises:
        CheckError: No engine can run this format, or the engine refuses the file.
        FormatError: The file is malformed.
        OptionError: Neither the file nor `declared` tells the shape of an input.
    """
    if format_name == "onnx":
        return _onnx_path_engine(path)
    native, model = read_target(format_name, path, declared)
    return engine_for_source(format_name, native, model)


def read_target(
    format_name: str, path: Path, declared: Mapping[str, TensorType] | None = None
) -> tuple[AnyValue, RelayModel]:
    """Return the native model of a file, and the same as Relay.

    Args:
        format_name: Its format.
        path: Where it is.
        declared: Types of the inputs of the model that it is compared with.

    Raises:
        CheckError: The format cannot be read.
        OptionError: Neither the file nor `declared` tells the shape of an input.
    """
    bridge = get_bridge(format_name)
    if bridge.import_options is None:
        raise CheckError(f"no engine runs files of format {format_name}")
    options = bridge.import_options()
    native = bridge.load(path, None, options)
    title = f"{format_name} -> relay"
    failure: Exception | None = None
    for bound in chain([options], _declaring(bridge, native, declared or {})):
        try:
            return native, bridge.to_relay(native, bound, report=Report(title))
        except (OptionError, RelayError, UnsupportedModelError) as error:
            failure = failure or error
    raise failure or CheckError(f"no engine runs {path}")


def _declaring(
    bridge: Bridge, native: AnyValue, declared: Mapping[str, TensorType]
) -> Iterator[AnyValue]:
    """Yield options of reading with the types that inputs have in another model, or the shapes."""
    if not declared:
        return
    try:
        own = bridge.names(native).inputs
    except OptionError:
        own = tuple(declared)
    types = {name: declared[other] for name, other in match_names(own, list(declared)).items()}
    shapes = {name: type_.shape for name, type_ in types.items()}
    dtypes = {name: type_.dtype for name, type_ in types.items()}
    yield bridge.bind_import({"input_shapes": shapes, "input_dtypes": dtypes})
    yield bridge.bind_import({"input_shapes": shapes})


def _is_installed(package: str) -> bool:
    """Whether a package is there, by its files: importing it is left to who runs it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ValueError:  # A module without a specification was put in its place.
        return package in sys.modules


def _mxnet_engine(native: AnyValue, model: RelayModel) -> Engine:
    program = mxnet_program(native, model)
    try:
        if process.can_start():
            return process.open_mxnet(program)
        return MxnetEngine(require("mxnet"), program)
    except MissingDependency:
        return RelayEngine(model)


def _onnx_path_engine(path: Path) -> Engine:
    """Return what runs an ONNX file; of one that is refused, say what is malformed in it."""
    try:
        return _onnx_file_engine(path)
    except process.EngineEnded:
        raise
    except CheckError:
        bridge = get_bridge("onnx")
        bridge.load(path, None, bridge.bind_import({}))
        raise


def _onnx_file_engine(path: Path) -> Engine:
    if not _is_installed("onnxruntime"):
        return OnnxReferenceEngine(path)
    try:
        if process.can_start():
            return process.open_onnxruntime(path)
        return OnnxRuntimeEngine(require("onnxruntime"), path)
    except MissingDependency:
        return OnnxReferenceEngine(path)


def _onnx_engine(native: AnyValue) -> Engine:
    """Return what runs a loaded ONNX model: it is written for that, and then removed."""
    from serde.onnx import codec

    with tempfile.TemporaryDirectory() as directory:
        path = codec.save(native, Path(directory) / "source.onnx")
        try:
            return engine_for_path("onnx", path)
        except process.EngineEnded:
            raise
        except CheckError:
            return OnnxReferenceEngine(path)
