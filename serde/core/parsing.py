"""JSON of files, which may be nested more deeply than Python's parser can follow."""

from __future__ import annotations

import json
from typing import Any as AnyValue

from serde.core.garbage_collection import pause_garbage_collection

__all__ = ["parse_json"]


@pause_garbage_collection()
def parse_json(text: str | bytes | bytearray, **options: AnyValue) -> AnyValue:
    """Return what JSON holds.

    No garbage is collected meanwhile: finalizers of others fail so near to the limit of recursion.

    Args:
        text: The JSON.
        options: Of ``json.loads``.

    Raises:
        ValueError: It is none, or nested too deeply.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("nested too deeply") from None
