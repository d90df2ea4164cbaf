"""ONNX's side of the bridge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.parts import Parts
from serde.bridge.summary import ModelSummary, ServedFile, TensorNames, TensorSummary
from serde.core import Array, Report, replace
from serde.core.texts import weights_text
from serde.engine.base import Engine
from serde.errors import CheckError, OptionError
from serde.onnx.options import OnnxExportOptions, OnnxImportOptions
from serde.relay.ir.foreign import Foreign, has_foreign
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    import onnx

    from serde.io.pairs import Neighbours
    from serde.onnx.model import OnnxModel

__all__ = ["BRIDGE", "OnnxBridge"]

PLAIN = ("", "ai.onnx", "serde")
"""Domains that go without saying: ONNX's own, and that of a model's functions."""


class OnnxBridge(PackageBridge["OnnxModel", OnnxImportOptions, OnnxExportOptions]):
    """Reads and writes ONNX models."""

    name = "onnx"
    title = "ONNX"
    package = __package__
    compressor = "serde.onnx.quantize"
    keeps_metadata = True
    suffixes = (".onnx",)
    import_options = OnnxImportOptions
    export_options = OnnxExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is a ``ModelProto``, or bytes of one."""
        if isinstance(source, (bytes, bytearray, memoryview)):
            from serde.onnx.reader import detect_bytes

            return detect_bytes(source)
        kind = type(source)
        return kind.__name__ == "ModelProto" and kind.__module__.partition(".")[0] == "onnx"

    def load(self, source: AnyValue, params: AnyValue, options: OnnxImportOptions) -> OnnxModel:
        """Return the model of a path, bytes or a ``ModelProto``; weights stay where they are."""
        from serde.onnx import codec

        if params is not None:
            raise OptionError("an ONNX model holds its weights; none can be given beside it")
        return codec.load(source)

    def files(self, model: OnnxModel) -> Sequence[Path]:
        """Return the files that hold weights."""
        from serde.onnx import codec

        return [Path(name) for name in sorted(codec.source_paths(model))]

    names_companions = True

    def companions(
        self, path: Path, options: OnnxImportOptions, beside: Neighbours
    ) -> Sequence[str]:
        """Return the files of external data that the model names."""
        from serde.onnx import codec

        return codec.external_locations(path)

    def to_relay(
        self, model: OnnxModel, options: OnnxImportOptions, *, report: Report
    ) -> RelayModel:
        """Return the model as Relay."""
        from serde.onnx.importer import to_relay

        report.notes += model.changed
        return to_relay(model, options, report)

    def from_relay(
        self, model: RelayModel, options: OnnxExportOptions, *, report: Report
    ) -> OnnxModel:
        """Return the model as ONNX."""
        from serde.onnx.exporter import from_relay
        from serde.onnx.links import linkable_weights
        from serde.walk.export_fallback import ExportFallback

        write = partial(
            from_relay, intermediate_shapes=options.intermediate_shapes,
            quantized=options.quantized, allow=options.allow,
            local_functions=options.local_functions, link_weights=options.link_weights,
            runtime=options.runtime, fallback=ExportFallback.of(self.name, options),
        )  # fmt: skip
        if options.supported is None:
            native = write(model, options.opset, report=report)
        else:
            from serde.onnx.aiming import write_for

            native = write_for(options.supported, model, options.opset, report, write)
        if options.link_weights:
            native.to_link = linkable_weights(native.weights, report)
        return native

    def inner_names(self, model: OnnxModel) -> Iterable[str]:
        """Return the names of tensors that nodes give, those of branches and bodies left out."""
        return (name for node in model.proto.graph.node for name in node.output if name)

    def with_outputs(self, model: OnnxModel, names: Sequence[str]) -> OnnxModel:
        """Return the model with further outputs, of types that ONNX Runtime infers."""
        proto = type(model.proto)()
        proto.CopyFrom(model.proto)
        for name in names:
            proto.graph.output.add().name = name
        return replace(model, proto=proto)

    def engine(self, model: OnnxModel, relay_model: RelayModel) -> Engine:
        """Return ONNX Runtime where it is installed, else ONNX's reference implementation.

        Where neither takes the model for an operator of another domain, the interpreter runs it,
        and these what they know of it.
        """
        from serde.engine.interpreter import RelayEngine
        from serde.onnx.engine import open_model, with_input_lengths

        model = with_input_lengths(model, relay_model)
        if not has_foreign(relay_model):
            return open_model(model)
        try:
            return open_model(model)
        except CheckError:
            return RelayEngine(relay_model)

    def engine_of(self, name: str, model: OnnxModel) -> Engine:
        """Return OpenVINO with a model."""
        if name != "openvino":
            return super().engine_of(name, model)
        from serde.onnx.openvino import open_model

        return open_model(model)

    def run_foreign(self, node: Foreign, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Return what ONNX Runtime or the reference computes for one operator."""
        from serde.onnx.foreign import run_foreign

        return run_foreign(node, inputs)

    def may_run_foreign(self, node: Foreign) -> bool:
        """Whether an operator has a domain of its own, or is one of ONNX's."""
        from serde.onnx.foreign import may_run_foreign

        return may_run_foreign(node)

    def file_engine(self, path: Path) -> Engine:
        """Return the same for a file, which these read themselves."""
        from serde.onnx.engine import open_file

        return open_file(path)

    def save(
        self,
        model: OnnxModel,
        path: Path,
        options: OnnxExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model, its weights streamed from where they are."""
        from serde.onnx import codec

        return codec.save(
            model,
            path,
            force_external=options.save_as_external_data,
            external_threshold=options.external_data_threshold,
            link_digest=options.link_digest,
            sources=sources,
            before_commit=before_commit,
        )

    def runtime_files(
        self, parts: Parts, interfaces: Mapping[str, Mapping[str, AnyValue]] | None
    ) -> Mapping[str, str]:
        """Return what onnxruntime-genai reads beside a decoder."""
        from serde.onnx.genai import CONFIG, generation_config

        if interfaces is None:
            return {CONFIG: ""}
        found = generation_config(interfaces, parts.facts)
        return {} if found is None else {CONFIG: found}

    def complete(self, model: OnnxModel) -> onnx.ModelProto:
        """Return the ``onnx.ModelProto`` with its weights."""
        return model.complete()

    def coverage(self) -> list[tuple[str, str]]:
        """Return the operators that are read, and the Relay operators that are written."""
        from serde.onnx.ops import TABLE, TABLES
        from serde.onnx.versions import LOWEST_TARGET
        from serde.relay.ir.registry import all_ops

        read: dict[str, list[str]] = {}
        for domain, table in TABLES.items():
            for op, version in table.imported():
                read.setdefault(f"{domain}.{op}" if domain else op, []).append(str(version))
        lowest = {
            name: LOWEST_TARGET
            for name, definition in all_ops().items()
            if (TABLE.expansion(name) or definition.decompose) is not None
        }
        lowest |= {
            name: LOWEST_TARGET if name in lowest else max(since, LOWEST_TARGET)
            for name, since in TABLE.exported().items()
        }
        rows = [(op, f"read, versions {', '.join(known)}") for op, known in sorted(read.items())]
        return rows + [
            (op, f"written from version {v}{TABLE.taken(op)}") for op, v in sorted(lowest.items())
        ]

    def names(self, model: OnnxModel) -> TensorNames:
        """Return the names of the graph's inputs, outputs, initializers and nodes."""
        graph = model.proto.graph
        weights = dict.fromkeys((*(each.name for each in graph.initializer), *model.weights))
        return TensorNames(
            inputs=tuple(each.name for each in graph.input if each.name not in weights),
            outputs=tuple(each.name for each in graph.output),
            weights=tuple(weights),
            nodes=tuple(each.name for each in graph.node),
        )

    def operators(self, model: OnnxModel) -> list[str]:
        """Return the operator of every node of the graph, its subgraphs and functions."""
        from serde.onnx.builder import walk_nodes

        graphs = (model.proto.graph, *model.proto.functions)
        nodes = (node for graph in graphs for node in walk_nodes(graph.node))
        return [
            f"{node.domain}.{node.op_type}" if node.domain not in PLAIN else node.op_type
            for node in nodes
        ]

    def document(self, model: OnnxModel, operator: str) -> str:
        """Return the text of an operator's schema, as it stands at the model's operator set."""
        import onnx

        domain, _, name = operator.rpartition(".")
        versions = {each.domain: each.version for each in model.proto.opset_import}
        try:
            return str(onnx.defs.get_schema(name, versions.get(domain, 1), domain).doc or "")
        except onnx.defs.SchemaError:
            return ""

    def profiles(self) -> Sequence[str]:
        """Return the runtimes of which there are profiles."""
        from serde.onnx.profile import profile_names

        return profile_names()

    def served_file(self) -> ServedFile:
        """Return what Triton calls models that ONNX Runtime runs."""
        return ServedFile("onnxruntime", "model.onnx")

    def summary(self, model: OnnxModel) -> ModelSummary:
        """Return the operator sets, the types of inputs and outputs, and the weights."""
        proto = model.proto
        names = {tensor.name for tensor in proto.graph.initializer} | set(model.weights)
        weights = [model.weight(tensor) for tensor in proto.graph.initializer]
        opsets = {entry.domain or "ai.onnx": entry.version for entry in proto.opset_import}
        facts: dict[str, AnyValue] = {
            "ir version": proto.ir_version,
            "producer": proto.producer_name,
            "linked to": _linked_files(model),
        }
        return ModelSummary(
            version=", ".join(f"{domain} {version}" for domain, version in opsets.items()),
            inputs=tuple(_tensor(each) for each in proto.graph.input if each.name not in names),
            outputs=tuple(_tensor(each) for each in proto.graph.output),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            facts={name: value for name, value in facts.items() if value},
        )


BRIDGE = OnnxBridge()


def _linked_files(model: OnnxModel) -> str:
    """Return which files weights were linked to, and how much of them."""
    from serde.io.packed import stored_source

    found = [stored_source(weight) for weight in model.weights.values()]
    rows = []
    for link in model.links:
        end = f"/{link.location}"
        lengths = [
            each.length for each in found if each and Path(each.path).as_posix().endswith(end)
        ]
        rows.append(f"{link.location}: {weights_text(lengths)}, unchanged")
    return "; ".join(rows)


def _tensor(value: AnyValue) -> TensorSummary:
    """Return the declared shape and dtype of an input or output."""
    from serde.onnx.elements import ELEMENTS
    from serde.onnx.interface import declared_shape

    shape = declared_shape(value.type)
    element = ELEMENTS.get(value.type.tensor_type.elem_type)
    named = None if shape is None else tuple(d if isinstance(d, int) else str(d) for d in shape)
    return TensorSummary(value.name, named, None if element is None else element.dtype)
