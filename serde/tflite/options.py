"""Options of reading and writing TFLite models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from serde.bridge import input_types
from serde.bridge.options import ExportOptions, ImportOptions
from serde.core.records import dataclass, field

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
        images: Inputs that are images, by name, as for Core ML: a colour layout (``RGB`` or
            ``GRAYSCALE``), or a mapping of ``color_layout``, ``scale`` and ``bias``. They get
            their channels last, and TFLite Metadata tell that apps are to give
            ``scale * pixels + bias``.
        class_labels: Class labels in the order of the scores, or a file with one on each line;
            those of the source if left out. They lie in the file, as TFLite Metadata tell.
    """

    write_quantized: Literal["int8", "exact"] = field(
        default="int8", metadata={"help": "What operators between quantised numbers compute on."}
    )
    images: Mapping[str, input_types.Image] = field(
        default_factory=dict, metadata=input_types.IMAGES
    )
    class_labels: tuple[str | int, ...] | None = field(
        default=None, metadata=input_types.CLASS_LABELS
    )
    run_packages = ("ai_edge_litert",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "images", input_types.images_from(self.images))
        object.__setattr__(self, "class_labels", input_types.labels_from(self.class_labels))
