"""Core ML as a format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any as AnyValue
from typing import Literal

from serde.bridge import Bridge, ExportOptions, ImportOptions, ModelSummary, TensorNames
from serde.errors import OptionError
from serde.relay.model import RelayModel
from serde.report import Report

__all__ = ["CoremlBridge", "CoremlExportOptions", "CoremlImportOptions"]


@dataclass(frozen=True, kw_only=True)
class CoremlImportOptions(ImportOptions):
    """Options of reading Core ML models.

    Attributes:
        function: Which function of an ML Program to read; the one it runs by default if left
            out.
    """

    function: str | None = field(
        default=None, metadata={"help": "Function of an ML Program to read."}
    )


@dataclass(frozen=True, kw_only=True)
class CoremlExportOptions(ExportOptions):
    """Options of writing Core ML models.

    Attributes:
        minimum_deployment_target: Oldest system that is to run the model: ``iOS15`` to ``iOS26``
            for ML Programs, ``iOS13`` or ``iOS14`` for NeuralNetworks.
        compute_precision: What a program computes in, float16 if left out; its inputs and outputs
            stay as they are. Of a NeuralNetwork what its weights are stored in, float32 if left
            out.
    """

    minimum_deployment_target: str = field(
        default="iOS15", metadata={"help": "Oldest system that is to run the model."}
    )
    compute_precision: Literal["float16", "float32"] | None = field(
        default=None, metadata={"help": "What a program computes in, or weights are stored in."}
    )


def _as_layers(version: int | None) -> str:
    """Return what a list of operators says of one that is written as layers, too."""
    return "" if version is None else f"; written in layers, from iOS{max(version, 13)}"


class CoremlBridge(Bridge):
    """Reads and writes Core ML models."""

    name = "coreml"
    title = "Core ML"
    suffixes = (".mlpackage", ".mlmodel")
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

    def load(self, source: AnyValue, params: AnyValue, options: ImportOptions) -> AnyValue:
        """Return the model of a path, bytes or a live object; weights stay where they are."""
        from serde.coreml.reader import load

        if params is not None:
            raise OptionError("a Core ML model holds its weights; none can be given beside it")
        return load(source)

    def files(self, model: AnyValue) -> Sequence[Path]:
        """Return the files that the model and its weights lie in."""
        return [Path(name) for name in model.files]

    def to_relay(self, model: AnyValue, options: ImportOptions, *, report: Report) -> RelayModel:
        """Return the model as Relay."""
        from serde.coreml.network import network_to_relay
        from serde.coreml.program import program_to_relay

        own = options if isinstance(options, CoremlImportOptions) else CoremlImportOptions()
        if model.kind != "mlProgram":
            if own.function is not None:
                raise OptionError("function: a NeuralNetwork has no functions")
            return network_to_relay(model, own, report)
        return program_to_relay(model, own, report)

    def from_relay(self, model: RelayModel, options: ExportOptions, *, report: Report) -> AnyValue:
        """Return the model as an ML Program or, for older systems, as a NeuralNetwork."""
        from serde.coreml.lower import from_relay

        own = options if isinstance(options, CoremlExportOptions) else CoremlExportOptions()
        return from_relay(model, own, report)

    def save(
        self,
        model: AnyValue,
        path: Path,
        options: ExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model, its weights streamed from where they are."""
        from serde.coreml.writer import save

        return save(model, path, sources=sources, before_commit=before_commit)

    def complete(self, model: AnyValue) -> AnyValue:
        """Return the ``MLModel`` of coremltools, whose package lies in a temporary directory."""
        from serde.coreml.writer import complete

        return complete(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return MIL's operators with the versions of iOS, and the layers of NeuralNetworks."""
        from serde.coreml.layers import LAYERS
        from serde.coreml.ops import TABLE

        read: dict[str, list[str]] = {}
        for op, version in TABLE.imported():
            read.setdefault(op, []).append(f"iOS{max(version, 15)}")
        layered = LAYERS.exported()
        rows = [
            (op, f"read, since {', '.join(known)}" + _as_layers(layered.get(op)))
            for op, known in sorted(read.items())
        ]
        written = TABLE.exported().items()
        rows += [(f"{layer} (layer)", "read") for layer, _ in LAYERS.imported()]
        return rows + [(op, f"written, from iOS{max(version, 15)}") for op, version in written]

    def operators(self, model: AnyValue) -> list[str]:
        """Return the operators of an ML Program or the layers of a NeuralNetwork."""
        from serde.coreml.model import operations

        if model.kind == "mlProgram":
            return [op.type for op in operations(model.spec) if op.type != "const"]
        return [str(layer.WhichOneof("layer")) for layer in model.network.layers]

    def names(self, model: AnyValue) -> TensorNames:
        """Return the names of inputs, outputs, constants and operations or layers."""
        from serde.coreml.model import operations

        description = model.spec.description
        nodes: list[str] = []
        weights: list[str] = []
        if model.kind == "mlProgram":
            for op in operations(model.spec):
                known = nodes if op.type != "const" else weights
                known.extend(each.name for each in op.outputs)
        else:
            nodes = [layer.name for layer in model.network.layers]
        return TensorNames(
            inputs=tuple(each.name for each in description.input),
            outputs=tuple(each.name for each in description.output),
            weights=tuple(weights),
            nodes=tuple(nodes),
        )

    def summary(self, model: AnyValue) -> ModelSummary:
        """Return the kind of the model, its inputs, outputs and weights."""
        from serde.coreml.interface import feature_summary

        description = model.spec.description
        weights = [*model.blobs.values(), *model.arrays.values()]
        metadata = description.metadata
        facts = {
            "kind": model.kind,
            "author": metadata.author,
            "license": metadata.license,
            "description": metadata.shortDescription,
        }
        return ModelSummary(
            version=f"specification {model.spec.specificationVersion}",
            inputs=tuple(feature_summary(each) for each in description.input),
            outputs=tuple(feature_summary(each) for each in description.output),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            facts={name: value for name, value in facts.items() if value},
        )
