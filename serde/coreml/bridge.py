"""Core ML as a format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames
from serde.core.report import Report
from serde.coreml.options import CoremlExportOptions, CoremlImportOptions
from serde.errors import OptionError
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    import coremltools

    from serde.coreml.model import CoremlModel

__all__ = ["BRIDGE", "CoremlBridge"]


def _as_layers(version: int | None) -> str:
    """Return what a list of operators says of one that is written as layers, too."""
    return "" if version is None else f"; in layers, from iOS{max(version, 13)}"


def _kinds(model: AnyValue) -> list[str]:
    """Return the kinds of the models of a pipeline."""
    models = model.pipeline.models if model.is_pipeline else ()
    return [str(each.WhichOneof("Type")) for each in models]


class CoremlBridge(PackageBridge["CoremlModel", CoremlImportOptions, CoremlExportOptions]):
    """Reads and writes Core ML models."""

    name = "coreml"
    title = "Core ML"
    package = __package__
    writer = "writer"
    compressor = "serde.coreml.compress"
    keeps_metadata = True
    suffixes = (".mlpackage", ".mlmodel")
    package_suffixes = (".mlpackage",)
    import_options = CoremlImportOptions
    export_options = CoremlExportOptions

    def detect(self, path: Path) -> bool:
        """Whether `path` is a package or a file with a Core ML model."""
        from serde.coreml.reader import detect

        return detect(path)

    def accepts(self, source: object) -> bool:
        """Whether `source` is an ``MLModel`` of coremltools, or a message of one."""
        kind = type(source)
        descriptor = getattr(kind, "DESCRIPTOR", None)
        if getattr(descriptor, "full_name", None) == "CoreML.Specification.Model":
            return True
        return kind.__name__ == "MLModel" and kind.__module__.partition(".")[0] == "coremltools"

    def load(self, source: AnyValue, params: AnyValue, options: CoremlImportOptions) -> CoremlModel:
        """Return the model of a path, bytes or a live object; weights stay where they are."""
        from serde.coreml.reader import load

        if params is not None:
            raise OptionError("a Core ML model holds its weights; none can be given beside it")
        return load(source)

    def to_relay(
        self, model: CoremlModel, options: CoremlImportOptions, *, report: Report
    ) -> RelayModel:
        """Return the model as Relay."""
        from serde.coreml.pipeline import model_to_relay

        return model_to_relay(model, options, report)

    def expected(
        self, model: RelayModel, native: CoremlModel, options: CoremlExportOptions
    ) -> RelayModel:
        """Return the model with pixels as image inputs, under the names that were written."""
        from serde.coreml.interface.adapters import expected_of
        from serde.coreml.interface.planning import plan
        from serde.coreml.mlprogram.states import plan_states, with_states_last
        from serde.coreml.versions import TARGETS

        target = TARGETS[options.minimum_deployment_target]
        states = plan_states(model, options, target, Report())
        model = with_states_last(model, states)
        interface = plan(model, options, target)
        return expected_of(model, interface, native.spec.description, states)

    def complete(self, model: CoremlModel) -> coremltools.models.MLModel:
        """Return the ``MLModel`` of coremltools, whose package lies in a temporary directory."""
        from serde.coreml.writer import complete

        return complete(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return MIL's operators, the layers of NeuralNetworks and what is written of Relay."""
        from serde.coreml.mlprogram.operators import CORE, LAYER_KINDS, layer_remark, remark
        from serde.coreml.mlprogram.ops import TABLE
        from serde.coreml.neuralnetwork.ops import LAYERS
        from serde.relay.ir.registry import all_ops

        layered = LAYERS.exported()
        read = {op for op, _version in TABLE.imported()}
        rows = [(op, remark(op) + _as_layers(layered.get(op))) for op in sorted(CORE | read)]
        rows += [(f"{kind} (layer)", layer_remark(kind)) for kind in sorted(LAYER_KINDS)]
        exported = TABLE.exported()
        for op, definition in sorted(all_ops().items()):
            if op in exported:
                rows.append((op, f"written, from iOS{max(exported[op], 15)}{TABLE.taken(op)}"))
            elif (TABLE.expansion(op) or definition.decompose) is not None:
                rows.append((op, "written as others"))
        return rows

    def coverage_summary(self) -> str:
        """Return how many of MIL's operators and of the layers are read and written."""
        from serde.coreml.mlprogram.operators import (
            CORE,
            LAYER_KINDS,
            LAYERS_WRITTEN,
            NOT_READ,
            VERSION,
            WRITTEN,
        )
        from serde.coreml.mlprogram.ops import TABLE
        from serde.coreml.neuralnetwork.ops import LAYERS

        # Constants are read and written by the walks themselves.
        read = CORE & {"const", *(op for op, _version in TABLE.imported())}
        layers = LAYER_KINDS & ({kind for kind, _version in LAYERS.imported()} - set(NOT_READ))
        return (
            f"{len(read)} of {len(CORE)} operators of MIL and {len(layers)} of {len(LAYER_KINDS)} "
            f"layers read, {len(CORE & set(WRITTEN))} and {len(LAYERS_WRITTEN)} written "
            f"(coremltools {VERSION})"
        )

    def operators(self, model: CoremlModel) -> list[str]:
        """Return the operators of an ML Program or the layers of a NeuralNetwork."""
        from serde.coreml.model import layers, operations

        found = [op.type for op in operations(model.spec) if op.type != "const"]
        return found + [str(layer.WhichOneof("layer")) for layer in layers(model.spec)]

    def names(self, model: CoremlModel) -> TensorNames:
        """Return the names of inputs, outputs, constants and operations or layers."""
        from serde.coreml.interface.interface import description_of, tensors_of
        from serde.coreml.mlprogram.states import state_names
        from serde.coreml.model import layers, operations

        description = description_of(model.spec)
        nodes: list[str] = []
        weights: list[str] = []
        states, later = state_names(model.spec)
        for op in operations(model.spec):
            known = nodes if op.type != "const" else weights
            known.extend(each.name for each in op.outputs)
        nodes += [layer.name for layer in layers(model.spec)]
        return TensorNames(
            inputs=(*(each.name for each in description.input), *states),
            outputs=(*(each.name for each in tensors_of(description)), *later),
            weights=tuple(weights),
            nodes=tuple(nodes),
        )

    def summary(self, model: CoremlModel) -> ModelSummary:
        """Return the kind of the model, its inputs, outputs and weights."""
        from serde.coreml.interface.interface import description_of, feature_facts, feature_summary

        description = description_of(model.spec)
        weights = [*model.blobs.values(), *model.arrays.values()]
        metadata = model.spec.description.metadata
        functions = [each.name for each in model.spec.description.functions]
        facts = {
            "kind": model.kind,
            "models": ", ".join(_kinds(model)),
            "functions": ", ".join(functions),
            "author": metadata.author,
            "license": metadata.license,
            "model version": metadata.versionString,
            "description": metadata.shortDescription,
            **feature_facts(model),
        }
        return ModelSummary(
            version=f"specification {model.spec.specificationVersion}",
            inputs=tuple(feature_summary(each) for each in description.input),
            outputs=tuple(feature_summary(each) for each in description.output),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            facts={name: value for name, value in facts.items() if value},
        )


BRIDGE = CoremlBridge()
