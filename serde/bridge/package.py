"""What the bridges of formats have in common whose packages have the parts that serde's have."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any as AnyValue, ClassVar

from serde.bridge.contract import Bridge, ExportOptionsT, ImportOptionsT, ModelT
from serde.core import Report
from serde.engine.base import Engine
from serde.io.atomic import check_files
from serde.relay.ir import RelayModel

__all__ = ["PackageBridge"]


class PackageBridge(Bridge[ModelT, ImportOptionsT, ExportOptionsT]):
    """A format of a package that has modules by the names that all have.

    What is done in one of them is asked there when it is first needed; a format of which more is
    to be said overrides the method.

    Attributes:
        package: The package, by its full name.
        writer: Which of its modules has ``save``, and ``check_target`` if more is to be checked.
    """

    package: ClassVar[str | None]
    writer: ClassVar[str] = "codec"

    def _part(self, name: str) -> AnyValue:
        return importlib.import_module(f"{self.package}.{name}")

    def detect(self, path: Path) -> bool:
        """Whether `path` holds this format, as ``codec.detect`` has it."""
        return bool(self._part("codec").detect(path))

    def files(self, model: ModelT) -> Sequence[Path]:
        """Return the `files` of a model that has such."""
        return [Path(each) for each in getattr(model, "files", ())]

    def to_relay(self, model: ModelT, options: ImportOptionsT, *, report: Report) -> RelayModel:
        """Return the model as Relay, of ``importer.to_relay``."""
        found: RelayModel = self._part("importer").to_relay(model, options, report)
        return found

    def from_relay(self, model: RelayModel, options: ExportOptionsT, *, report: Report) -> ModelT:
        """Return the native model, of ``exporter.from_relay``."""
        made: ModelT = self._part("exporter").from_relay(model, options, report)
        return made

    def save(
        self,
        model: ModelT,
        path: Path,
        options: ExportOptionsT,
        *,
        sources: Sequence[Path] = (),
        before_commit: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write the model by the `save` of :attr:`writer`."""
        module = self._part(self.writer)
        return Path(module.save(model, path, sources=sources, before_commit=before_commit))

    def engine(self, model: ModelT, relay_model: RelayModel) -> Engine:
        """Return Relay's interpreter, of a format without a framework that runs here."""
        from serde.engine.interpreter import RelayEngine

        return RelayEngine(relay_model)

    def check_target(
        self,
        path: str | os.PathLike[str],
        options: ExportOptionsT,
        *,
        sources: Sequence[Path] = (),
        overwrite: bool = False,
    ) -> None:
        """Refuse a path by the `check_target` of :attr:`writer`, where it has one."""
        check = getattr(self._part(self.writer), "check_target", None)
        if check is None:
            check_files([path], sources=sources)
            self.check_suffix(path, (*self.suffixes, ""))
        else:
            check(path, sources, options)
