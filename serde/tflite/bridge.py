"""TFLite's side of the bridge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.core import replace
from serde.engine.base import Engine
from serde.errors import OptionError, Unsupported
from serde.relay.ir import RelayModel
from serde.tflite.options import TfliteExportOptions, TfliteImportOptions

if TYPE_CHECKING:
    from serde.tflite.model import TfliteModel

__all__ = ["BRIDGE", "TfliteBridge"]


class TfliteBridge(PackageBridge["TfliteModel", TfliteImportOptions, TfliteExportOptions]):
    """Reads and writes TFLite models."""

    name = "tflite"
    title = "TFLite (LiteRT)"
    package = __package__
    writer = "writer"
    compressor = "serde.tflite.quantize"
    suffixes = (".tflite",)
    import_options = TfliteImportOptions
    export_options = TfliteExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is bytes of such a file."""
        return isinstance(source, bytes) and source[4:8] == b"TFL3"

    def load(self, source: AnyValue, params: AnyValue, options: TfliteImportOptions) -> TfliteModel:
        """Return the model in a file."""
        from serde.tflite import codec

        if params is not None:
            raise OptionError("a TFLite model holds its weights; none can be given beside it")
        return codec.load(source)

    def complete(self, model: TfliteModel) -> AnyValue:
        """Return the bytes of the file, which LiteRT's interpreter takes."""
        from serde.tflite import writer

        return writer.file_bytes(model)

    def expected(
        self, model: RelayModel, native: TfliteModel, options: TfliteExportOptions
    ) -> RelayModel:
        """Return the model with the channels of images last."""
        from serde.tflite.apps import with_channels_last

        return with_channels_last(model, options)

    def inner_names(self, model: TfliteModel) -> Iterable[str]:
        """Return the names of tensors that operators of the main graph give."""
        main = model.subgraphs[0]
        return (main.tensors[i].name for each in main.operators for i in each.outputs)

    def with_outputs(self, model: TfliteModel, names: Sequence[str]) -> TfliteModel:
        """Return the model with further outputs of its main graph."""
        main = model.subgraphs[0]
        numbers = {each.name: number for number, each in enumerate(main.tensors)}
        added = {name: numbers[name] for name in names}
        whole = replace(main, outputs=(*main.outputs, *added.values()))
        signatures = [
            each if each.subgraph else replace(each, outputs={**each.outputs, **added})
            for each in model.signatures
        ]
        graphs = [whole, *model.subgraphs[1:]]
        return replace(model, subgraphs=graphs, signatures=signatures, path=None)

    def engine(self, model: TfliteModel, relay_model: RelayModel) -> Engine:
        """Return LiteRT's interpreter; Relay's where there are states, which that one hides."""
        from serde.engine.interpreter import RelayEngine
        from serde.tflite.engine import open_model

        if any(name.endswith(".state") for name in relay_model.meta.extra):
            return RelayEngine(relay_model)
        return open_model(model, relay_model.meta.inputs, relay_model.meta.outputs)

    def file_engine(self, path: Path) -> Engine:
        """Return the same for a file, which the interpreter reads itself."""
        from serde.tflite import codec
        from serde.tflite.engine import open_file
        from serde.tflite.interface import chosen_interface

        model = codec.load(path)
        return open_file(path, model, chosen_interface(model, None))

    def coverage(self) -> list[tuple[str, str]]:
        """Return the operators that are read, and the Relay operators that are written."""
        from serde.tflite.ops import TABLE

        read = [(op, "read") for op, _version in TABLE.imported()]
        return read + [(op, "written") for op in TABLE.exported()]

    def operators(self, model: TfliteModel) -> list[str]:
        """Return the operator of every node."""
        return [each.name for graph in model.subgraphs for each in graph.operators]

    def names(self, model: TfliteModel) -> TensorNames:
        """Return the names of inputs, outputs, weights and nodes of the first graph."""
        from serde.tflite.interface import chosen_interface

        interface = chosen_interface(model, None)
        graph = model.subgraphs[interface.subgraph]
        return TensorNames(
            inputs=tuple(interface.inputs),
            outputs=tuple(interface.outputs),
            weights=tuple(each.name for each in graph.tensors if each.values is not None),
            nodes=tuple(graph.tensors[each.outputs[0]].name for each in graph.operators),
        )

    def summary(self, model: TfliteModel) -> ModelSummary:
        """Return inputs, outputs and signatures."""
        from serde.tflite.interface import chosen_interface, declared_type

        interface = chosen_interface(model, None)
        graph = model.subgraphs[interface.subgraph]

        def told(names: AnyValue) -> tuple[TensorSummary, ...]:
            found = []
            for name, index in names.items():
                try:
                    found.append(TensorSummary.of(name, declared_type(graph.tensors[index])))
                except Unsupported:
                    found.append(TensorSummary(name))
            return tuple(found)

        weights = [
            each.values for g in model.subgraphs for each in g.tensors if each.values is not None
        ]
        facts = {"signatures": [each.key for each in model.signatures]} if model.signatures else {}
        if model.facts.labels:
            facts["labels"] = list(next(iter(model.facts.labels.values())))
        return ModelSummary(
            version="3",
            inputs=told(interface.inputs),
            outputs=told(interface.outputs),
            parameters=sum(each.size for each in weights),
            parameter_bytes=sum(each.nbytes for each in weights),
            facts=facts,
        )


BRIDGE = TfliteBridge()
"""The bridge of TFLite."""
