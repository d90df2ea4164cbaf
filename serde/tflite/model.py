"""TFLite models as serde holds them: the tables of a file as plain data, values where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any as AnyValue

from serde.core import Array, Weight, dataclass, field, replace
from serde.tflite.facts import Facts

__all__ = ["Operator", "Quantization", "Signature", "Subgraph", "Tensor", "TfliteModel"]


@dataclass(frozen=True, slots=True, eq=False)
class Quantization:
    """How integers stand for numbers: ``real = (code - zero_point) * scale``.

    Attributes:
        scales: One, or one for each entry of an axis.
        zero_points: As many, or one.
        axis: The axis.
        block: Of blocks, how long they are, and which tensors hold scales and zero points.
    """

    scales: Array
    zero_points: Array
    axis: int = 0
    block: tuple[int, int, int] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal where each integer stands for the same number."""
        return self.scales.tobytes(), self.zero_points.tobytes(), self.axis, self.block


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a subgraph.

    Attributes:
        name: Its name; others may have it too.
        shape: Lengths of its axes, -1 where they are open.
        dtype: Name of the type of its elements in the schema, in lower case.
        buffer: Number of the buffer with its values.
        values: Its values, None of what is computed.
        quantization: What integers stand for, if it says so.
        is_variable: Whether it keeps its value from one run to the next.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    buffer: int = 0
    values: Weight | None = None
    quantization: Quantization | None = None
    is_variable: bool = False


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of a subgraph.

    Attributes:
        name: Name of its code in the schema, such as ``CONV_2D``; of ``CUSTOM`` its own.
        version: Version of the operator.
        inputs: Numbers of tensors, -1 where one is left out.
        outputs: Numbers of tensors.
        options: Its options by the names of the schema.
        custom: Options of a custom operator, as it has them.
        is_custom: Whether it is none of the schema's.
    """

    name: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, AnyValue] = field(default_factory=dict)
    custom: bytes = b""
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A graph: its tensors, and operators in the order in which they run."""

    name: str
    tensors: Sequence[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: Sequence[Operator]

    def compact(self) -> Subgraph:
        """Return the graph without tensors that nothing refers to."""
        rows = (row for each in self.operators for row in (each.inputs, each.outputs))
        used = sorted({*self.inputs, *self.outputs, *(i for row in rows for i in row)} - {-1})
        numbers = {-1: -1, **{old: new for new, old in enumerate(used)}}

        def renumbered(row: Sequence[int]) -> tuple[int, ...]:
            return tuple(numbers[i] for i in row)

        operators = [
            replace(each, inputs=renumbered(each.inputs), outputs=renumbered(each.outputs))
            for each in self.operators
        ]
        ends = renumbered(self.inputs), renumbered(self.outputs)
        return Subgraph(self.name, [self.tensors[i] for i in used], *ends, operators)


@dataclass(frozen=True, slots=True)
class Signature:
    """Names under which a subgraph is run: of the signature, of inputs and of outputs."""

    key: str
    subgraph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(slots=True)
class TfliteModel:
    """A model whose values are still where they came from.

    Attributes:
        subgraphs: Its graphs; the first is run where no signature is named.
        signatures: Its signatures.
        description: What its maker says of it.
        metadata: Bytes by name.
        path: Where it is from, for messages.
        files: The files it was read from.
        facts: What it says to apps.
    """

    subgraphs: Sequence[Subgraph]
    signatures: Sequence[Signature] = ()
    description: str = ""
    metadata: Mapping[str, Weight] = field(default_factory=dict)
    path: str | None = None
    files: tuple[str, ...] = ()
    facts: Facts = field(default_factory=Facts)
