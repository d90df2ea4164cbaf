"""NNEF's side of the bridge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.errors import OptionError
from serde.nnef.options import NnefExportOptions, NnefImportOptions
from serde.relay.ir import RelayModel, TensorType

if TYPE_CHECKING:
    from serde.io.pairs import Neighbours
    from serde.nnef.model import NnefModel

__all__ = ["BRIDGE", "NnefBridge"]


class NnefBridge(PackageBridge["NnefModel", NnefImportOptions, NnefExportOptions]):
    """Reads and writes graphs of NNEF."""

    name = "nnef"
    title = "NNEF 1.0 (Khronos)"
    package = __package__
    writer = "writer"
    keeps_metadata = True
    suffixes = (".nnef", ".tgz", ".tar.gz", "_nnef")
    package_suffixes = ("_nnef",)
    import_options = NnefImportOptions
    export_options = NnefExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is an ``nnef.Graph``."""
        from serde.nnef import codec

        return codec.is_graph(source)

    def load(self, source: AnyValue, params: AnyValue, options: NnefImportOptions) -> NnefModel:
        """Return the graph of a path or of an ``nnef.Graph``."""
        from serde.nnef import codec

        if params is not None:
            raise OptionError("an NNEF model holds its weights; none can be given beside it")
        own = [each.name for each in options.converters if each.is_for("read", self.name)]
        return codec.load(source, whole=[*options.custom_convert_map, *own])

    def companions(
        self, path: Path, options: NnefImportOptions, beside: Neighbours
    ) -> Sequence[str]:
        """Return the other files of a folder whose graph was named."""
        from serde.nnef import codec

        return codec.companions(path.name, beside)

    def expected(
        self, model: RelayModel, native: NnefModel, options: NnefExportOptions
    ) -> RelayModel:
        """Return the model with the names and the widths of numbers that the graph has."""
        from serde.nnef.interface import expected_of

        return expected_of(model, native)

    def save(
        self,
        model: NnefModel,
        path: Path,
        options: NnefExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write a folder, or an archive of one."""
        from serde.nnef import writer
        from serde.nnef.folding import fold

        if options.nnef_fragments:
            model = fold(model)
        return writer.save(model, path, sources, before_commit)

    def complete(self, model: NnefModel) -> AnyValue:
        """Return the ``nnef.Graph`` of Khronos' package, with the data of its variables."""
        from serde.nnef.live import to_live

        return to_live(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return the fragments that are read, and the Relay operators that are written."""
        from serde.nnef.ops import TABLE

        read = [(op, "read") for op, _version in TABLE.imported()]
        return read + [(op, f"written{TABLE.taken(op)}") for op in TABLE.exported()]

    def operators(self, model: NnefModel) -> list[str]:
        """Return the fragment of every operation."""
        return [each.op for each in model.operations if each.op not in ("external", "variable")]

    def names(self, model: NnefModel) -> TensorNames:
        """Return the names of inputs, outputs, variables and operations; states are no weights."""
        states = model.states()
        kept = {
            each.attributes["label"]
            for name, each in model.variables().items()
            if name not in states
        }
        return TensorNames(
            inputs=(*model.inputs, *states),
            outputs=tuple(dict.fromkeys((*model.outputs, *states.values()))),
            weights=tuple(label for label in model.weights if label in kept),
            nodes=tuple(name for each in model.operations for name in each.results()[:1]),
            origins=_origins(model),
        )

    def summary(self, model: NnefModel) -> ModelSummary:
        """Return the inputs and the variables."""
        from serde.nnef.importer import input_dtype, scalar_dtype

        weights, scalar = model.weights.values(), scalar_dtype(model, NnefImportOptions())
        declared = {**model.externals(), **model.variables()}
        inputs = (*model.inputs, *model.states())
        return ModelSummary(
            version="1.0",
            inputs=tuple(
                TensorSummary.of(
                    name, TensorType(each.attributes["shape"], input_dtype(model, each, scalar))
                )
                for name, each in ((name, declared[name]) for name in inputs)
            ),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
        )


def _origins(model: NnefModel) -> dict[str, str]:
    """Return what the source of a model that was written calls its weights and nodes."""
    labels = {name: each.attributes["label"] for name, each in model.variables().items()}
    weights = {label: model.names[name] for name, label in labels.items() if name in model.names}
    return {own: name for own, name in {**model.sources, **weights}.items() if own != name}


BRIDGE = NnefBridge()
