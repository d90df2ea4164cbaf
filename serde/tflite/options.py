"""Options of reading and writing TFLite models."""

from __future__ import annotations

from dataclasses import dataclass, field

from serde.bridge.options import ExportOptions, ImportOptions

__all__ = ["TfliteExportOptions", "TfliteImportOptions"]


@dataclass(frozen=True, kw_only=True)
class TfliteImportOptions(ImportOptions):
    """Options of reading TFLite models.

    Attributes:
        signature: Which signature to read; the first subgraph, under the names of its tensors or
            of the only signature that runs it, if left out.
    """

    signature: str | None = field(default=None, metadata={"help": "Signature to read."})


@dataclass(frozen=True, kw_only=True)
class TfliteExportOptions(ExportOptions):
    """Options of writing TFLite models."""

    run_packages = ("ai_edge_litert",)
