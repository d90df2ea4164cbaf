"""What formats say about their models without converting them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any as AnyValue

from serde.core.records import dataclass, field
from serde.core.report import shape_text
from serde.relay.ir.types import TensorType, Type

__all__ = ["ModelSummary", "ServedFile", "TensorNames", "TensorSummary"]


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """An input or output: its shape (names for dynamic dimensions) and dtype, None if not known."""

    name: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None

    def differences(self, other: TensorSummary) -> list[str]:
        """Return in what another one of that name differs, as far as both are known."""
        found = []
        if None not in (self.dtype, other.dtype) and self.dtype != other.dtype:
            found.append(f"{self.name} is {self.dtype}, there {other.dtype}")
        if self.shape is None or other.shape is None:
            return found
        pairs = zip_longest(self.shape, other.shape)
        if any(a != b and (None in (a, b) or type(a) is type(b) is int) for a, b in pairs):
            found.append(
                f"{self.name} is {shape_text(self.shape)}, there {shape_text(other.shape)}"
            )
        return found

    @classmethod
    def of(cls, name: str, type_: Type | None) -> TensorSummary:
        """Return what a type says of a tensor."""
        if not isinstance(type_, TensorType):
            return cls(name)
        shape = tuple(dim if isinstance(dim, int) else str(dim) for dim in type_.shape)
        return cls(name, shape, type_.dtype)


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """What a format says about a model by itself; None where it does not say.

    Attributes:
        version: Version of the format, or of what wrote the model.
        inputs: Inputs in order.
        outputs: Outputs in order.
        parameters: Number of elements of all weights.
        parameter_bytes: Their size in bytes.
        facts: Further facts for people, by name.
    """

    version: str = ""
    inputs: tuple[TensorSummary, ...] | None = None
    outputs: tuple[TensorSummary, ...] | None = None
    parameters: int | None = None
    parameter_bytes: int | None = None
    facts: Mapping[str, AnyValue] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether shape and dtype of every input and output are known."""
        if self.inputs is None or self.outputs is None:
            return False
        tensors = (*self.inputs, *self.outputs)
        return all(t.shape is not None and t.dtype is not None for t in tensors)


@dataclass(frozen=True, slots=True)
class TensorNames:
    """What a native model calls its inputs, outputs, weights and nodes, in its order.

    Attributes:
        inputs: Names of the inputs.
        outputs: Names of the outputs.
        weights: Names of the weights.
        nodes: Names of the nodes.
        origins: What the model that it was written of calls weights and nodes, by the names that
            they have here, where those are others.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServedFile:
    """What Triton calls a format whose files it runs.

    Attributes:
        backend: Name of the backend that does.
        filename: Name of a model's file.
        platform: What the backend needs to be told besides.
        by_place: Whether inputs and outputs are called ``name__0``, ``name__1`` by their places,
            because the file does not hold their names.
    """

    backend: str
    filename: str
    platform: str = ""
    by_place: bool = False
