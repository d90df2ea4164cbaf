"""Options of reading and writing Relay."""

from __future__ import annotations

from serde.bridge.options import ExportOptions, ImportOptions
from serde.core.records import dataclass, field

__all__ = ["RelayExportOptions", "RelayImportOptions"]


@dataclass(frozen=True, kw_only=True)
class RelayImportOptions(ImportOptions):
    """Options of reading Relay.

    Attributes:
        lift_constants: Constants of more bytes than this become weights; None keeps them all.
    """

    lift_constants: int | None = field(
        default=256, metadata={"help": "Constants of more bytes than this become weights."}
    )


@dataclass(frozen=True, kw_only=True)
class RelayExportOptions(ExportOptions):
    """Options of writing Relay.

    Attributes:
        strict: Whether the text is legal for TVM 0.18 rather than serde's dialect.
    """

    strict: bool = field(default=False, metadata={"help": "Write text that TVM 0.18 reads."})

    @property
    def keeps_lists(self) -> bool:
        """Relay has lists."""
        return True
