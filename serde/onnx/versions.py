"""Facts about the operators of ONNX: every version at which one changed, and how.

The default operator set (``ai.onnx``), versions 1 to 28, after the operator
changelog of ONNX. The first entry of an operator is the version that brought it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = [
    "CHANGES", "DEFAULT_TARGET", "FIRST_WITH_FUNCTIONS", "LOWEST_TARGET", "MICROSOFT_OPERATORS",
    "ML_CHANGES", "NEWEST", "NEWEST_IR", "RUNTIME_OPERATORS", "Change",
]  # fmt: skip


class Change(Enum):
    """What a new version of an operator altered."""

    NEW = "new"
    FORM = "form"
    """Names, order or number of inputs, outputs or attributes, or a default."""
    MEANING = "meaning"
    """The result for operands and attributes that were valid before."""
    TYPES = "types"
    """Element types, or the wording only."""
    REMOVED = "removed"


NEWEST: Final = 28
"""Newest version of the operator set known here."""

NEWEST_IR: Final = 14
"""Newest version of the file format itself known here."""

LOWEST_TARGET: Final = 11
"""Lowest version that is written."""

FIRST_WITH_FUNCTIONS: Final = 15
"""First version of the operator set with which a model may have local functions."""

DEFAULT_TARGET: Final = 17
"""Version that is written unless another is asked for."""

_FACTS: Final = json.loads(Path(__file__).with_name("operators.json").read_text("utf-8"))

CHANGES: Final[Mapping[str, Mapping[int, Change]]] = MappingProxyType({
    name: {int(version): Change(change) for version, change in each.items()}
    for name, each in _FACTS["ai.onnx"].items()
})  # fmt: skip

ML_CHANGES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {name: tuple(each) for name, each in _FACTS["ai.onnx.ml"].items()}
)
"""The versions of the operators of ``ai.onnx.ml``, at each of which one changed."""

MICROSOFT_OPERATORS: Final = frozenset(_FACTS["com.microsoft"])
"""The operators of ``com.microsoft``, all of version 1, as ONNX Runtime 1.32 has them."""

RUNTIME_OPERATORS: Final = frozenset({"SimplifiedLayerNormalization"})
"""Operators that ONNX Runtime adds to ONNX's own domain, of version 1."""
