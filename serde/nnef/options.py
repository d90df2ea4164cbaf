"""Options of reading and writing NNEF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any as AnyValue

from serde.bridge.options import ExportOptions, ImportOptions, check_convert_map
from serde.core.records import dataclass, field

__all__ = ["NnefExportOptions", "NnefImportOptions"]


@dataclass(frozen=True, kw_only=True)
class NnefImportOptions(ImportOptions):
    """Options of reading NNEF.

    Attributes:
        custom_convert_map: What fragments become, by name, those of the standard included:
            functions of a list of Relay expressions and a dict of further arguments, which return
            one expression or several. Fragments of the model's own are not expanded then.
    """

    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = field(
        default_factory=dict, metadata={"flag": None}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_convert_map(self.custom_convert_map)


@dataclass(frozen=True, kw_only=True)
class NnefExportOptions(ExportOptions):
    """Options of writing NNEF.

    Attributes:
        nnef_fragments: Keep functions of the model, and what it repeats, as fragments of its own.
    """

    run_packages = ("nnef",)

    nnef_fragments: bool = field(
        default=False, metadata={"help": "Keep functions and repeated blocks as fragments."}
    )

    @property
    def keeps_functions(self) -> bool:
        """Whether functions stay whole until they are written as fragments."""
        return self.nnef_fragments
