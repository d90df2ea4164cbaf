"""Engines of a check: a file read as what it is compared with, names changed, results kept.

What runs a model is its format's own (:meth:`serde.bridge.contract.Bridge.engine`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any as AnyValue

import numpy as np

from serde.bridge.contract import AnyBridge
from serde.core import Array, Report
from serde.engine.base import Engine, run_engine
from serde.engine.fitting import match_names
from serde.engine.foreign import has_kernel
from serde.engine.interpreter import RelayEngine
from serde.engine.process import EngineEnded
from serde.errors import CheckError, OptionError, RelayError, UnsupportedModelError
from serde.relay.ir.foreign import Foreign, foreign_calls
from serde.relay.ir.model import OpenedLengths, RelayModel
from serde.relay.ir.types import TensorType

__all__ = [
    "KEPT", "RememberingEngine", "WrappedEngine", "engine_for_path", "read_native", "read_target",
    "renamed_engine", "source_engine",
]  # fmt: skip


class WrappedEngine(Engine):
    """An engine that another does the work of."""

    def __init__(self, engine: Engine) -> None:
        self.name = engine.name
        self.inputs = engine.inputs
        self.outputs = engine.outputs
        self.optimizer = engine.optimizer
        self.computes_on_codes = engine.computes_on_codes
        self._engine = engine

    @property
    def computes_float16(self) -> bool:
        """Whether it is known that the model computes in float16."""
        return self._engine.computes_float16

    def unoptimized(self) -> Engine | None:
        """Return the engine without its optimisations, None where it has none to leave off."""
        return self._engine.unoptimized()

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


class RememberingEngine(WrappedEngine):
    """An engine that, given the same inputs again, returns the results that it had."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._known: tuple[Mapping[str, Array], list[Array]] | None = None

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order."""
        if self._known is None or self._known[0] is not inputs:
            self._known = None
            self._known = inputs, self._engine.run(inputs)
        return self._known[1]


def source_engine(bridge: AnyBridge, native: AnyValue, model: RelayModel) -> Engine:
    """Return what runs a source as it was read: with fixed inputs, and at lengths not its own."""
    engine = bridge.engine(native, model)
    if isinstance(engine, RelayEngine):
        return engine
    if model.meta.fixed:
        engine = _FixedEngine(engine, model.meta.fixed)
    opened = model.meta.opened
    return engine if opened is None else _OpenedEngine(engine, model, opened)


class _FixedEngine(WrappedEngine):
    """A source of which some inputs always have the same values."""

    def __init__(self, engine: Engine, fixed: Mapping[str, Array]) -> None:
        super().__init__(engine)
        self.inputs = {name: each for name, each in engine.inputs.items() if name not in fixed}
        self._fixed = fixed

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order."""
        return self._engine.run({**inputs, **self._fixed})


class _OpenedEngine(WrappedEngine):
    """A source that may run at its own lengths alone.

    The entries of a batch are then given to it one after the other; where that is no way, the
    interpreter runs what it was read as.
    """

    def __init__(self, engine: Engine, model: RelayModel, opened: OpenedLengths) -> None:
        super().__init__(engine)
        self._model = model
        self._opened = opened

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Return the outputs in the model's order."""
        if not self._opened.rewritten:
            try:
                return run_engine(self._engine, inputs)
            except EngineEnded:
                raise
            except CheckError:
                pass
        batch = None if None in self._opened.outputs else self._opened.batch
        if batch is None or not self._are_own(inputs, but=batch):
            own = self._engine if self._are_own(inputs) else RelayEngine(self._model)
            return run_engine(own, inputs)
        pieces = [run_engine(self._engine, each) for each in self._entries(inputs)]
        return [
            np.concatenate(each, axis)
            for axis, each in zip(self._opened.outputs, zip(*pieces, strict=True), strict=True)
            if axis is not None
        ]

    def _are_own(self, inputs: Mapping[str, Array], but: str | None = None) -> bool:
        """Whether lengths are those of the source, but for one."""
        given = {
            getattr(dim, "name", None): length
            for each in self._model.inputs()
            if isinstance(each.type, TensorType)
            for dim, length in zip(each.type.shape, inputs[each.name_hint].shape, strict=True)
        }
        own = self._opened.lengths.items()
        return all(given.get(name) == length for name, length in own if name != but)

    def _entries(self, inputs: Mapping[str, Array]) -> Iterator[Mapping[str, Array]]:
        """Yield the inputs of each entry."""
        axes = self._opened.inputs
        name = next(iter(axes))
        for index in range(inputs[name].shape[axes[name]]):
            yield {
                key: value.take([index], axes[key]) if key in axes else value
                for key, value in inputs.items()
            }


KEPT: Mapping[str, AnyValue] = {"keep_unknown": True}
"""Options with which models are read to be run: what nobody knows, its framework may run."""


def renamed_engine(engine: Engine, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Engine:
    """Return an engine under other names; the engine itself if there are none.

    Args:
        engine: The engine.
        inputs: New names of inputs by their names.
        outputs: New names of outputs by their names.
    """
    return _RenamedEngine(engine, inputs, outputs) if inputs or outputs else engine


class _RenamedEngine(WrappedEngine):
    def __init__(
        self, engine: Engine, inputs: Mapping[str, str], outputs: Mapping[str, str]
    ) -> None:
        super().__init__(engine)
        self.inputs = {inputs.get(k, k): v for k, v in engine.inputs.items()}
        self.outputs = [outputs.get(name, name) for name in engine.outputs]
        self._names = inputs, outputs
        self._own = {new: old for old, new in inputs.items()}

    def run(self, inputs: Mapping[str, Array]) -> list[Array]:
        """Run the engine on inputs under its own names."""
        return self._engine.run({self._own.get(k, k): value for k, value in inputs.items()})

    def unoptimized(self) -> Engine | None:
        """Return the engine without its optimisations, if it has such a form."""
        engine = self._engine.unoptimized()
        return None if engine is None else _RenamedEngine(engine, *self._names)


def engine_for_path(
    bridge: AnyBridge, path: Path, declared: Mapping[str, TensorType] | None = None
) -> Engine:
    """Return what runs a file.

    Args:
        bridge: Its format.
        path: Where it is.
        declared: Types of the inputs of the model that it is compared with, for a file that does
            not tell them itself, as MXNet's symbols; inputs belong together by name, or else by
            their place.

    Raises:
        CheckError: No engine can run this format, or the engine refuses the file.
        FormatError: The file is malformed.
        OptionError: Neither the file nor `declared` tells the shape of an input.
    """
    try:
        engine = bridge.file_engine(path)
    except CheckError as refusal:
        return _engine_of_foreign(bridge, path, declared, refusal)
    return bridge.engine(*read_target(bridge, path, declared)) if engine is None else engine


def _engine_of_foreign(
    bridge: AnyBridge, path: Path, declared: Mapping[str, TensorType] | None, refusal: CheckError
) -> Engine:
    """Return what runs a file that its framework refuses for operators that functions here run."""
    try:
        native, model = read_target(bridge, path, declared)
    except (CheckError, OptionError, RelayError, UnsupportedModelError):
        raise refusal from None
    kept = [Foreign.of(call) for call in foreign_calls(model)]
    if not kept or not all(has_kernel(each) or bridge.may_run_foreign(each) for each in kept):
        raise refusal
    return bridge.engine(native, model)


def read_target(
    bridge: AnyBridge, path: Path, declared: Mapping[str, TensorType] | None = None
) -> tuple[AnyValue, RelayModel]:
    """Return the native model of a file, and the same as Relay.

    Args:
        bridge: Its format.
        path: Where it is.
        declared: Types of the inputs of the model that it is compared with.

    Raises:
        CheckError: The format cannot be read.
        OptionError: Neither the file nor `declared` tells the shape of an input.
    """
    if bridge.import_options is None:
        raise CheckError(f"no engine runs files of format {bridge.name}")
    native = bridge.load(path, None, bridge.bind_import(KEPT))
    return native, read_native(bridge, native, declared)


def read_native(
    bridge: AnyBridge, native: AnyValue, declared: Mapping[str, TensorType] | None = None
) -> RelayModel:
    """Return a loaded model as Relay, with types of inputs that it does not tell from elsewhere.

    Args:
        bridge: Its format.
        native: The model.
        declared: Types of the inputs of the model that it is compared with.

    Raises:
        OptionError: Neither the model nor `declared` tells the shape of an input.
    """
    title = f"{bridge.name} -> relay"
    failure: Exception | None = None
    for bound in chain(
        [bridge.bind_import(KEPT)], _options_with_types(bridge, native, declared or {})
    ):
        try:
            return bridge.to_relay(native, bound, report=Report(title))
        except (OptionError, RelayError, UnsupportedModelError) as error:
            failure = failure or error
    raise failure or CheckError(f"no engine runs a model of format {bridge.name}")


def _options_with_types(
    bridge: AnyBridge, native: AnyValue, declared: Mapping[str, TensorType]
) -> Iterator[AnyValue]:
    """Yield options of reading with the types that inputs have in another model, or the shapes."""
    if not declared:
        return
    own = match_names(bridge.names(native).inputs, list(declared))
    types = {name: declared[other] for name, other in own.items()}
    shapes = {name: type_.shape for name, type_ in types.items()}
    dtypes = {name: type_.dtype for name, type_ in types.items()}
    yield bridge.bind_import({**KEPT, "input_shapes": shapes, "input_dtypes": dtypes})
    yield bridge.bind_import({**KEPT, "input_shapes": shapes})
