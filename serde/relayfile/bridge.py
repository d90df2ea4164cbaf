"""Relay's side of the bridge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.formats import PIVOT
from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.core import Array, Report
from serde.io.atomic import check_files
from serde.relay.ir import Call, IRModule, OpDef, RelayModel, TupleType, all_ops, post_order
from serde.relayfile.options import RelayExportOptions, RelayImportOptions

if TYPE_CHECKING:
    from serde.io.pairs import Neighbours
    from serde.relayfile.model import RelayProgram

__all__ = ["BRIDGE", "RelayBridge"]


class RelayBridge(PackageBridge["RelayProgram", RelayImportOptions, RelayExportOptions]):
    """Reads and writes Relay text, or TVM's JSON of a module, with TVM's parameter file."""

    name = PIVOT
    title = "Relay (text or JSON, and TVM's parameter file)"
    package = __package__
    keeps_metadata = True
    suffixes = (".relay",)
    companion_suffixes = (".params",)
    import_options = RelayImportOptions
    export_options = RelayExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is a module, a function or a model, perhaps with parameters."""
        from serde.relayfile import codec

        return codec.is_live(source)

    def load(self, source: AnyValue, params: AnyValue, options: RelayImportOptions) -> RelayProgram:
        """Return the model of a path, a pair of paths, text, bytes or a module."""
        from serde.relayfile import codec

        return codec.load(source, params, allow=options.allow)

    def companions(
        self, path: Path, options: RelayImportOptions, beside: Neighbours
    ) -> Sequence[str]:
        """Return the parameters beside a graph, or the graph beside parameters."""
        from serde.relayfile import codec

        return codec.companions(path, beside)

    def to_relay(
        self, model: RelayProgram, options: RelayImportOptions, *, report: Report
    ) -> RelayModel:
        """Return the model as Relay."""
        from serde.relayfile.graph import to_relay
        from serde.walk.fallback import ImportFallback

        ImportFallback.of(self.name, options).note_unused(report)
        if model.unused:
            shown = ", ".join(model.unused[:5]) + (", ..." if len(model.unused) > 5 else "")
            report.notes.append(f"parameters that main does not have: {shown}")
        return to_relay(
            model,
            shapes=options.input_shapes,
            dtypes=options.input_dtypes,
            lift_above=options.lift_constants,
        )

    def from_relay(
        self, model: RelayModel, options: RelayExportOptions, *, report: Report
    ) -> RelayProgram:
        """Return the module with its text and parameters."""
        from serde.relayfile.graph import from_relay

        return from_relay(model, strict=options.strict, allow=options.allow, report=report)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: RelayExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path of another suffix, one that cannot be written, and others' parameters."""
        from serde.relayfile import codec

        check_files([path], sources=sources)
        self.check_suffix(path, (*self.suffixes, ".json", ".txt", ""))
        codec.check_target(path, sources=sources, overwrite=overwrite)

    def complete(self, model: RelayProgram) -> tuple[IRModule, dict[str, Array]]:
        """Return the module and its parameters as arrays, as TVM's frontends do."""
        return model.mod, {name: weight.array() for name, weight in model.params.items()}

    def coverage(self) -> list[tuple[str, str]]:
        """Return every operator of Relay, with the first line of its documentation."""
        return [(name, op.doc.partition("\n")[0]) for name, op in all_ops().items()]

    def names(self, model: RelayProgram) -> TensorNames:
        """Return the names of inputs, outputs and parameters; nodes have none in the text."""
        from serde.relayfile.graph import to_relay

        found = to_relay(model, shapes={}, dtypes={}, lift_above=None)
        return TensorNames(found.meta.inputs, found.meta.outputs, tuple(found.params))

    def operators(self, model: RelayProgram) -> list[str]:
        """Return the operator of every call of every function."""
        nodes = post_order(*model.mod.functions.values())
        calls = (node.op for node in nodes if isinstance(node, Call))
        return [op.name for op in calls if isinstance(op, OpDef)]

    def summary(self, model: RelayProgram) -> ModelSummary:
        """Return inputs, outputs and the parameters of the parameter file."""
        from serde.relayfile.graph import to_relay

        relay_model = to_relay(model, shapes={}, dtypes={}, lift_above=None)
        result = relay_model.main.body.type
        types = result.fields if isinstance(result, TupleType) else (result,)
        weights = relay_model.params.values()
        return ModelSummary(
            version="0.0.5",
            inputs=tuple(
                TensorSummary.of(each.name_hint, each.type) for each in relay_model.inputs()
            ),
            outputs=tuple(map(TensorSummary.of, relay_model.meta.outputs, types)),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            facts={"functions": len(model.mod.functions)},
        )


BRIDGE = RelayBridge()
