"""What the bridges of formats have in common whose packages have the parts that serde's have."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any as AnyValue, ClassVar

from serde.bridge.contract import Bridge, ExportOptionsT, ImportOptionsT, ModelT
from serde.core import Report
from serde.relay.ir import RelayModel

__all__ = ["PackageBridge"]


class PackageBridge(Bridge[ModelT, ImportOptionsT, ExportOptionsT]):
    """A format of a package that has modules by the names that all have.

    What is done in one of them is asked there when it is first needed; a format of which more is
    to be said overrides the method.

    Attributes:
        package: The package, by its full name.
        writer: Which of its modules has ``save``.
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
