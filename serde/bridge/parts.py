"""A source that becomes a folder: one model or several, and what runtimes read beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue

from serde.core.records import dataclass, field

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What is written to a folder.

    Attributes:
        names: What the models are called, without a suffix, some in a folder of their own; each is
            read with ``part=`` its name.
        files: Further files by name: places to copy, or texts.
        facts: Of a model that generates text: ``vocab_size``, ``context_length``, ``hidden_size``,
            ``num_attention_heads``, and ``bos_token_id``, ``eos_token_id``, ``pad_token_id``.
    """

    names: tuple[str, ...]
    files: Mapping[str, Path | str] = field(default_factory=dict)
    facts: Mapping[str, AnyValue] = field(default_factory=dict)
