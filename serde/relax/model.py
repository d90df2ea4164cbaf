"""What a model of Relax is to the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any as AnyValue, Final

from serde.core import Weight, dataclass, field

__all__ = ["INPUT_NAMES", "OUTPUT_NAMES", "WEIGHT_NAMES", "RelaxModel"]

INPUT_NAMES: Final = "serde.inputs"
"""Attribute of ``main``: what the inputs are called, where variables cannot be called that."""

OUTPUT_NAMES: Final = "serde.outputs"
"""Attribute of ``main``: what the results are called."""

WEIGHT_NAMES: Final = "serde.weights"
"""Attribute of ``main``: what the weights are called, where variables cannot be called that."""


@dataclass(frozen=True, slots=True)
class RelaxModel:
    """A ``tvm.IRModule`` beside the weights that its ``main`` takes behind the inputs.

    Attributes:
        module: The module; the attribute ``num_input`` of ``main`` counts the inputs.
        inputs: Names of the inputs, in order.
        outputs: Names of the results, in order.
        weights: What the further parameters of ``main`` are given, by the names of these
            variables, in order.
        names: What those variables stand for, by their names.
        files: What it was read from.
    """

    module: AnyValue
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: Mapping[str, Weight] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
