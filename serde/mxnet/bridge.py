"""MXNet's side of the bridge."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue

from serde.bridge.package import PackageBridge
from serde.bridge.summary import ModelSummary, TensorNames, TensorSummary
from serde.core import Array, Report, Weight
from serde.engine.base import Engine
from serde.io.atomic import check_files
from serde.mxnet.options import MxnetExportOptions, MxnetImportOptions
from serde.relay.ir import Foreign, RelayModel

if TYPE_CHECKING:
    import mxnet

    from serde.io.pairs import Neighbours
    from serde.mxnet.live import Params
    from serde.mxnet.model import MxnetModel

__all__ = ["BRIDGE", "MxnetBridge"]


class MxnetBridge(PackageBridge["MxnetModel", MxnetImportOptions, MxnetExportOptions]):
    """Reads and writes symbol and parameter files; needs MXNet for its live objects only."""

    name = "mxnet"
    title = "Apache MXNet (symbol JSON and params, Symbol, Gluon, Module)"
    package = __package__
    keeps_metadata = True
    suffixes = ("-symbol.json", ".params", ".tar.gz", ".tgz")
    read_suffixes = (".tar.gz", ".tgz")
    companion_suffixes = (".params",)
    import_options = MxnetImportOptions
    export_options = MxnetExportOptions

    def accepts(self, source: object) -> bool:
        """Whether `source` is an object of MXNet's, or bytes or text of its files."""
        from serde.mxnet import codec, live

        first = source[0] if isinstance(source, (tuple, list)) and source else source
        return live.is_live(source) or codec.detect_bytes(first)

    def load(self, source: AnyValue, params: AnyValue, options: MxnetImportOptions) -> MxnetModel:
        """Return the model of a path, a pair of paths, bytes or a live object."""
        from serde.mxnet import codec, live
        from serde.mxnet.precision import with_precision

        if live.is_live(source):
            if isinstance(params, (str, os.PathLike, bytes)):
                params = codec.load_params(params)
            model = live.from_live(source, params, options.input_shapes)
        else:
            whole = source if params is None else (source, params)
            model = codec.load(whole, epoch=options.epoch, allow=options.allow)
        return with_precision(model, options.widen_weights, options.input_dtypes)

    def files(self, model: MxnetModel) -> Sequence[Path]:
        """Return the file of the symbol and that of the parameters."""
        return [Path(name) for name in (model.source, model.params_source) if name is not None]

    def companions(
        self, path: Path, options: MxnetImportOptions, beside: Neighbours
    ) -> Sequence[str]:
        """Return the parameters of a symbol, of the epoch that is wanted, or the symbol of such."""
        from serde.mxnet import codec

        return codec.companions(path.name, options.epoch, beside)

    def to_relay(
        self, model: MxnetModel, options: MxnetImportOptions, *, report: Report
    ) -> RelayModel:
        """Return the model as Relay."""
        from serde.mxnet.importer import to_relay

        return to_relay(model, options, report, keep_labels=options.keep_labels)

    def from_relay(
        self, model: RelayModel, options: MxnetExportOptions, *, report: Report
    ) -> MxnetModel:
        """Return the model as MXNet's graph and parameters."""
        from serde.mxnet.exporter import from_relay
        from serde.walk.export_fallback import ExportFallback

        return from_relay(model, report, ExportFallback.of(self.name, options))

    def run_foreign(self, node: Foreign, inputs: Sequence[Array | None]) -> Sequence[Array]:
        """Return what MXNet computes for an operator that Relay does not know."""
        from serde.mxnet.foreign import run_foreign

        return run_foreign(node, inputs)

    def engine(self, model: MxnetModel, relay_model: RelayModel) -> Engine:
        """Return MXNet where it is installed and can run the model, else the interpreter."""
        from serde.mxnet.engine import open_engine

        return open_engine(model, relay_model)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: MxnetExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path of another suffix, one that cannot be written, and a pair of others."""
        from serde.mxnet import codec

        check_files([path], sources=sources)
        self.check_suffix(path, ("-symbol.json", ".json"))
        codec.check_target(path, epoch=options.params_epoch, sources=sources, overwrite=overwrite)

    def save(
        self,
        model: MxnetModel,
        path: Path,
        options: MxnetExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write symbol and parameters, the latter streamed from where they are."""
        from serde.mxnet import codec

        return codec.save(
            model, path, epoch=options.params_epoch, sources=sources, before_commit=before_commit
        )

    def complete(self, model: MxnetModel) -> tuple[mxnet.Symbol, Params]:
        """Return the ``mx.Symbol`` and its :class:`Params`."""
        from serde.mxnet.live import to_live

        return to_live(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return the operators that are read, and the Relay operators that are written."""
        from serde.mxnet.aliases import ALIASES
        from serde.mxnet.ops import TABLE

        others: dict[str, list[str]] = {}
        for alias, op in sorted(ALIASES.items()):
            others.setdefault(op, []).append(alias)
        rows = [
            (op, f"read, also as {', '.join(others[op])}" if op in others else "read")
            for op, _version in TABLE.imported()
        ]
        return rows + [(op, f"written{TABLE.taken(op)}") for op in TABLE.written()]

    def coverage_summary(self) -> str:
        """Return how many of MXNet's operators are read."""
        from serde.mxnet.operators import FORWARD, VERSION
        from serde.mxnet.ops import TABLE

        read = FORWARD & {op for op, _version in TABLE.imported()}
        return f"{len(read)} of {len(FORWARD)} forward operators of MXNet {VERSION}"

    def names(self, model: MxnetModel) -> TensorNames:
        """Return the names of the symbol's inputs, outputs, parameters and nodes."""
        from serde.mxnet.importer import head_names

        return TensorNames(
            inputs=tuple(model.inputs),
            outputs=head_names(model.graph),
            weights=(*model.arg, *model.aux),
            nodes=tuple(node.name for node in model.graph.nodes if not node.is_variable),
        )

    def operators(self, model: MxnetModel) -> list[str]:
        """Return the operator of every node, variables left out."""
        return [node.op for node in model.graph.nodes if node.op != "null"]

    def summary(self, model: MxnetModel) -> ModelSummary:
        """Return the release, the names of the inputs, labels among them, and the weights.

        Parameters alone are listed by name.
        """
        from serde.mxnet.model import DIMS_KEY, read_dims, version_text

        named = {**model.arg, **model.aux}
        weights = named.values()
        alone = model.lacks is not None
        dims = {node.name: node.hidden.get(DIMS_KEY) for node in model.graph.variables}
        facts: dict[str, AnyValue] = {} if model.epoch is None else {"epoch": model.epoch}
        if alone:
            facts |= {name: _described(weight) for name, weight in named.items()}
        return ModelSummary(
            version="" if alone else version_text(model.graph.version),
            inputs=tuple(TensorSummary(name, read_dims(dims.get(name))) for name in model.inputs),
            parameters=sum(weight.size for weight in weights),
            parameter_bytes=sum(weight.nbytes for weight in weights),
            outputs=() if alone else None,
            facts=facts,
        )


BRIDGE = MxnetBridge()


def _described(weight: Weight) -> str:
    stored = ", sparse" if weight.sparse else ""
    return f"{weight.dtype} {list(weight.shape)}{stored}"
