"""The native model: what a folder of NNEF holds, with weights that stay where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any as AnyValue, Literal, TypeAlias

from serde.core import Weight, dataclass, field, replace

__all__ = [
    "Argument", "Block", "Definition", "ElementType", "NnefModel", "Operation", "Quantization",
    "Ref", "flatten", "rename_operation",
]  # fmt: skip

ElementType: TypeAlias = Literal["scalar", "integer", "logical"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor, by its identifier."""

    name: str


Argument: TypeAlias = "Ref | float | int | bool | tuple[Argument, ...]"
"""What an operand is: a tensor, a literal, or a list of these."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One assignment of a graph.

    Attributes:
        op: The fragment that is invoked.
        inputs: Its operands by parameter, in the order of the declaration.
        attributes: All else that it is given, by parameter.
        outputs: What it assigns: identifiers, and tuples of them for lists.
        dtype: The type of elements, where the fragment is generic and says it.
    """

    op: str
    inputs: Mapping[str, Argument]
    attributes: Mapping[str, AnyValue]
    outputs: tuple[str | tuple[str, ...], ...]
    dtype: ElementType | None = None

    def operands(self) -> list[Ref | float | int | bool]:
        """Return the operands, those of lists among them, in order."""
        return flatten(tuple(self.inputs.values()))

    def refs(self) -> list[Ref]:
        """Return the tensors among the operands, in order."""
        return [each for each in self.operands() if isinstance(each, Ref)]

    def results(self) -> list[str]:
        """Return the identifiers that it assigns, those of lists among them, in order."""
        return flatten(self.outputs)


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the values of a tensor are quantised.

    Attributes:
        op: The fragment that does it.
        attributes: Its arguments but the first, by parameter.
    """

    op: str
    attributes: Mapping[str, AnyValue]


@dataclass(frozen=True, slots=True)
class Definition:
    """A fragment of the model's own.

    Attributes:
        name: Its name.
        inputs: Elements of the tensors that it takes, by identifier, in order.
        results: Elements of what it gives, by identifier, in order.
        operations: Its assignments; none for one that the text only declares, whose parameters
            and results have whole types.
        attributes: Types of all else that it takes, of one that is only declared.
        generic: Whether its invocations tell the type of elements.
    """

    name: str
    inputs: Mapping[str, str]
    results: Mapping[str, str]
    operations: tuple[Operation, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    generic: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A run of assignments that were a function of the source.

    Attributes:
        name: What the source calls the function.
        start: Number of the first assignment.
        stop: Number of the assignment behind the last.
    """

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class NnefModel:
    """A graph with its variables.

    Attributes:
        name: Name of the graph.
        inputs: Identifiers of what it takes, in order.
        outputs: Identifiers of what it gives, in order.
        operations: Its assignments, each behind those that it reads from.
        weights: Data of variables by label.
        quantization: How tensors are quantised, by identifier.
        stored_quantized: Labels of variables whose data are quantised integers.
        names: What the source calls inputs, outputs and variables, by identifier.
        sources: What the source calls the nodes of which assignments were made, by identifier.
        definitions: Fragments of its own, each behind those that it invokes.
        blocks: What of the assignments was a function of the source, inner ones first.
        metadata: What its owner added to it, which the text has as comments.
        path: Where it was read from.
        files: All files that it was read from.
        live: The ``nnef.Graph`` that it was made of.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    operations: Sequence[Operation]
    weights: Mapping[str, Weight] = field(default_factory=dict)
    quantization: Mapping[str, Quantization] = field(default_factory=dict)
    stored_quantized: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    blocks: tuple[Block, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    path: Path | None = None
    files: tuple[Path, ...] = ()
    live: AnyValue = field(default=None, compare=False, repr=False)

    def externals(self) -> dict[str, Operation]:
        """Return the declarations of the inputs, by identifier."""
        return {each.results()[0]: each for each in self.operations if each.op == "external"}

    def variables(self) -> dict[str, Operation]:
        """Return the declarations of the variables, by identifier."""
        return {each.results()[0]: each for each in self.operations if each.op == "variable"}

    def states(self) -> dict[str, str]:
        """Return the identifiers of later values by those of the variables that become them."""
        return {
            target.name: each.results()[0]
            for each in self.operations
            if each.op == "update" and isinstance(target := each.inputs["variable"], Ref)
        }


def flatten(item: AnyValue) -> list[AnyValue]:
    """Return what lies in tuples and lists inside each other, in order."""
    if not isinstance(item, (tuple, list)):
        return [item]
    pending, found = [*reversed(item)], []
    while pending:
        each = pending.pop()
        if isinstance(each, (tuple, list)):
            pending.extend(reversed(each))
        else:
            found.append(each)
    return found


def rename_operation(operation: Operation, renamed: Mapping[str, str]) -> Operation:
    """Return an assignment with other identifiers."""

    def argument(given: Argument) -> Argument:
        if isinstance(given, Ref):
            return Ref(renamed.get(given.name, given.name))
        return tuple(map(argument, given)) if isinstance(given, tuple) else given

    def result(name: str | tuple[str, ...]) -> str | tuple[str, ...]:
        if isinstance(name, str):
            return renamed.get(name, name)
        return tuple(renamed.get(each, each) for each in name)

    return replace(
        operation,
        inputs={key: argument(each) for key, each in operation.inputs.items()},
        outputs=tuple(map(result, operation.outputs)),
    )
