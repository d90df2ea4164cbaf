"""Relax's side of the bridge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames
from serde.engine.base import Engine
from serde.relax.options import RelaxExportOptions, RelaxImportOptions
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    from serde.relax.model import RelaxModel

__all__ = ["BRIDGE", "RelaxBridge"]


class RelaxBridge(PackageBridge["RelaxModel", RelaxImportOptions, RelaxExportOptions]):
    """Reads and writes modules of Relax."""

    name = "relax"
    title = "Relax (TVM 0.22 to 0.27)"
    package = __package__
    suffixes = ("_relax",)
    package_suffixes = ("_relax",)
    import_options = RelaxImportOptions
    export_options = RelaxExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is a ``tvm.IRModule`` that holds functions of Relax."""
        from serde.relax import codec

        return codec.is_module(source)

    def load(self, source: AnyValue, params: AnyValue, options: RelaxImportOptions) -> RelaxModel:
        """Return the module of a folder, or a live one with its parameters by name."""
        from serde.relax import codec

        return codec.load(source, params, options.function)

    def engine(self, model: RelaxModel, relay_model: RelayModel) -> Engine:
        """Return TVM's virtual machine, in a process of its own."""
        from serde.relax.engine import open_model

        return open_model(model)

    def file_engine(self, path: Path) -> Engine | None:
        """Return what runs a folder, also of functions of TIR, which are not read as Relay."""
        from serde.relax import codec
        from serde.relax.engine import open_model

        return open_model(codec.load(path, None))

    def complete(self, model: RelaxModel) -> AnyValue:
        """Return the module; ``tvm.relax.frontend.detach_params`` gives its weights."""
        from serde.relax.live import to_live

        return to_live(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return the operators that are read, and the Relay operators that are written."""
        from serde.relax.import_functions import FunctionWalk
        from serde.relax.import_walk import PLAIN
        from serde.relax.ops import TABLE

        known = *FunctionWalk.calls, *PLAIN
        read = [(op, "read") for op in (*known, *(op for op, _ in TABLE.imported()))]
        return read + [(op, f"written{TABLE.taken(op)}") for op in TABLE.written()]

    def operators(self, model: RelaxModel) -> list[str]:
        """Return the operator of every call."""
        from serde.relax.live import operators_of

        return operators_of(model)

    def names(self, model: RelaxModel) -> TensorNames:
        """Return the names of inputs, outputs, weights and variables."""
        from serde.relax.live import names_of

        return names_of(model)

    def summary(self, model: RelaxModel) -> ModelSummary:
        """Return the inputs and the weights."""
        from serde.relax.live import summary_of

        return summary_of(model)


BRIDGE = RelaxBridge()
