"""Options of reading and writing TFLite models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from serde.bridge.options import ExportOptions, ImportOptions

__all__ = ["TfliteExportOptions", "TfliteImportOptions"]


@dataclass(frozen=True, kw_only=True)
class TfliteImportOptions(ImportOptions):
    """Options of reading TFLite models.

    Attributes:
        signature: Which signature to read; the first subgraph, under the names of its tensors or
            of the only signature that runs it, if left out.
        read_quantized: Operators on codes by the arithmetic of LiteRT's kernels ("exact"), or on
            numbers between what quantises them ("qdq"), which other formats have as well.
    """

    signature: str | None = field(default=None, metadata={"help": "Signature to read."})
    read_quantized: Literal["exact", "qdq"] = field(
        default="exact", metadata={"help": "How quantised operators are read."}
    )


@dataclass(frozen=True, kw_only=True)
class TfliteExportOptions(ExportOptions):
    """Options of writing TFLite models.

    Attributes:
        write_quantized: Operators between what quantises numbers on int8, within a step ("int8"),
            or on these numbers ("exact").
    """

    write_quantized: Literal["int8", "exact"] = field(
        default="int8", metadata={"help": "What operators between quantised numbers compute on."}
    )
    run_packages = ("ai_edge_litert",)
