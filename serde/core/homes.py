"""Where the names of the ground are, which other packages import from here."""

from __future__ import annotations

from typing import Final

__all__ = ["HOMES"]

HOMES: Final = {
    "allocation": "arange full iterations ones zeros",
    "garbage_collection": "pause_garbage_collection",
    "limits": (
        "CHUNK_BYTES MAX_ARCHIVE_MEMBERS MAX_ARCHIVE_RATIO MAX_GRAPH_TEXT_BYTES MAX_NAME_BYTES "
        "MAX_NESTING MAX_PROTOBUF_BYTES MAX_RANK MAX_TENSORS budget current_limits"
    ),
    "optional": "is_installed require require_installed",
    "outcome": "error_message exit_code",
    "parsing": "parse_json",
    "progress": "counting expect",
    "records": "asdict dataclass field fields replace",
    "report": "Issue OutputVerdict Report Table",
    "texts": "near_names printable shown size_text",
    "weights": "Array ArrayWeight FileRange FileWeight OpenFile Weight dtype_name numpy_dtype",
}
"""Public names by the module of this package that has them."""
