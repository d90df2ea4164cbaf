"""PyTorch's side of the bridge."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.parts import Parts
from serde.bridge.summary import ModelSummary, ServedFile, TensorNames, TensorSummary
from serde.core import Array, Report, replace
from serde.engine.base import Engine
from serde.errors import OptionError
from serde.io.atomic import check_files
from serde.relay.ir import Foreign, RelayModel, TensorType
from serde.torch.options import TorchExportOptions, TorchImportOptions

if TYPE_CHECKING:
    from serde.torch.model import TorchModel
    from serde.torch.program import TorchProgram

__all__ = ["BRIDGE", "TorchBridge"]

_FOLDER = "_torch"
"""How the names of folders end that are recognised as this format's."""

_BY_NODE = ("exported program", "module", "pt2")
"""Kinds of programs that can be run node by node."""


class TorchBridge(
    PackageBridge["TorchModel | TorchProgram", TorchImportOptions, TorchExportOptions]
):
    """Reads programs and modules of PyTorch and writes modules."""

    name = "torch"
    title = "PyTorch (torch.export, TorchScript, nn.Module)"
    package = __package__
    keeps_metadata = True
    suffixes = (".pt2", ".pt", _FOLDER)
    import_options = TorchImportOptions
    export_options = TorchExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is a module, a script module or an exported program."""
        from serde.torch import live

        return live.is_live(source)

    def load(
        self, source: AnyValue, params: AnyValue, options: TorchImportOptions
    ) -> TorchModel | TorchProgram:
        """Return the program of a path or a live object."""
        from serde.torch import codec, live

        if params is not None:
            raise OptionError("a PyTorch model holds its weights; none can be given beside it")
        return live.load(source, options) if live.is_live(source) else codec.load(source, options)

    def files(self, model: TorchModel | TorchProgram) -> Sequence[Path]:
        """Return the file, or those of a folder, that the model was read from."""
        from serde.torch.written.folder import CONFIG, SOURCE, WEIGHTS

        if getattr(model, "kind", "") == "source" and model.path is not None:
            return [model.path / name for name in (SOURCE, WEIGHTS, CONFIG)]
        if getattr(model, "kind", "") == "checkpoint" and model.path is not None:
            from serde.torch.checkpoint.files import checkpoint_files

            facts: AnyValue = getattr(model, "live", {})
            return checkpoint_files(model.path / facts.get("folder", ""))
        return [] if model.path is None else [model.path]

    def parts(self, source: AnyValue, options: TorchImportOptions) -> Parts | None:
        """Return the models of a checkpoint, or of a module of transformers for a task."""
        from serde.torch.checkpoint.files import is_checkpoint, is_pipeline

        place = Path(source) if isinstance(source, (str, os.PathLike)) else None
        if place is not None and is_pipeline(place):
            from serde.torch.checkpoint.pipelines import pipeline_parts

            return pipeline_parts(place)
        is_module = options.task is not None and hasattr(source, "config")
        if not (is_module if place is None else is_checkpoint(place)):
            return None
        from serde.torch.checkpoint.parts import find_parts

        return find_parts(place or source, options)

    def to_relay(
        self, model: TorchModel | TorchProgram, options: TorchImportOptions, *, report: Report
    ) -> RelayModel:
        """Return the program as Relay; a written module goes through ``torch.export``."""
        from serde.torch.importer import to_relay
        from serde.torch.program import TorchProgram

        if isinstance(model, TorchProgram):
            from serde.torch.written import read_back

            model = read_back(model)
        return to_relay(model, options, report)

    def engine(self, model: TorchModel | TorchProgram, relay_model: RelayModel) -> Engine:
        """Return PyTorch where it is installed and has the program, else the interpreter."""
        from serde.torch.engine import open_model

        return open_model(model, relay_model)

    def inner_names(self, model: TorchModel | TorchProgram) -> Iterable[str]:
        """Return the names of values that nodes give, those of branches and bodies left out."""
        from serde.torch.model import TorchModel

        nodes = model.graph.nodes if isinstance(model, TorchModel) else ()
        return (name for node in nodes if not node.gives_list for name in node.outputs if name)

    def with_outputs(
        self, model: TorchModel | TorchProgram, names: Sequence[str]
    ) -> TorchModel | None:
        """Return a program of ``torch.export`` of which inner values are asked, too."""
        from serde.torch.model import TorchModel

        if not isinstance(model, TorchModel) or model.kind not in _BY_NODE:
            return None
        return replace(model, asked=tuple(names))

    def run_foreign(self, node: Foreign, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Return what PyTorch computes for an operator of a library."""
        from serde.torch.foreign import run_foreign

        return run_foreign(node, inputs)

    def file_engine(self, path: Path) -> Engine | None:
        """Return PyTorch for a written folder, whose module it runs."""
        from serde.torch.engine import open_file

        return open_file(path)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: TorchExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path that cannot be written; any name without a suffix is that of a folder."""
        from serde.torch import written

        if os.path.splitext(os.fspath(path))[1] in (".pt2", ".pt"):
            check_files([path], sources=sources)
        else:
            written.check_folder(path, sources=sources, overwrite=overwrite)

    def save(
        self,
        model: TorchModel | TorchProgram,
        path: Path,
        options: TorchExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write a folder of source and weights, or an archive of the module."""
        from serde.torch import written
        from serde.torch.program import TorchProgram

        if not isinstance(model, TorchProgram):
            raise OptionError("a PyTorch program that was read is not written as it is")
        return written.save(model, path, options, sources, before_commit)

    def complete(self, model: TorchModel | TorchProgram) -> AnyValue:
        """Return the live ``torch.nn.Module``, or what a program was read from."""
        from serde.torch import written
        from serde.torch.program import TorchProgram

        if isinstance(model, TorchProgram):
            return written.to_module(model)
        return getattr(model.live, "function", model.live)

    def coverage(self) -> list[tuple[str, str]]:
        """Return the operators that are read, and the Relay operators that are written."""
        from serde.torch.host import EVALUATORS
        from serde.torch.host.registry import SOURCE
        from serde.torch.ops import TABLE

        read = {*EVALUATORS, *(op for op, _version in TABLE.imported())}
        read = {op for op in read if not op.startswith(SOURCE)}
        written = [(op, f"written{TABLE.taken(op)}") for op in TABLE.written()]
        return [(op, "read") for op in sorted(read)] + written

    def operators(self, model: TorchModel | TorchProgram) -> list[str]:
        """Return the operator of every node, without its overload where one entry covers all."""
        from serde.torch.import_walk import known_name
        from serde.torch.program import TorchProgram

        found = [node.op for node in model.nodes()]
        return found if isinstance(model, TorchProgram) else [*map(known_name, found)]

    def names(self, model: TorchModel | TorchProgram) -> TensorNames:
        """Return the names of inputs, outputs, weights and nodes."""
        return TensorNames(
            inputs=tuple(each.name for each in model.inputs),
            outputs=tuple(model.outputs),
            weights=tuple(model.weights),
            nodes=tuple(node.name for node in model.nodes()),
        )

    def served_file(self) -> ServedFile:
        """Return what Triton calls TorchScript."""
        return ServedFile("pytorch", "model.pt", "pytorch_libtorch", by_place=True)

    def writes_source(self) -> bool:
        """Whether there is a folder of Python source: yes, ``_torch``."""
        return True

    def summary(self, model: TorchModel | TorchProgram) -> ModelSummary:
        """Return the inputs, the weights, and of a module that is written the outputs."""
        weights = model.weights.values()
        inputs = []
        for each in model.inputs:
            known = each.shape is not None and each.dtype is not None
            type_ = TensorType(each.shape or (), each.dtype or "float32") if known else None
            inputs.append(TensorSummary.of(each.name, type_))
        types = getattr(model, "output_types", None)
        outputs = None
        if types:
            outputs = tuple(map(TensorSummary.of, model.outputs, types))
        return ModelSummary(
            version=model.version,
            inputs=tuple(inputs),
            outputs=outputs,
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
        )


BRIDGE = TorchBridge()
