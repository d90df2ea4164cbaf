"""What a TFLite model keeps from one run to the next: variable tensors, and resources by name.

In Relay a state is an input behind the others, and its later value an output behind the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serde.core.records import dataclass
from serde.tflite.model import Subgraph, Tensor
from serde.walk import Placeholder

__all__ = ["Handle", "State", "declared_states", "handle_name", "init_graphs"]


class Handle(Placeholder):
    """Stands for a resource.

    Attributes:
        name: What it is called in the whole model.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.below = ()
        self.type = None
        self.span = None
        self.name = name


@dataclass(slots=True)
class State:
    """A value that is kept.

    Attributes:
        name: What it is called.
        tensor: What is declared of it.
        index: Number of the variable tensor; None of a resource.
    """

    name: str
    tensor: Tensor
    index: int | None = None


def declared_states(graph: Subgraph) -> Iterator[State]:
    """Yield what the operators of a graph change: variable tensors, then resources."""
    kept = set[int]()
    given = set[int]()  # What gets its value in every run before it is read is not kept.
    for each in graph.operators:
        kept.update(set(each.inputs) - given)
        given.update(each.outputs)
    for index, tensor in enumerate(graph.tensors):
        if tensor.is_variable and index in kept:
            yield State(tensor.name or f"state_{index}", tensor, index)
    types = dict[str, Tensor]()
    assigned = dict[str, Tensor]()
    handles = dict(_handles(graph))
    for each in graph.operators:
        name = handles.get(each.inputs[0]) if each.inputs else None
        if each.name == "READ_VARIABLE" and name is not None and each.outputs:
            types.setdefault(name, graph.tensors[each.outputs[0]])
        elif each.name == "ASSIGN_VARIABLE" and name is not None and len(each.inputs) > 1:
            assigned.setdefault(name, graph.tensors[each.inputs[1]])
    for name, tensor in assigned.items():
        yield State(name, types.get(name, tensor))


def _handles(graph: Subgraph) -> Iterator[tuple[int, str]]:
    for each in graph.operators:
        if each.name == "VAR_HANDLE" and each.outputs:
            yield each.outputs[0], handle_name(each.options)


def handle_name(options: Mapping[str, object]) -> str:
    """Return what a resource is called in the whole model."""
    parts = (options.get("container"), options.get("shared_name"))
    texts = (x.decode("utf-8", "backslashreplace") for x in parts if isinstance(x, bytes))
    return "/".join(filter(None, texts)) or "variable"


def init_graphs(graph: Subgraph) -> list[int]:
    """Return the numbers of the graphs that are run before a graph runs first."""
    once = (each for each in graph.operators if each.name == "CALL_ONCE")
    return [int(each.options.get("init_subgraph_index", 0)) for each in once]
