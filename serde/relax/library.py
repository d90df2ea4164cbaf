"""Libraries that TVM compiles, as a format that is written and run, and never read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from serde.bridge.contract import WriteOnlyBridge
from serde.bridge.summary import TensorNames
from serde.core.report import Report
from serde.engine.base import Engine
from serde.io.atomic import check_files
from serde.relax.options import LibraryExportOptions
from serde.relay.ir.model import RelayModel

if TYPE_CHECKING:
    from serde.relax.compiling import CompilableModel
    from serde.relax.runnable import Runnable

__all__ = ["BRIDGE", "LibraryBridge"]


class LibraryBridge(WriteOnlyBridge["CompilableModel", LibraryExportOptions]):
    """Compiles models to shared libraries."""

    name = "tvm"
    title = "Library compiled by TVM"
    suffixes = (".so", ".dylib", ".dll")
    export_options = LibraryExportOptions

    def detect(self, path: Path) -> bool:
        """Whether `path` is a shared library that TVM has linked."""
        if not path.name.endswith(self.suffixes):
            return False
        from serde.relax.runnable import is_library

        return is_library(path)

    def from_relay(
        self, model: RelayModel, options: LibraryExportOptions, *, report: Report
    ) -> CompilableModel:
        """Return the model as a module of Relax, whose weights are parameters."""
        from serde.relax.compiling import CompilableModel, compile_soon, read_target
        from serde.relax.exporter import from_relay

        compile_soon()
        target = None if options.tvm_target is None else read_target(options.tvm_target)
        module = from_relay(model, replace(options, freeze_vars=False), report)
        return CompilableModel(module, options, target)

    def file_engine(self, path: Path) -> Engine:
        """Return what runs a library, in a process of its own."""
        from serde.relax.engine import open_file

        return open_file(path)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: LibraryExportOptions,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path that cannot be written, and a target that TVM does not know."""
        from serde.relax.compiling import compile_soon, read_target
        from serde.relax.runnable import params_path

        files = [path] if options.freeze_vars else [params_path(path), path]
        check_files(files, sources=sources)
        self.check_suffix(path, self.suffixes)
        compile_soon()
        read_target(options.tvm_target)

    def save(
        self,
        model: CompilableModel,
        path: Path,
        options: LibraryExportOptions,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Compile the module and write the library, its weights beside it if they stay apart."""
        from serde.relax.runnable import save_library

        return save_library(model, path, sources, before_commit)

    def complete(self, model: CompilableModel) -> Runnable:
        """Return the module compiled."""
        from serde.relax.runnable import compile_model

        return compile_model(model)

    def coverage(self) -> list[tuple[str, str]]:
        """Return nothing: what is compiled is what format relax writes."""
        return []

    def operators(self, model: CompilableModel) -> list[str]:
        """Return the operator of every call."""
        from serde.relax.live import operators_of

        return operators_of(model.module)

    def names(self, model: CompilableModel) -> TensorNames:
        """Return the names of inputs, outputs, weights and variables."""
        from serde.relax.live import names_of

        return names_of(model.module)


BRIDGE = LibraryBridge()
