"""Options of reading and writing MXNet models."""

from __future__ import annotations

from serde.bridge.options import ExportOptions, ImportOptions
from serde.core.records import dataclass, field

__all__ = ["MxnetExportOptions", "MxnetImportOptions"]


@dataclass(frozen=True, kw_only=True)
class MxnetImportOptions(ImportOptions):
    """Options of reading MXNet models.

    Attributes:
        epoch: Which ``prefix-NNNN.params`` to read; the newest if left out.
        widen_weights: Compute weights of 16 bits as float32; by default where inputs or other
            weights are float32, as MXNet does when it loads them into such a net.
        keep_labels: Keep inputs that only training needs, such as labels, as inputs that
            nothing uses; otherwise they are left out.
    """

    epoch: int | None = field(
        default=None, metadata={"help": "Epoch of the parameter file beside the symbol."}
    )
    widen_weights: bool | None = field(
        default=None,
        metadata={
            "help": "Compute weights of 16 bits as float32, or as they are; by default as float32 "
            "where inputs or other weights are float32."
        },
    )
    keep_labels: bool = field(
        default=False,
        metadata={
            "flag": "--keep-labels/--drop-labels",
            "help": "Keep inputs that only training needs, or leave them out (the default).",
        },
    )


@dataclass(frozen=True, kw_only=True)
class MxnetExportOptions(ExportOptions):
    """Options of writing MXNet models.

    Attributes:
        params_epoch: The number in the name ``prefix-NNNN.params``.
    """

    params_epoch: int = field(
        default=0, metadata={"help": "Epoch in the name of the parameter file that is written."}
    )
